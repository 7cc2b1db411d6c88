"""Stateful objects: the routes of their callers, and what operators do with one object.

Owns  the rows at the objects' own address, with what each takes and answers.
Not   serving them (`rest.objects_face`, in the processes that run objects); the operations
      (`objects.operate`); routes of all objects together (`rest.routes.objects_node`).

    /objects/<class>/<name>/…           callers
    /operate/objects/<class>/<name>/…   operators: one object by its name
    /operate/ids/<class>/<id>/…         the same by its id

A face of the objects resolves <class> and <name> or <id>: handlers take `ref`, the object, or `entry`, what
the log knows of one that has stored something. The process that owns the object runs the handler. Every
module that these handlers work with opens storage, so it is named in annotations alone: the REST API's
process has the rows to describe them.
"""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from edgestead.http1.messages import Request, Response
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.object import NotPost, WrongVerb
from edgestead.model.refusals.request import InvalidBody, InvalidQuery
from edgestead.objects import limits
from edgestead.objects.operate import shapes
from edgestead.objects.runtime.admission import INVOKE
from edgestead.rest.declared import ANYTHING, JSON, Answers, size, text
from edgestead.rest.query import Query
from edgestead.rest.routing import ANY, OBJECTS, Download, route
from edgestead.store.objectlog import CatalogueEntry, ObjectRef
from edgestead.usecases.access.authorise import PLATFORM

if TYPE_CHECKING:
    from edgestead.objects.operate.operations import Operations
    from edgestead.objects.operate.operator import Operator
    from edgestead.objects.runtime.shards import Where
    from edgestead.rest.objects_calls import Calls

Handler = TypeVar("Handler", bound=Callable[..., Any])

READ, WRITE = "Objects Read", "Objects Write"
CALLS = PLATFORM._replace(name="calls of objects", method_not_allowed=NotPost)
OPERATORS = PLATFORM._replace(name="operators of objects", method_not_allowed=WrongVerb)
BASES = ("/operate/objects/{class_name}/{name}", "/operate/ids/{class_name}/{id}")
ITEMS_MAX, ITEMS_USUAL = 1_000, 100
BODY_BYTES_MAX = 1024 * 1024  # a statement with its parameters
MS_MAX, _DIGITS_MAX = 8_640_000_000_000_000, 16  # the largest time of an ECMAScript Date
_CHUNK_BYTES = 256 * 1024
_BOOKMARK = re.compile("[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{16}-[0-9a-f]{8}")
_MOMENT = "A bookmark, or a time in milliseconds since 1970 or like 2026-11-21T10:30:00Z; now without it."
_TIME = "Milliseconds since 1970, or like 2026-11-21T10:30:00Z."


def object_route(
    method: str, path: str = "", *, permission: str, body_bytes_max: int = BODY_BYTES_MAX, **declared: Any
) -> Callable[[Handler], Handler]:
    """Enter an operators' handler under both bases. `declared` is what `route` takes besides."""

    def enter(handler: Handler) -> Handler:
        for base in BASES:
            handler = route(
                method,
                path,
                base=base,
                face=OBJECTS,
                family=OPERATORS,
                permission=permission,
                body_bytes_max=body_bytes_max,
                **declared,
            )(handler)
        return handler

    return enter


# callers


@route(
    "POST",
    "/objects/{class_name}/{name}/{method}",
    base="",
    face=OBJECTS,
    family=CALLS,
    permission=INVOKE,
    body_bytes_max=limits.MESSAGE_BYTES_MAX,
    takes={JSON: shapes.Arguments},
    answers=Answers(),
)
def call_method(method: str, calls: "Calls", ref: ObjectRef, request: Request) -> Awaitable[Response]:
    """Call a method of an object, which is made by its first call.

    `result` is what the method returned.
    """
    return calls.call(ref, method, request)


@route(
    ANY,
    "/objects/{class_name}/{name}/fetch",
    base="",
    face=OBJECTS,
    family=CALLS,
    permission=INVOKE,
    body_bytes_max=limits.MESSAGE_BYTES_MAX,
    takes={},
    answers=Answers(media=ANYTHING),
)
def fetch_root(calls: "Calls", ref: ObjectRef, query: Query, request: Request) -> Awaitable[Response]:
    """Have an object's own `fetch` answer a request, as for the path `/`."""
    return calls.fetch(ref, "/", query, request)


@route(
    ANY,
    "/objects/{class_name}/{name}/fetch/{path*}",
    base="",
    face=OBJECTS,
    family=CALLS,
    permission=INVOKE,
    body_bytes_max=limits.MESSAGE_BYTES_MAX,
    takes={},
    answers=Answers(media=ANYTHING),
)
def fetch(path: str, calls: "Calls", ref: ObjectRef, query: Query, request: Request) -> Awaitable[Response]:
    """Have an object's own `fetch` answer a request: method, path, query, headers and body are its own."""
    return calls.fetch(ref, f"/{path}", query, request)


# operators


@object_route("GET", permission=READ)
async def show_object(operator: "Operator", entry: CatalogueEntry) -> shapes.ObjectInfo:
    """Facts of an object."""
    return await operator.info(entry)


@object_route("GET", "/where", permission=READ)
async def find_object(where: "Callable[[ObjectRef], Awaitable[Where]]", ref: ObjectRef) -> shapes.Whereabouts:
    """Which process runs an object, whether it has stored something or not. It is not woken up."""
    found = await where(ref)
    return shapes.Whereabouts(ref.id, found.process, found.node, found.slot, found.region)


@object_route("DELETE", permission=WRITE)
async def delete_object(operator: "Operator", entry: CatalogueEntry) -> shapes.Deleted:
    """Delete what an object has stored, and its alarm."""
    await operator.delete(entry.ref)
    return shapes.Deleted(entry.ref.id)


@object_route(
    "POST",
    "/call",
    permission=INVOKE,
    body_bytes_max=limits.MESSAGE_BYTES_MAX,
    query=(text("method", "Of the class."),),
    takes={JSON: shapes.Arguments},
    answers=Answers(),
)
def call_object(calls: "Calls", ref: ObjectRef, query: Query, request: Request) -> Awaitable[Response]:
    """Call a method, by the object's id too."""
    return calls.call(ref, query.text("method") or "", request)


@object_route("POST", "/sql", permission=READ)
async def read_sql(operator: "Operator", entry: CatalogueEntry, body: shapes.SqlRead) -> shapes.Rows:
    """Run SQL that writes nothing, about now or a moment of the past."""
    if body.at is not None:
        at = _moment(body.at, lambda reason: InvalidBody(reason=f"{reason}.", pointer="/at"))
        return await operator.sql_at(entry.ref, at, body.query, body.bindings)
    return await operator.sql(entry.ref, body.query, body.bindings, write=False)


@object_route("POST", "/sql-write", permission=WRITE)
async def write_sql(operator: "Operator", entry: CatalogueEntry, body: shapes.SqlQuery) -> shapes.Rows:
    """Run SQL that may write, as one transaction."""
    return await operator.sql(entry.ref, body.query, body.bindings, write=True)


@object_route("GET", "/export", permission=READ, answers=Answers(media="application/vnd.sqlite3"))
async def export_object(operator: "Operator", entry: CatalogueEntry) -> Download:
    """A plain SQLite file of what an object has committed."""
    file = _taken(await operator.copy(entry.ref))
    length = os.fstat(file.fileno()).st_size
    return Download(length, _chunks(file), file.close, b"application/vnd.sqlite3")


def _taken(path: str) -> BinaryIO:
    """A file that has no name any more: whatever becomes of the answer, nothing stays."""
    try:
        return open(path, "rb")
    finally:
        os.unlink(path)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


@object_route("POST", "/verify", permission=READ)
async def verify_object(operator: "Operator", entry: CatalogueEntry) -> shapes.Verdict:
    """Check every page, index, row, key and record of an object."""
    return await operator.verify(entry)


@object_route("DELETE", "/quarantine", permission=WRITE)
def release_object(operator: "Operator", entry: CatalogueEntry) -> shapes.Released:
    """Let an object run again that is in quarantine for ending its process."""
    return shapes.Released(operator.release(entry.ref))


@object_route(
    "GET",
    "/contents",
    permission=READ,
    query=(
        text("at", _MOMENT),
        text("prefix", "Only keys that begin so."),
        text("after", "Only keys behind this one."),
        size("limit", ITEMS_USUAL, ITEMS_MAX),
    ),
)
async def show_contents(operator: "Operator", entry: CatalogueEntry, query: Query) -> shapes.Contents:
    """The keys and tables that an object has stored, now or at a moment of its past."""
    from edgestead.objects.operate.looking import Page

    page = Page(query.text("prefix") or "", query.text("after") or "", query.limit(ITEMS_USUAL, ITEMS_MAX))
    return await operator.contents(entry.ref, _moment_of(query, "at"), page)


@object_route("GET", "/changes", permission=READ, query=(text("since", _MOMENT), text("until", _MOMENT)))
async def show_changes(operator: "Operator", entry: CatalogueEntry, query: Query) -> shapes.Changes:
    """The keys and rows that differ between two moments of an object; either is now where it is not said."""
    return await operator.changes(entry.ref, _moment_of(query, "since"), _moment_of(query, "until"))


# an object's past


@object_route("GET", "/bookmark", permission=READ, query=(text("time", _TIME),))
async def show_bookmark(operations: "Operations", entry: CatalogueEntry, query: Query) -> shapes.Bookmarked:
    """The bookmark of now, or of a time. It is kept."""
    return shapes.Bookmarked(await operations.bookmark(entry.ref, _time_of(query, "time")))


@object_route(
    "GET",
    "/timeline",
    permission=READ,
    query=(text("since", _TIME), text("until", _TIME), size("limit", ITEMS_USUAL, ITEMS_MAX)),
)
async def show_timeline(operations: "Operations", entry: CatalogueEntry, query: Query) -> list[shapes.Moment]:
    """The moments to go back to, newest first."""
    since_ms, until_ms = _time_of(query, "since") or 0, _time_of(query, "until")
    limit = query.limit(ITEMS_USUAL, ITEMS_MAX)
    return await operations.timeline(entry.ref, since_ms=since_ms, until_ms=until_ms, limit=limit)


@object_route("POST", "/restore", permission=WRITE)
async def restore_object(operations: "Operations", entry: CatalogueEntry, body: shapes.BackTo) -> shapes.Undo:
    """Take an object back to a bookmark or a time, now; answers the bookmark that undoes it."""
    if (body.bookmark is None) == (body.time is None):
        raise InvalidBody(reason="a bookmark or a time is needed, and not both.")
    to = body.bookmark
    if to is None:
        assert body.time is not None
        to = await operations.bookmark(entry.ref, _time_in_body(body.time))
    return shapes.Undo(await operations.restore(entry.ref, to))


@object_route("POST", "/undo", permission=WRITE)
async def undo_restore(operations: "Operations", entry: CatalogueEntry) -> shapes.Undo:
    """Take back the last restore; answers the bookmark that undoes that."""
    return shapes.Undo(await operations.undo(entry.ref))


# its alarm


@object_route("GET", "/alarm", permission=READ)
async def show_alarm(operations: "Operations", entry: CatalogueEntry) -> shapes.Alarm:
    """When the alarm is due, and how often it has failed."""
    found = await operations.alarm(entry.ref)
    return shapes.Alarm(found.time_ms, found.retries, found.running)


@object_route("PUT", "/alarm", permission=WRITE)
async def set_alarm(operations: "Operations", entry: CatalogueEntry, body: shapes.DueAt) -> shapes.Alarm:
    """Set the alarm."""
    await operations.set_alarm(entry.ref, _time_in_body(body.time))
    return await show_alarm(operations, entry)


@object_route("DELETE", "/alarm", permission=WRITE)
async def delete_alarm(operations: "Operations", entry: CatalogueEntry) -> shapes.Alarm:
    """Delete the alarm."""
    await operations.set_alarm(entry.ref, None)
    return await show_alarm(operations, entry)


@object_route("POST", "/alarm", permission=WRITE)
async def run_alarm(operations: "Operations", entry: CatalogueEntry) -> shapes.Ran:
    """Run the alarm's handler now, and wait for its end."""
    return shapes.Ran(await operations.run_alarm(entry.ref))


def _time_of(query: Query, name: str) -> int | None:
    """Raises InvalidQuery."""
    given = query.text(name)
    if given is None:
        return None
    try:
        return time_ms(given)
    except ValueError as error:
        raise InvalidQuery(parameter=name, reason=str(error)) from None


def _moment_of(query: Query, name: str) -> str | int | None:
    """Raises InvalidQuery."""
    given = query.text(name)
    if given is None:
        return None
    return _moment(given, lambda reason: InvalidQuery(parameter=name, reason=reason))


def _moment(given: int | str, refusal: Callable[[str], EdgeError]) -> str | int:
    """A bookmark as it is, a time in milliseconds. Raises what `refusal` makes."""
    if isinstance(given, str) and _BOOKMARK.fullmatch(given):
        return given
    try:
        return time_ms(given)
    except ValueError as error:
        raise refusal(f"{error}, or a bookmark") from None


def _time_in_body(given: int | str) -> int:
    """Raises InvalidBody."""
    try:
        return time_ms(given)
    except ValueError as error:
        raise InvalidBody(reason=f"{error}.", pointer="/time") from None


def time_ms(given: int | str) -> int:
    """Milliseconds since the epoch, from these or from RFC 3339 text with a zone. Raises ValueError."""
    if isinstance(given, str) and given.isdecimal() and len(given) <= _DIGITS_MAX:
        given = int(given)
    if isinstance(given, int) and abs(given) <= MS_MAX:
        return given
    if isinstance(given, int):
        raise ValueError(f"a time is within {MS_MAX} ms of 1970")
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError("a time is in milliseconds since 1970, or like 2026-11-21T10:30:00Z")
    return int(moment.timestamp() * 1_000)
