"""The routes of operators, on the objects' own address.

Owns  paths under `/operate/`, parameters, the permission of each route, what each refusal becomes.
Asks  `operate` for the work; `authorise`, a parameter; `shards` for objects of other processes.
Tells `serve`, which has the address.
Not   what is done with an object (`operate`).

No class or method can have these paths: calls begin with `/objects/`. An object is meant by its name, or as
`/operate/ids/<class>/<id>` by its id. Its class need not be loaded.
"""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import apsw
import msgspec

from edgestead.http1.messages import BodyTooLarge, Request, Response
from edgestead.model import envelope
from edgestead.model.errors import EdgeError
from edgestead.objects import http_errors, ids
from edgestead.objects.errors import LimitError, ObjectError
from edgestead.objects.operate import Item, Operator
from edgestead.objects.shards import Shards
from edgestead.store.objectlog import CatalogueEntry, LogError, ObjectRef

PREFIX = b"/operate/"
READ, WRITE, INVOKE = "Objects Read", "Objects Write", "Objects Invoke"
BODY_BYTES_MAX = 1024 * 1024
ITEMS_MAX, ITEMS_USUAL = 1_000, 100
CHUNK_BYTES = 256 * 1024
_JSON = [(b"content-type", b"application/json")]

Authorise = Callable[[Request, str], EdgeError | None]
Call = Callable[[Request, ObjectRef, str], Awaitable[Response]]
Query = Mapping[str, str]


class Route(NamedTuple):
    """One operation: of an object where `of_object`, else of the node. `parameters` are those of the query.

    Its permission is checked where the request arrives, so it may not depend on the body.
    """

    method: str
    path: str  # behind the object; empty is the object itself
    permission: str
    summary: str
    parameters: tuple[str, ...] = ()
    of_object: bool = True


class ListInfo(msgspec.Struct, frozen=True):
    """`cursor` asks for the next page; empty behind the last one."""

    count: int
    cursor: str


class SqlQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    query: str
    bindings: list[Any] = []


LIST = Route("GET", "", READ, "List objects, by class and id.", ("class", "limit", "cursor"), of_object=False)
INFO = Route("GET", "", READ, "Facts of an object.")
DELETE = Route("DELETE", "", WRITE, "Delete what an object has stored, and its alarm.")
CALL = Route("POST", "call", INVOKE, "Call a method, as /objects/ does by name.", ("method",))
SQL = Route("POST", "sql", READ, "Run SQL that writes nothing.")
SQL_WRITE = Route("POST", "sql-write", WRITE, "Run SQL that may write, as one transaction.")
EXPORT = Route("GET", "export", READ, "A plain SQLite file of what an object has committed.")
VERIFY = Route("POST", "verify", READ, "Check every page, index, row and key of an object.")
ROUTES = (LIST, INFO, DELETE, CALL, SQL, SQL_WRITE, EXPORT, VERIFY)


class OperateHttp:
    """The handler of operators' requests. `authorise` gives the refusal, or None; `call` makes a call."""

    def __init__(self, operator: Operator, authorise: Authorise, call: Call, shards: Shards | None) -> None:
        self._operator, self._authorise, self._shards = operator, authorise, shards
        self._call = call
        self._work: dict[Route, Callable[[Request, CatalogueEntry, Query], Awaitable[Response]]] = {
            INFO: self._info,
            DELETE: self._delete,
            SQL: partial(self._sql, write=False),
            SQL_WRITE: partial(self._sql, write=True),
            EXPORT: self._export,
            VERIFY: self._verify,
        }

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Raises EdgeError, BodyBroken."""
        path, _, query = request.target[len(PREFIX) :].partition(b"?")
        parts = path.decode("latin-1").removesuffix("/").split("/")
        if parts == ["objects"]:
            self._check(request, _route_of(request.method, "", of_object=False).permission)
            return await self._list(request, _query(query, LIST))
        if parts[0] not in ("objects", "ids") or not 3 <= len(parts) <= 4 or not all(parts):
            raise http_errors.NoSuchRoute
        route = _route_of(request.method, parts[3] if len(parts) == 4 else "")
        self._check(request, route.permission)
        ref = _ref(*parts[:3])
        if route is CALL:
            return await self._call(request, ref, _query(query, route).get("method", ""))
        if self._shards is not None and not self._shards.is_local(ref):
            return await self._pass_on(ref, request)
        entry = self._operator.find(ref)
        if entry is None:
            raise http_errors.NoSuchObject(class_name=printable(ref.class_name), name=printable(parts[2]))
        try:
            return await self._work[route](request, entry, _query(query, route))
        except ObjectError as error:
            if error.reset:
                raise http_errors.WasReset(reason=str(error)) from None
            raise http_errors.OperationFailed(reason=str(error)) from None
        except (LogError, OSError, apsw.Error) as error:
            raise http_errors.WasReset(reason=f"Object storage failed: {error}") from error

    def _check(self, request: Request, permission: str) -> None:
        refusal = self._authorise(request, permission)
        if refusal is not None:
            raise refusal

    async def _pass_on(self, ref: ObjectRef, request: Request) -> Response:
        assert self._shards is not None
        try:
            return await self._shards.pass_on(ref, request)
        except OSError as error:
            raise http_errors.WasReset(reason=f"The object's process did not answer: {error}") from None

    # of the node

    async def _list(self, request: Request, query: Query) -> Response:
        limit = _limit(query)
        items, more = self._operator.page(query.get("class"), _after(query), limit)
        if self._shards is not None:
            for theirs, theirs_more in await self._others(request):
                items += theirs
                more = more or theirs_more
        items.sort(key=lambda item: (item.class_name, item.id))
        more, items = more or len(items) > limit, items[:limit]
        cursor = f"{items[-1].class_name}/{items[-1].id}" if more and items else ""
        return Response(200, _JSON, envelope.success_with_info(items, ListInfo(len(items), cursor)))

    async def _others(self, request: Request) -> list[tuple[list[Item], bool]]:
        """The same page of the other processes."""
        assert self._shards is not None
        try:
            answers = await self._shards.ask_others(request)
            pages = [_read_page(answer) for answer in answers]
        except (OSError, msgspec.DecodeError) as error:
            raise http_errors.WasReset(reason=f"Another objects process did not answer: {error}") from None
        return [(page.result, bool(page.result_info.cursor)) for page in pages]

    # of an object

    async def _info(self, request: Request, entry: CatalogueEntry, query: Query) -> Response:
        return _answer(await self._operator.info(entry))

    async def _delete(self, request: Request, entry: CatalogueEntry, query: Query) -> Response:
        await self._operator.delete(entry.ref)
        return _answer({"id": entry.ref.id})

    async def _sql(self, request: Request, entry: CatalogueEntry, query: Query, *, write: bool) -> Response:
        asked = await _body(request, SqlQuery)
        return _answer(await self._operator.sql(entry.ref, asked.query, asked.bindings, write=write))

    async def _export(self, request: Request, entry: CatalogueEntry, query: Query) -> Response:
        path = await self._operator.copy(entry.ref)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.unlink(path)  # whatever becomes of the answer, nothing stays
        return Response(200, [(b"content-type", b"application/vnd.sqlite3")], _read(file))

    async def _verify(self, request: Request, entry: CatalogueEntry, query: Query) -> Response:
        return _answer(await self._operator.verify(entry))


class _Page(msgspec.Struct):
    result: list[Item]
    result_info: ListInfo


_read_page = msgspec.json.Decoder(_Page).decode


def _route_of(method: str, path: str, *, of_object: bool = True) -> Route:
    found = [route for route in ROUTES if (route.path, route.of_object) == (path, of_object)]
    for route in found:
        if route.method == method:
            return route
    if not found:
        raise http_errors.NoSuchRoute
    methods = ", ".join(route.method for route in found)
    raise http_errors.WrongVerb(path=f".../{path}" if path else "This path", methods=methods)


def _ref(root: str, class_name: str, name: str) -> ObjectRef:
    try:
        text = unquote(name, errors="strict")
        return ids.from_name(class_name, text) if root == "objects" else ids.from_text(class_name, text)
    except (UnicodeDecodeError, LimitError, TypeError) as error:
        raise http_errors.BadOperation(reason=str(error)) from None


def _query(raw: bytes, route: Route) -> Query:
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    unknown = [name for name, _ in pairs if name not in route.parameters]
    if unknown:
        known = ", ".join(route.parameters) or "none"
        raise http_errors.BadOperation(
            reason=f"there is no parameter {printable(unknown[0])}; this route takes {known}"
        )
    return dict(pairs)


def _limit(query: Query) -> int:
    text = query.get("limit", str(ITEMS_USUAL))
    if not text.isdecimal() or len(text) > 9:
        raise http_errors.BadOperation(reason="limit is a whole number")
    return max(1, min(int(text), ITEMS_MAX))


def _after(query: Query) -> tuple[str, str]:
    class_name, slash, object_id = query.get("cursor", "").partition("/")
    if bool(class_name) != bool(slash):
        raise http_errors.BadOperation(reason="that cursor is of no list")
    return class_name, object_id


async def _body(request: Request, kind: type[SqlQuery]) -> SqlQuery:
    try:
        return msgspec.json.decode(await request.body.read(BODY_BYTES_MAX), type=kind)
    except BodyTooLarge:
        raise http_errors.CallTooLarge(limit=BODY_BYTES_MAX) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise http_errors.BadOperation(reason=str(error)) from None


def _answer(result: Any) -> Response:
    return Response(200, _JSON, envelope.success(result))


async def _read(file: int) -> AsyncIterator[bytes]:
    try:
        while chunk := os.read(file, CHUNK_BYTES):
            yield chunk
    finally:
        os.close(file)


def printable(text: str) -> str:
    """A name for a message, whatever it holds."""
    return text[:100] if text.isprintable() else json.dumps(text)[:100]
