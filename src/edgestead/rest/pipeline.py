"""What happens to every request, in order.

Owns  the two lists of steps, and each step that is not a module of its own.
Not   what a route does.

A step takes the exchange and returns None, or an awaitable that is awaited before the next one. A request
whose steps never wait is answered without a task: most that only read are. The first refusal ends the steps;
whatever happens an answer, a count and a line follow. The route is known before the credentials are read,
because it says which refusals its family speaks: a caller of a path that does not exist learns only that.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime, timedelta
from types import CoroutineType
from typing import Any

from edgestead.changes import OLDEST, changed
from edgestead.http1.messages import Response
from edgestead.model import envelope
from edgestead.model.budgets.ledger import Refusal
from edgestead.model.call import Call
from edgestead.model.counters import slot
from edgestead.model.refusals import NO_SPACE_ERRNOS, DiskFull, EdgeError, Gone
from edgestead.model.refusals.request import (
    AsOfRefused,
    BodyTooSlow,
    InternalError,
    OverBudget,
    RateLimited,
    ServerEnds,
)
from edgestead.rest import body
from edgestead.rest.deprecation import headers_of
from edgestead.rest.exchange import Exchange
from edgestead.rest.log import log_one_line
from edgestead.rest.query import Query
from edgestead.rest.request_id import HEADER, request_ids
from edgestead.rest.rights import authenticate, authorise, look_again
from edgestead.rest.routes.deprecations import note_members, note_path
from edgestead.rest.routing import Answer, Download, Router

Step = Callable[[Exchange], Awaitable[None] | None]

FIXED_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_REQUESTS = slot("edge_api_requests_total", "1xx") - 1  # plus the first digit of the status
_SECONDS = slot("edge_api_request_seconds")
_MICROSECONDS_A_DAY = 86_400_000_000

_ENDING = (BodyTooSlow, ServerEnds)
_next_request_id = request_ids(secrets.randbits(64))
BEHIND = b"edge-behind"  # nodes that answer without this write: they are cut off, or catch up
_days: dict[int, date] = {}


def give_request_id(exchange: Exchange) -> None:
    exchange.request_id = _next_request_id()


def find_route(router: Router) -> Step:
    def step(exchange: Exchange) -> None:
        raw_path = exchange.raw_path.decode("ascii")
        exchange.route, exchange.parameters = router.find(exchange.request.method, raw_path)

    return step


def limit_rate(exchange: Exchange) -> None:
    """The quota of whoever asks, where there is one."""
    quota = exchange.api.quota
    if quota is not None and not exchange.route.public:
        exchange.standing_headers = quota.take(exchange.identity.actor.id, exchange.now_us)


def read_as_of_date(exchange: Exchange) -> None:
    """The date whose behaviour is asked for: the server's, or the header's where that is allowed."""
    if exchange.route.public:
        return
    api = exchange.api
    today = _day(exchange.now_us)
    as_of = api.as_of or today
    header = exchange.headers.get(b"edge-as-of")
    if header is not None:
        as_of = _as_of_header(header, today, api.allow_as_of)
    exchange.call = Call(
        actor=exchange.identity.actor,
        as_of=as_of,
        profile=api.profile,
        now_us=exchange.now_us,
        request_id=exchange.request_id,
    )


def go_back(exchange: Exchange) -> None:
    """Before the day that ended it a product answers, where it is a view of what there is today."""
    route = exchange.route
    if route.before is not None and route.change is not None:
        if not changed(route.change.subject, exchange.call.as_of):
            exchange.route = route.before


def take_room(exchange: Exchange) -> None:
    """Before the body is read: on a full disk nothing is added, and what frees some of it goes on."""
    adds = exchange.route.adds
    if adds is not None:
        exchange.api.take_room(adds, body.announced_length(exchange.headers))


def tell_of_change(exchange: Exchange) -> None:
    """From its day on, what a date replaced says so in every answer; `rest.routes.ended` says more."""
    route = exchange.route
    change = route.change
    if change is None:
        return
    note_path(exchange)
    if not route.has_ended and changed(change.subject, exchange.call.as_of):
        ids = dict(zip(route.parameters, exchange.parameters, strict=True))
        exchange.standing_headers += headers_of(change, ids)


def decode(exchange: Exchange) -> Awaitable[None] | None:
    route = exchange.route
    if route.wants_query:
        exchange.query = Query(exchange.query_string)
    if route.body is None:
        return None
    body.check_content_type(exchange.headers)
    octets = body.here(exchange.request.body, exchange.headers, route.body_bytes_max)
    if octets is None:
        return _decode_later(exchange)
    _decoded(exchange, octets)
    return None


async def _decode_later(exchange: Exchange) -> None:
    octets = await body.read(exchange.request.body, exchange.route.body_bytes_max)
    look_again(exchange)
    _decoded(exchange, octets)


def _decoded(exchange: Exchange, octets: bytes) -> None:
    route = exchange.route
    exchange.body = body.decode(octets, route.body, route.family.not_json)
    if route.watches:
        note_members(exchange, octets)


def call_handler(exchange: Exchange) -> Awaitable[None] | None:
    route = exchange.route
    result = exchange.result = route.handler(*exchange.parameters, *route.arguments(exchange))
    if isinstance(result, CoroutineType):
        return _keep_result(exchange, result)
    return None


async def _keep_result(exchange: Exchange, pending: Awaitable[object]) -> None:
    result = exchange.result = await pending
    if exchange.route.adds is None:  # it only reads, and what it waited for may be newer than the right
        try:
            look_again(exchange)
        except EdgeError:
            if isinstance(result, Download):
                result.close()
            raise


def wrap_in_envelope(exchange: Exchange) -> None:
    error = exchange.error
    if error is not None:
        exchange.status = error.status
        exchange.answer = envelope.failure(error)
        exchange.answer_headers = exchange.standing_headers + _headers_of(error)
        return
    result = exchange.result
    if isinstance(result, envelope.Page):
        exchange.answer = envelope.success_page(result)
    elif isinstance(result, Answer):
        exchange.status, exchange.content_type = result.status, result.content_type
        exchange.answer_headers = result.headers
        exchange.answer = envelope.success(result.result) if result.body is None else result.body
    elif isinstance(result, Download):
        exchange.content_type, exchange.answer_headers = result.content_type, result.headers
        exchange.download = result
    else:
        exchange.answer = envelope.success(result)
    if exchange.standing_headers:
        exchange.answer_headers += exchange.standing_headers
    if exchange.route.adds is not None and (behind := exchange.api.behind()):
        exchange.answer_headers += ((BEHIND, ", ".join(behind).encode("ascii")),)


def count(exchange: Exchange) -> None:
    counters = exchange.api.counters
    counters.add(_REQUESTS + exchange.status // 100)
    counters.observe(_SECONDS, (time.perf_counter_ns() - exchange.started_ns) // 1000)


def request_steps(router: Router) -> tuple[Step, ...]:
    """Until the handler has answered, or a step refuses."""
    return (
        give_request_id,
        find_route(router),
        authenticate,
        limit_rate,
        read_as_of_date,
        go_back,
        authorise,
        take_room,
        tell_of_change,
        decode,
        call_handler,
    )


def run(steps: tuple[Step, ...], exchange: Exchange) -> Response | Coroutine[Any, Any, Response | None]:
    """One request, from its head to its log line."""
    rest = iter(steps)
    try:
        for step in rest:
            pending = step(exchange)
            if pending is not None:
                return _run_on(rest, pending, exchange)
    except Exception as error:
        _refuse(exchange, error)
    return answer(exchange)


def _waits(exchange: Exchange) -> AbstractContextManager[Refusal | None]:
    """Draws on the budget of who asks. A request that never waits costs nobody a place."""
    if exchange.route.public:
        return nullcontext()
    actor = exchange.identity.actor
    return exchange.api.draws.requests.drawn(actor.token_id or actor.id)


async def _run_on(rest: Iterator[Step], pending: Awaitable[None], exchange: Exchange) -> Response | None:
    """What is left of the steps, once one of them has to wait. None is no answer."""
    try:
        with _waits(exchange) as refusal:
            if refusal is not None:
                for begun in (pending, getattr(exchange, "result", None)):
                    if isinstance(begun, CoroutineType):
                        begun.close()  # it has not run
                raise OverBudget(reason=refusal.reason)
            await pending
            for step in rest:
                next_pending = step(exchange)
                if next_pending is not None:
                    await next_pending
    except (body.Disconnected, asyncio.CancelledError):
        # The client left, or the server ends while this waits: what was asked may still happen, so no answer
        # would be true.
        exchange.status = 0
        log_one_line(exchange, "disconnected")
        return None
    except Exception as error:
        _refuse(exchange, error)
    return answer(exchange)


def _refuse(exchange: Exchange, error: Exception) -> None:
    if isinstance(error, EdgeError):
        # Its frames hold the exchange, with the body and its file, until a collection of all objects.
        exchange.error = error.with_traceback(None)
        error.__context__ = error.__cause__ = None
        return
    exchange.fault = error
    full = isinstance(error, OSError) and error.errno in NO_SPACE_ERRNOS
    exchange.error = DiskFull() if full else InternalError(request_id=exchange.request_id)


def answer(exchange: Exchange) -> Response:
    """The answer, counted and logged; of a download, once it is sent."""
    wrap_in_envelope(exchange)
    download, error = exchange.download, exchange.error
    headers = [
        (b"content-type", exchange.content_type),
        (HEADER, exchange.request_id.encode("ascii")),
        *FIXED_HEADERS,
        *exchange.answer_headers,
    ]
    if exchange.status == 204:
        del headers[0]  # RFC 9110 §8.6: nothing is said of a body that cannot be there
    ends = error is not None and (error.status == 413 or isinstance(error, _ENDING))
    if download is None:
        _finish(exchange)
        return Response(exchange.status, headers, exchange.answer, close=ends)

    def sent(fault: BaseException | None) -> None:
        exchange.fault = fault
        download.close()
        _finish(exchange)

    return Response(exchange.status, headers, download.chunks, length=download.length, done=sent)


def _finish(exchange: Exchange) -> None:
    count(exchange)
    log_one_line(exchange)
    exchange.fault = None  # with its frames


def _headers_of(error: EdgeError) -> tuple[tuple[bytes, bytes], ...]:
    if error.status == 405:
        return ((b"allow", error.facts["allow"].encode("ascii")),)
    if isinstance(error, RateLimited | Gone):
        headers: tuple[tuple[bytes, bytes], ...] = error.facts["headers"]
        return headers
    if isinstance(error, DiskFull):
        return ((b"x-should-retry", b"false"),)  # SDKs would try what has a 5xx twice again
    if error.status in (429, 503):
        return ((b"retry-after", b"%d" % error.facts.get("seconds", 1)),)
    return ()


def _day(now_us: int) -> date:
    """The UTC day of a time; the last one is kept, because it is nearly always asked for again."""
    number = now_us // _MICROSECONDS_A_DAY
    day = _days.get(number)
    if day is None:
        _days.clear()
        day = _days[number] = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)).date()
    return day


def _as_of_header(header: bytes, today: date, allowed: bool) -> date:
    if not allowed:
        raise AsOfRefused(reason="this server does not allow it (--allow-as-of).")
    try:
        as_of = date.fromisoformat(header.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        raise AsOfRefused(reason="a date is written YYYY-MM-DD.") from None
    if not OLDEST <= as_of <= today:
        raise AsOfRefused(reason=f"it must lie from {OLDEST} to today.")
    return as_of
