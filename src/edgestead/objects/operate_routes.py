"""The routes of operators, as a table, and reading what a request says.

Owns  methods, paths, permissions and parameters; query and body, checked.
Asks  msgspec to read JSON.
Tells `operate_http`, which serves them; the reference page, which lists them.
Not   what an operation does (`operate`, `operations`).

    /operate/objects                            the list
    /operate/objects/<class>/<name>[/<path>]    one object by its name
    /operate/ids/<class>/<id>[/<path>]          the same by its id
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from edgestead.http1.messages import BodyTooLarge, Request
from edgestead.objects import http_errors, ids
from edgestead.objects.errors import LimitError
from edgestead.store.objectlog import ObjectRef

T = TypeVar("T")
READ, WRITE, INVOKE = "Objects Read", "Objects Write", "Objects Invoke"
BODY_BYTES_MAX = 1024 * 1024  # a statement with its parameters
MS_MAX, _DIGITS_MAX = 8_640_000_000_000_000, 16  # the largest time of an ECMAScript Date
ITEMS_MAX, ITEMS_USUAL = 1_000, 100
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
    body: str = ""
    of_object: bool = True


class SqlQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    query: str
    bindings: list[Any] = []


class BackTo(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A bookmark, or a time: milliseconds, or RFC 3339 text."""

    bookmark: str | None = None
    time: int | str | None = None


class DueAt(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    time: int | str


LIST = Route("GET", "", READ, "List objects, by class and id.", ("class", "limit", "cursor"), of_object=False)
BACKUP = Route(
    "POST",
    "backup",
    WRITE,
    "Copy logs for a backup into folders on the server; `edgecli backup` does the rest.",
    of_object=False,
)
INFO = Route("GET", "", READ, "Facts of an object.")
DELETE = Route("DELETE", "", WRITE, "Delete what an object has stored, and its alarm.")
CALL = Route("POST", "call", INVOKE, "Call a method.", ("method",), body='{"args": [], "kwargs": {}}')
SQL = Route("POST", "sql", READ, "Run SQL that writes nothing.", body='{"query": "…", "bindings": []}')
SQL_WRITE = Route(
    "POST",
    "sql-write",
    WRITE,
    "Run SQL that may write, as one transaction.",
    body='{"query": "…", "bindings": []}',
)
EXPORT = Route("GET", "export", READ, "A plain SQLite file of what an object has committed.")
VERIFY = Route("POST", "verify", READ, "Check every page, index, row, key and record of an object.")
BOOKMARK = Route("GET", "bookmark", READ, "The bookmark of now, or of a time. It is kept.", ("time",))
TIMELINE = Route(
    "GET", "timeline", READ, "The moments to go back to, newest first.", ("since", "until", "limit")
)
RESTORE = Route(
    "POST",
    "restore",
    WRITE,
    "Take an object back to a bookmark or a time, now; answers the bookmark that undoes it.",
    body='{"bookmark": "…"} or {"time": …}',
)
UNDO = Route("POST", "undo", WRITE, "Take back the last restore; answers the bookmark that undoes that.")
ALARM = Route("GET", "alarm", READ, "When the alarm is due, and how often it has failed.")
SET_ALARM = Route("PUT", "alarm", WRITE, "Set the alarm.", body='{"time": …}')
DELETE_ALARM = Route("DELETE", "alarm", WRITE, "Delete the alarm.")
RUN_ALARM = Route("POST", "alarm", WRITE, "Run the alarm's handler now, and wait for its end.")
ROUTES = (
    LIST,
    BACKUP,
    INFO,
    DELETE,
    CALL,
    SQL,
    SQL_WRITE,
    EXPORT,
    VERIFY,
    BOOKMARK,
    TIMELINE,
    RESTORE,
    UNDO,
    ALARM,
    SET_ALARM,
    DELETE_ALARM,
    RUN_ALARM,
)


def route_of(method: str, path: str, *, of_object: bool = True) -> Route:
    """Raises NoSuchRoute, WrongVerb."""
    found = [route for route in ROUTES if (route.path, route.of_object) == (path, of_object)]
    for route in found:
        if route.method == method:
            return route
    if not found:
        raise http_errors.NoSuchRoute
    methods = ", ".join(route.method for route in found)
    raise http_errors.WrongVerb(path=f".../{path}" if path else "This path", methods=methods)


def ref_of(root: str, class_name: str, name: str) -> ObjectRef:
    """The object of three segments of a path. Raises BadOperation."""
    try:
        text = unquote(name, errors="strict")
        return ids.from_name(class_name, text) if root == "objects" else ids.from_text(class_name, text)
    except (UnicodeDecodeError, LimitError, TypeError) as error:
        raise http_errors.BadOperation(reason=str(error)) from None


def read_query(raw: bytes, route: Route) -> Query:
    """Raises BadOperation for a parameter that the route does not take."""
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    unknown = [name for name, _ in pairs if name not in route.parameters]
    if unknown:
        known = ", ".join(route.parameters) or "none"
        raise http_errors.BadOperation(
            reason=f"there is no parameter {printable(unknown[0])}; this route takes {known}"
        )
    return dict(pairs)


def limit_of(query: Query) -> int:
    """How many items are asked for, within what one answer gives. Raises BadOperation."""
    text = query.get("limit", str(ITEMS_USUAL))
    if not text.isdecimal() or len(text) > 9:
        raise http_errors.BadOperation(reason="limit is a whole number")
    return max(1, min(int(text), ITEMS_MAX))


def after_of(query: Query) -> tuple[str, str]:
    """Where a list goes on, from its cursor. Raises BadOperation."""
    class_name, slash, object_id = query.get("cursor", "").partition("/")
    if bool(class_name) != bool(slash):
        raise http_errors.BadOperation(reason="that cursor is of no list")
    return class_name, object_id


def time_of(given: int | str, name: str = "time") -> int:
    """Milliseconds since the epoch, from these or from RFC 3339 text with a zone. Raises BadOperation."""
    if isinstance(given, str) and given.isdecimal() and len(given) <= _DIGITS_MAX:
        given = int(given)
    if isinstance(given, int) and abs(given) <= MS_MAX:
        return given
    if isinstance(given, int):
        raise http_errors.BadOperation(reason=f"{name} is within {MS_MAX} ms of 1970")
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        reason = f"{name} is in milliseconds since 1970, or like 2026-11-21T10:30:00Z"
        raise http_errors.BadOperation(reason=reason)
    return int(moment.timestamp() * 1_000)


async def read_body(request: Request, kind: type[T]) -> T:
    """Raises CallTooLarge, BadOperation, BodyBroken."""
    try:
        return msgspec.json.decode(await request.body.read(BODY_BYTES_MAX), type=kind)
    except BodyTooLarge:
        raise http_errors.CallTooLarge(limit=BODY_BYTES_MAX) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise http_errors.BadOperation(reason=str(error)) from None


def printable(text: str) -> str:
    """A name for a message, whatever it holds."""
    return text[:100] if text.isprintable() else json.dumps(text)[:100]
