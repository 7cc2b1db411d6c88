"""Operators' requests about the past and the alarm of an object.

Owns  what each of them takes and answers.
Asks  `operations`.
Tells `operate_http`, by the table of its work.
Not   how an object is taken back; permissions.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from edgestead.http1.messages import Request
from edgestead.objects import http_errors
from edgestead.objects import operate_routes as routes
from edgestead.objects.operate_routes import Query, Route, time_of
from edgestead.objects.operations import Operations
from edgestead.store.objectlog import CatalogueEntry


class Bookmark(msgspec.Struct, frozen=True):
    bookmark: str


class Undo(msgspec.Struct, frozen=True):
    """`undo` is the bookmark of the moment just before."""

    undo: str


class Alarm(msgspec.Struct, frozen=True):
    """`time` in milliseconds since the epoch, or null; `retries` failed attempts; whether it is running."""

    time: int | None
    retries: int
    running: bool


class Ran(msgspec.Struct, frozen=True):
    """Whether there was an alarm."""

    ran: bool


async def bookmark(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Bookmark:
    time_ms = time_of(query["time"]) if "time" in query else None
    return Bookmark(await operations.bookmark(entry.ref, time_ms))


async def timeline(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Any:
    since_ms = time_of(query["since"], "since") if "since" in query else 0
    until_ms = time_of(query["until"], "until") if "until" in query else None
    limit = routes.limit_of(query)
    return await operations.timeline(entry.ref, since_ms=since_ms, until_ms=until_ms, limit=limit)


async def restore(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Undo:
    asked = await routes.read_body(request, routes.BackTo)
    if (asked.bookmark is None) == (asked.time is None):
        raise http_errors.BadOperation(reason="a bookmark or a time is needed, and not both")
    to = asked.bookmark
    if to is None:
        assert asked.time is not None
        to = await operations.bookmark(entry.ref, time_of(asked.time))
    return Undo(await operations.restore(entry.ref, to))


async def undo(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Undo:
    return Undo(await operations.undo(entry.ref))


async def alarm(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Alarm:
    found = await operations.alarm(entry.ref)
    return Alarm(found.time_ms, found.retries, found.running)


async def set_alarm(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Alarm:
    asked = await routes.read_body(request, routes.DueAt)
    await operations.set_alarm(entry.ref, time_of(asked.time))
    return await alarm(operations, request, entry, query)


async def delete_alarm(
    operations: Operations, request: Request, entry: CatalogueEntry, query: Query
) -> Alarm:
    await operations.set_alarm(entry.ref, None)
    return await alarm(operations, request, entry, query)


async def run_alarm(operations: Operations, request: Request, entry: CatalogueEntry, query: Query) -> Ran:
    return Ran(await operations.run_alarm(entry.ref))


WORK: dict[Route, Callable[[Operations, Request, CatalogueEntry, Query], Awaitable[Any]]] = {
    routes.BOOKMARK: bookmark,
    routes.TIMELINE: timeline,
    routes.RESTORE: restore,
    routes.UNDO: undo,
    routes.ALARM: alarm,
    routes.SET_ALARM: set_alarm,
    routes.DELETE_ALARM: delete_alarm,
    routes.RUN_ALARM: run_alarm,
}
