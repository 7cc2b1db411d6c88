"""What happens to every request, in order.

Owns  the two lists of steps, and each step that is not a module of its own.
Asks  `api.credentials`, `api.body`, `api.routing`; `services.access` for decisions; the handler.
Tells the log, the counters and the client.
Not   what a route does.

A step takes the exchange and returns None, or an awaitable that is awaited before the next one. The first
refusal ends REQUEST; ANSWER always runs. The route is known before the credentials are read, because it
says which refusals its family speaks: whoever asks for a path that does not exist learns only that.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import CoroutineType

from edgestead.api import body, credentials
from edgestead.api.asgi import Send
from edgestead.api.deprecation import headers_of
from edgestead.api.deprecations import note_members, note_path
from edgestead.api.direct import EXTENSION, FIXED_HEADERS
from edgestead.api.exchange import Exchange
from edgestead.api.log import log_one_line
from edgestead.api.query import Query
from edgestead.api.request_id import HEADER, request_ids
from edgestead.api.routing import Answer, Download, Router
from edgestead.changes import OLDEST, changed
from edgestead.model import envelope
from edgestead.model.access_errors import (
    InvalidApiToken,
    MembershipsNeedUser,
    TokenNotUsableNow,
    UserNeeded,
)
from edgestead.model.call import Call
from edgestead.model.counters import slot
from edgestead.model.errors import EdgeError, Gone
from edgestead.model.request_errors import (
    AmbiguousLength,
    AsOfRefused,
    BodyTooSlow,
    InternalError,
    RateLimited,
    ServerEnds,
)
from edgestead.services import access

Step = Callable[[Exchange], Awaitable[None] | None]

_NOTHING: Mapping[str, object] = {}
_REQUESTS = slot("edge_api_requests_total", "1xx") - 1  # plus the first digit of the status
_SECONDS = slot("edge_api_request_seconds")
_MICROSECONDS_A_DAY = 86_400_000_000

_ENDING = (AmbiguousLength, BodyTooSlow, ServerEnds)
_next_request_id = request_ids(secrets.randbits(64))
_days: dict[int, date] = {}


def give_request_id(exchange: Exchange) -> None:
    exchange.request_id = _next_request_id()


def refuse_ambiguous_length(exchange: Exchange) -> None:
    """The server's own parser refuses these before (`api.framing`); other ASGI servers may not."""
    headers = exchange.headers
    if b"transfer-encoding" in headers and b"content-length" in headers:
        raise AmbiguousLength


def find_route(router: Router) -> Step:
    def step(exchange: Exchange) -> None:
        scope = exchange.scope
        raw_path = scope["raw_path"].decode("ascii")
        exchange.route, exchange.parameters = router.find(scope["method"], raw_path)

    return step


def authenticate(exchange: Exchange) -> None:
    route = exchange.route
    exchange.now_us = exchange.api.now_us()
    if route.public:
        return
    identity = credentials.identify(exchange.headers, exchange.api.access, route.family)
    exchange.identity = identity
    if identity.actor.token_id is not None:
        if identity.actor.kind == "account" and route.user_only:
            raise _user_needed(exchange)
        try:
            access.check_usable(identity, exchange.now_us, exchange.client_address)
        except TokenNotUsableNow:
            if route.family is not access.VERIFY:
                raise
            raise InvalidApiToken from None
        exchange.api.uses.note(identity.actor.token_id, exchange.now_us)


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


def authorise(exchange: Exchange) -> None:
    route = exchange.route
    if route.permission is None or exchange.identity.full:
        return
    identity, parameters = exchange.identity, exchange.parameters
    if route.zone_at is not None:
        zone_id = parameters[route.zone_at]
        target = exchange.api.barrier.read_one(lambda reader: access.zone_target(reader, zone_id))
    elif route.account_at is not None:
        target = access.Target(account_id=parameters[route.account_at])
    elif route.user_only:
        target = access.Target(user_id=identity.actor.id)
    else:
        if not access.permits_somewhere(identity, route.permission):
            raise route.family.denied
        return
    if not access.permits(identity, route.permission, target):
        raise route.family.denied


def tell_of_change(exchange: Exchange) -> None:
    """From its day on, what a date replaced says so in every answer. `api.ended` speaks for itself."""
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
        exchange.query = Query(exchange.scope["query_string"])
    return None if route.body is None else _decode_body(exchange)


async def _decode_body(exchange: Exchange) -> None:
    route = exchange.route
    body.check_content_type(exchange.headers)
    octets = await body.read(exchange.receive, exchange.headers, route.body_bytes_max)
    exchange.body = body.decode(octets, route.body, route.family.not_json)
    if route.watches:
        note_members(exchange, octets)


def call_handler(exchange: Exchange) -> Awaitable[None] | None:
    route = exchange.route
    result = route.handler(*exchange.parameters, *route.arguments(exchange))
    if isinstance(result, CoroutineType):
        return _keep_result(exchange, result)
    exchange.result = result
    return None


async def _keep_result(exchange: Exchange, pending: Awaitable[object]) -> None:
    exchange.result = await pending


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


def count(exchange: Exchange) -> None:
    counters = exchange.api.counters
    counters.add(_REQUESTS + exchange.status // 100)
    counters.observe(_SECONDS, (time.perf_counter_ns() - exchange.started_ns) // 1000)


def request_steps(router: Router) -> tuple[Step, ...]:
    """Until the handler has answered, or a step refuses."""
    return (
        give_request_id,
        refuse_ambiguous_length,
        find_route(router),
        authenticate,
        limit_rate,
        read_as_of_date,
        authorise,
        tell_of_change,
        decode,
        call_handler,
    )


async def run(steps: tuple[Step, ...], exchange: Exchange, send: Send) -> None:
    """One request, from its head to its log line."""
    try:
        for step in steps:
            pending = step(exchange)
            if pending is not None:
                await pending
    except EdgeError as refusal:
        exchange.error = refusal
    except body.Disconnected:
        _log_unanswered(exchange)
        return
    except asyncio.CancelledError:
        _leave(exchange)
        return
    except Exception as fault:
        exchange.fault = fault
        exchange.error = InternalError(request_id=exchange.request_id)
    wrap_in_envelope(exchange)
    try:
        await send_answer(exchange, send)
    except asyncio.CancelledError:
        _leave(exchange)
        return
    count(exchange)
    log_one_line(exchange)


def _leave(exchange: Exchange) -> None:
    """The server ends while this waits: what was asked may still happen, so no answer would be true."""
    cycle = exchange.scope.get("extensions", _NOTHING).get(EXTENSION)
    if cycle is not None:
        cycle.disconnected = True
        cycle.transport.close()
    _log_unanswered(exchange)


def _log_unanswered(exchange: Exchange) -> None:
    exchange.status = 0
    log_one_line(exchange, "disconnected")


async def send_answer(exchange: Exchange, send: Send) -> None:
    request_id = exchange.request_id.encode("ascii")
    cycle = exchange.scope.get("extensions", _NOTHING).get(EXTENSION)
    if cycle is not None and exchange.download is None and exchange.status != 204:
        written = exchange.api.outbox.answer(
            cycle,
            exchange.status,
            exchange.content_type,
            request_id,
            exchange.answer_headers,
            exchange.answer,
        )
        if written:
            return
    headers = (
        (b"content-type", exchange.content_type),
        (b"content-length", b"%d" % exchange.answer_bytes),
        (HEADER, request_id),
        *FIXED_HEADERS,
        *exchange.answer_headers,
    )
    if exchange.status == 204:
        headers = headers[2:]  # RFC 9110 §8.6: nothing is said of a body that cannot be there
    await send({"type": "http.response.start", "status": exchange.status, "headers": headers})
    if exchange.download is not None:
        await _send_download(exchange, exchange.download, send)
    else:
        await send({"type": "http.response.body", "body": exchange.answer})


async def _send_download(exchange: Exchange, download: Download, send: Send) -> None:
    """Send it piece by piece. After a failure the body stays incomplete, and the server closes the
    connection: the client sees that bytes are missing.
    """
    try:
        if exchange.scope["method"] != "HEAD":
            async for chunk in download.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})
    except Exception as fault:
        exchange.fault = fault
    finally:
        download.close()


def _headers_of(error: EdgeError) -> tuple[tuple[bytes, bytes], ...]:
    if error.status == 405:
        return ((b"allow", error.facts["allow"].encode("ascii")),)
    if isinstance(error, RateLimited | Gone):
        headers: tuple[tuple[bytes, bytes], ...] = error.facts["headers"]
        return headers
    if error.status == 413 or isinstance(error, _ENDING):
        return ((b"connection", b"close"),)  # what follows on this connection is not a request
    if error.status in (429, 503):
        return ((b"retry-after", b"1"),)
    return ()


def _user_needed(exchange: Exchange) -> EdgeError:
    if exchange.route.family is access.VERIFY:
        return InvalidApiToken()
    return MembershipsNeedUser() if "/memberships" in exchange.route.path else UserNeeded()


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
