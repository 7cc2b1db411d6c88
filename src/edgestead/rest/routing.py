"""Which function answers which method and path.

Owns  the one table of routes, of the REST API and of objects; the trie over path segments; what a route
      declares.
Not   running a handler.

A handler is a plain function, `async` when it writes; one that only sometimes has to wait may return a
coroutine. It takes its path's parameters first, in their order, but those that its face resolves, then any
of its face's arguments by name. The annotation of `body` is what the request's JSON must be. It returns a
Struct, a Page, ready JSON bytes, an `Answer` or a `Download`, or raises an EdgeError.

A face is a listening address with the processes behind it. At CONTROL, the REST API, there are `api`
(AppContext), `call` (Call), `identity` (Identity), `query` (Query), `upload` (Upload, the body as it arrives)
and `body`. What a caller changes goes through `write` (Write) or `write_as` (WriteAs); where another store
commits, that asks `still_permitted` (`rest.rights`). At OBJECTS a path names an object: `ref`, or `entry` of
one that has stored something, for `operator` and `operations` to work with; `query` and `body` as above;
`others` are the other processes. A handler that takes `request` answers it by itself, with a Response.

Paths are matched as they came, segment by segment, and each parameter is decoded afterwards, so that an
encoded slash stays inside its segment. One trailing slash is ignored. A parameter whose name ends in `_id`
is 32 lower-case hex digits; one that ends in `*` is the whole rest of the path, as it came. A route of the
method ANY takes those that its path has no other route for.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args
from urllib.parse import unquote_to_bytes

import msgspec

from edgestead.changes import Change, Kind, ending
from edgestead.changes.members import Watch, watched
from edgestead.model.envelope import Page
from edgestead.model.ids import is_id
from edgestead.model.refusals import MethodNotAllowed
from edgestead.model.refusals.request import InvalidHostOrPath, NoRoute
from edgestead.model.room import Adds
from edgestead.rest.declared import JSON, Answers, Parameter, Takes
from edgestead.rest.limits import BODY_BYTES_MAX
from edgestead.usecases.access.authorise import CONTENTS, Family

BASE_PATH = "/client/v4"
ANY = "*"


class Face(NamedTuple):
    """Where a route is served: the arguments of handlers there, and path parameters that become one."""

    name: str
    arguments: frozenset[str]
    resolves: frozenset[str] = frozenset()


CONTROL = Face(
    "control",
    frozenset(("api", "call", "identity", "query", "upload", "body", "write", "write_as", "still_permitted")),
)
OBJECTS = Face(
    "objects",
    frozenset(
        ("calls", "ref", "entry", "operator", "operations", "others", "where", "query", "body", "request")
    ),
    resolves=frozenset(("class_name", "name", "id")),
)

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Answer(NamedTuple):
    """An answer that is no envelope, or not 200. `body` None means the envelope around `result`."""

    body: bytes | None = None
    content_type: bytes = b"application/json"
    status: int = 200
    result: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Download(NamedTuple):
    """An answer of known length whose body is sent as it is read. `close` is called whatever happens."""

    length: int
    chunks: AsyncIterator[bytes]
    close: Callable[[], None]
    content_type: bytes = b"application/octet-stream"
    headers: tuple[tuple[bytes, bytes], ...] = ()


_ENCODED = (Any, inspect.Signature.empty, bytes, Answer, Download, Page)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table. `wants` are the arguments of the handler behind the parameters of its path.

    `permission` None asks for known credentials only; `public` for none at all. `besides` is a second group
    that a caller needs, too. `user_only` refuses an account's own tokens. `body` is None for routes that
    ignore what a request carries. `query`, `takes` and `answers` say what the handler reads and returns,
    for the document and the reference. `change` is the dated row that ended or replaced the path, `watches`
    are the dated members of its bodies; `before` is the route that answers until the day of the row that
    ended this one. `adds` says what a call does to the room on the disk; None only reads, or objects, whose
    log looks for room itself.
    """

    face: Face
    method: str
    path: str
    handler: Callable[..., Any]
    permission: str | None
    family: Family
    public: bool
    user_only: bool
    summary: str
    description: str
    parameters: tuple[str, ...]
    wants: tuple[str, ...]
    arguments: Callable[[Any], tuple[Any, ...]]
    body: Any
    body_bytes_max: int
    wants_query: bool
    zone_at: int | None
    account_at: int | None
    adds: Adds | None
    query: tuple[Parameter, ...]
    takes: Takes
    answers: Answers
    change: Change | None
    watches: tuple[Watch, ...]
    besides: str | None = None
    before: "Route | None" = None

    @property
    def has_ended(self) -> bool:
        """Nothing is left of it but its refusal (`rest.routes.ended`)."""
        return self.change is not None and self.change.kind is Kind.ENDPOINT


ROUTES: list[Route] = []
BEFORE: dict[tuple[str, str], Route] = {}  # what answers until the day that ended it; no list has it


def route(
    method: str,
    path: str,
    *,
    face: Face = CONTROL,
    permission: str | None = None,
    besides: str | None = None,
    family: Family = CONTENTS,
    public: bool = False,
    user_only: bool = False,
    base: str = BASE_PATH,
    body_bytes_max: int = BODY_BYTES_MAX,
    query: tuple[Parameter, ...] = (),
    takes: Takes | None = None,
    answers: Answers | None = None,
    adds: Adds = Adds.MUCH,
    until_its_day: bool = False,
) -> Callable[[Handler], Handler]:
    """Enter a handler in the table. The first line of its docstring is the route's summary in the reference.

    `takes` is for handlers that read their body themselves, `answers` for those whose return annotation does
    not say what `result` is. `adds` is for what goes on while the disk is full, though its method does not
    say so. `until_its_day`: a row of `changes` ended the path, and this answers at an earlier date.
    """

    def enter(handler: Handler) -> Handler:
        signature = inspect.signature(handler)  # other annotations may name what is not imported here
        names = tuple(signature.parameters)
        returned = NoneType if signature.return_annotation is None else signature.return_annotation
        body = signature.parameters["body"].annotation if "body" in names else None
        assert str not in (type(body), type(returned)), f"{handler.__name__}: a quoted type"
        parameters = parameters_of(base + path)
        given = tuple(name for name in parameters if name not in face.resolves)
        wanted = names[len(given) :]
        assert names[: len(given)] == given, f"{handler.__name__}: path parameters come first"
        assert set(wanted) <= face.arguments, f"{handler.__name__}: {wanted}"
        summary, _, description = (inspect.getdoc(handler) or "").partition("\n")
        enter_route(
            Route(
                face=face,
                method=method,
                path=base + path,
                handler=handler,
                permission=permission,
                besides=besides,
                family=family,
                public=public,
                user_only=user_only,
                summary=summary,
                description=description.strip(),
                parameters=parameters,
                wants=wanted,
                arguments=_arguments(wanted),
                body=body,
                body_bytes_max=body_bytes_max,
                wants_query="query" in wanted,
                zone_at=_position(parameters, "zone_id"),
                account_at=_position(parameters, "account_id"),
                adds=_adds(method, permission, adds) if face is CONTROL else None,
                query=query,
                takes=_takes(body) if takes is None else takes,
                answers=_answers(returned) if answers is None else answers,
                change=ending(path),
                watches=watched(method, path) if body else (),
            )
        )
        return handler

    def enter_route(made: Route) -> None:
        if not until_its_day:
            ROUTES.append(made)
            return
        assert made.has_ended, f"{path}: no row of the changes ended it"
        BEFORE[method, made.path] = made

    return enter


def rows_of(face: Face) -> list[Route]:
    """The rows of one face, among the modules of routes that are imported."""
    return [row for row in ROUTES if row.face is face]


def parameters_of(path: str) -> tuple[str, ...]:
    return tuple(part[1:-1].rstrip("*") for part in path.split("/") if part.startswith("{"))


def _arguments(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda exchange: ()
    one = attrgetter(*names)  # of several names it makes a tuple, in C
    return one if len(names) > 1 else lambda exchange: (one(exchange),)


def _adds(method: str, permission: str | None, declared: Adds) -> Adds | None:
    if method in ("GET", ANY) or (permission is not None and permission.endswith(" Read")):
        return None
    return Adds.NOTHING if method == "DELETE" else declared


def _takes(body: Any) -> Takes:
    return {} if body is None else {JSON: body}


def _answers(returned: Any) -> Answers:
    """What the annotation says, where it is a type of values and not of their encoding."""
    encoded = any(kind in _ENCODED for kind in (returned, *get_args(returned)))
    return Answers() if encoded else Answers(returned)


def _position(parameters: tuple[str, ...], name: str) -> int | None:
    return parameters.index(name) if name in parameters else None


class _Node:
    """One segment of a path: its literal children, at most one parameter, the methods that end here.

    `rest` is where every longer path leads to.
    """

    __slots__ = ("is_id", "literals", "methods", "parameter", "rest")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.rest: _Node | None = None
        self.is_id = False
        self.methods: dict[str, Route] = {}


class Router:
    """The trie. A literal segment wins over a parameter; there is no backtracking."""

    __slots__ = ("_root",)

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises ValueError: two routes with one method and path."""
        self._root = _Node()
        for row in routes:
            node = self._root
            for part in row.path.split("/")[1:]:
                node = _child(node, part)
            if row.method in node.methods:
                raise ValueError(f"two routes for {row.method} {row.path}")
            node.methods[row.method] = row

    def find(self, method: str, raw_path: str) -> tuple[Route, Sequence[str]]:
        """The route, and its parameters decoded.

        Raises NoRoute, also for an identifier that cannot be one; MethodNotAllowed, with the methods that
        are; InvalidHostOrPath: an escape that is no UTF-8.
        """
        node = self._root
        parameters: list[str] = []
        parts = raw_path.split("/")
        if not parts[-1] and len(parts) > 2:
            parts.pop()
        for at, part in enumerate(parts[1:], 1):
            child = node.literals.get(part)
            if child is None:
                child = node.parameter
                if child is None:
                    if node.rest is None:
                        raise NoRoute(raw_path)
                    parameters.append(raw_path.split("/", at)[at])
                    node = node.rest
                    break
                parameters.append(_decoded(part, child, raw_path))
            node = child
        methods = node.methods
        found = methods.get(method) or (methods.get("GET") if method == "HEAD" else None) or methods.get(ANY)
        if found is None:
            if not methods:
                raise NoRoute(raw_path)
            raise not_allowed(method, methods.values())
        return found, parameters


def not_allowed(method: str, routes: Iterable[Route]) -> MethodNotAllowed:
    """The refusal of a method at a path that has these routes, in the words of their family."""
    by_method = {row.method: row for row in routes}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]
    refusal = next(iter(by_method.values())).family.method_not_allowed
    return refusal(method=method, allow=", ".join(sorted(by_method)))


def _child(node: _Node, part: str) -> _Node:
    if part.endswith("*}"):
        if node.rest is None:
            node.rest = _Node()
        return node.rest
    if not part.startswith("{"):
        return node.literals.setdefault(part, _Node())
    if node.parameter is None:
        node.parameter = _Node()
        node.parameter.is_id = part.endswith("_id}")
    return node.parameter


def _decoded(part: str, node: _Node, raw_path: str) -> str:
    if "%" in part:
        try:
            part = unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            raise InvalidHostOrPath from None
    if not part or (node.is_id and not is_id(part)):
        raise NoRoute(raw_path)
    return part
