"""REST face of a zone's security events.

Owns  /zones/{zone_id}/security/events: its filters and cursor; the last day by rule, and by scores.
Not   what becomes an event.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from edgestead.model import envelope
from edgestead.model.events import Event, is_event_id
from edgestead.model.refusals.request import InvalidQuery
from edgestead.rest.context import AppContext
from edgestead.rest.declared import Answers, choice, number, size, text
from edgestead.rest.limits import EVENTS_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.rest.ruleset_shapes import Cursors
from edgestead.usecases import events
from edgestead.usecases.event_index import Counted, Kinds
from edgestead.usecases.events import Wanted
from edgestead.usecases.lookup import zone_of

T = TypeVar("T")
_TIME_CHARACTERS_MAX = 40
_EQUAL = {
    "action": "What was done: `block`, `log`, `skip`, `managed_challenge`, `refuse`, `fail` …",
    "phase": "Where it was decided.",
    "ruleset_id": "The ruleset of the rule that decided.",
    "rule_id": "The rule that decided.",
    "ray_id": "One request, by the id that its answer carried.",
    "client": "The client's address.",
    "method": "The request's method.",
    "host": "The name that was asked for.",
}
_QUERY = (
    *(text(name, summary) for name, summary in _EQUAL.items()),
    text("path_prefix", "What the path begins with."),
    number("status", "The status that the edge answered; 0 where the request went on."),
    text("since", "The first time, as in `2026-01-02T03:04:05Z`."),
    text("until", "The time before which events occurred."),
    choice("direction", ("asc", "desc"), "desc", "Oldest or newest first."),
    text("cursor", "The `after` of the page before, or the id of an event."),
    size("per_page", EVENTS_PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX),
)


class EventsInfo(msgspec.Struct, frozen=True):
    """`cursors` is there only while more may follow: send its `after` as `cursor`."""

    count: int
    cursors: Cursors | msgspec.UnsetType = msgspec.UNSET


@route(
    "GET",
    "/zones/{zone_id}/security/events",
    permission="Zone WAF Read",
    query=_QUERY,
    answers=Answers(list[Event], EventsInfo),
)
async def list_events(zone_id: str, api: AppContext, query: Query) -> Answer:
    """What the edge decided about requests to a zone, newest first.

    A page may have fewer events than `per_page`, even none, and still be followed by others: a search stops
    after some milliseconds of work and goes on from its cursor.
    """
    wanted = _wanted(query)
    api.barrier.read(lambda reader: zone_of(reader, zone_id))
    async with api.events_turn:
        found = await asyncio.to_thread(
            events.search, api.events_folder, zone_id, wanted, api.event_index.spans
        )
    info = EventsInfo(len(found.items), Cursors(found.after) if found.after else msgspec.UNSET)
    return Answer(envelope.success_with_info(found.items, info))


@route("GET", "/zones/{zone_id}/security/events/counts", permission="Zone WAF Read")
async def count_events(zone_id: str, api: AppContext) -> Counted:
    """How many events each rule had in the last day.

    Events that are new are counted within seconds. After a start of the server the newest files are read
    again: until all of them are, `complete` is false.
    """
    api.barrier.read(lambda reader: zone_of(reader, zone_id))
    return await _followed(api, lambda: api.event_index.rules_of(zone_id, api.now_us()))


@route("GET", "/zones/{zone_id}/security/events/scores", permission="Zone WAF Read")
async def list_scores(zone_id: str, api: AppContext) -> Kinds:
    """What the managed rules decided on in the last day, by which of them scored how much.

    So another level or threshold can be tried on a day's requests: it is a sum. `complete` as for the counts.
    """
    api.barrier.read(lambda reader: zone_of(reader, zone_id))
    return await _followed(api, lambda: api.event_index.kinds_of(zone_id, api.now_us()))


async def _followed(api: AppContext, read: Callable[[], T]) -> T:
    """What is known once some more lines were looked at, in one stay on another thread."""

    def do() -> T:
        api.event_index.follow(api.events_folder, api.now_us())
        return read()

    async with api.events_turn:
        return await asyncio.to_thread(do)


def _wanted(query: Query) -> Wanted:
    """Raises InvalidQuery."""
    members: dict[str, object] = {name: value for name in _EQUAL if (value := query.text(name))}
    status = query.whole("status")
    if status is not None:
        members["status"] = status
    after = query.text("cursor") or None
    if after is not None and not is_event_id(after):
        raise InvalidQuery(parameter="cursor", reason="no list has answered it")
    limit = query.whole("per_page")
    return Wanted(
        members=members,
        path_prefix=query.text("path_prefix") or "",
        since_us=_time(query, "since") or 0,
        until_us=_time(query, "until"),
        descending=query.choice("direction", ("asc", "desc"), "desc") == "desc",
        after=after,
        limit=EVENTS_PAGE_SIZE_DEFAULT if limit is None else max(1, min(limit, PAGE_SIZE_MAX)),
    )


def _time(query: Query, name: str) -> int | None:
    words = query.text(name)
    if not words:
        return None
    try:
        moment = datetime.fromisoformat(words[:_TIME_CHARACTERS_MAX])
    except ValueError:
        raise InvalidQuery(parameter=name, reason="a time such as 2026-01-02T03:04:05Z is expected") from None
    if moment.tzinfo is None:
        raise InvalidQuery(parameter=name, reason="a time needs a zone, such as Z") from None
    return max(0, int(moment.astimezone(UTC).timestamp() * 1_000_000))
