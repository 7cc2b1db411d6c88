"""The REST face as an application of `http1.server`.

Owns  `Application`: routes and steps put together; the words, counts and log lines of what is no request.
Not   sockets and processes (`server`); what a route does.
"""

import secrets
from collections.abc import Coroutine
from functools import cache
from typing import Any

from edgestead.http1.messages import Request, Response
from edgestead.model import envelope
from edgestead.model.counters import slot
from edgestead.model.refusals.request import unreadable
from edgestead.rest.context import AppContext
from edgestead.rest.exchange import Exchange
from edgestead.rest.pipeline import FIXED_HEADERS, request_steps, run
from edgestead.rest.request_id import HEADER, request_ids
from edgestead.rest.request_line import ConnectionLine
from edgestead.rest.routes import (  # noqa: F401 - importing them fills ROUTES
    access_rules,
    accounts,
    agent_rules,
    audit_logs,
    catalogs,
    certificate_packs,
    custom_certificates,
    custom_nameservers,
    deprecations,
    dns_records,
    dns_settings,
    ended,
    followed_catalogs,
    health,
    history,
    ips,
    kv_bulk,
    kv_namespaces,
    kv_values,
    lockdowns,
    objects,
    objects_node,
    openapi,
    origin_certificates,
    outgoing_transfers,
    rulesets,
    secondary_zones,
    security_events,
    tokens,
    tsig_keys,
    zone_extras,
    zone_files,
    zone_settings,
    zones,
)
from edgestead.rest.routing import CONTROL, Router, rows_of

_FRAMING = slot("edge_api_unreadable_total", "framing")
_READER_TOO_SLOW = slot("edge_api_unreadable_total", "reader_too_slow")
_COUNTED = {
    408: slot("edge_api_unreadable_total", "head_too_slow"),
    429: slot("edge_api_unreadable_total", "no_place"),
    431: slot("edge_api_unreadable_total", "head_too_large"),
    503: slot("edge_api_unreadable_total", "no_place"),
}
_next_request_id = request_ids(secrets.randbits(64))


@cache
def _router(metrics_open: bool) -> Router:
    table = rows_of(CONTROL)
    if not metrics_open:
        table = health.without_open_metrics(table)
    return Router((*table, *ended.OTHER_METHODS))


class Application:
    """Answers requests over one context. Used by one event loop."""

    def __init__(self, context: AppContext) -> None:
        self.context = context
        self._steps = request_steps(_router(context.metrics_open))

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response | None]:
        return run(self._steps, Exchange(self.context, request))

    def refuse(self, status: int, reason: str, client: str) -> Response:
        """Bytes that are no request, or a connection too many: in the envelope, counted, logged."""
        error = unreadable(status, reason)
        request_id = self._note(_COUNTED.get(status, _FRAMING), error.message, client, error.code)
        headers = [
            (b"content-type", b"application/json"),
            (HEADER, request_id.encode("ascii")),
            *FIXED_HEADERS,
            *(((b"retry-after", b"1"),) if status in (429, 503) else ()),
        ]
        return Response(status, headers, envelope.failure(error))

    def stalled(self, client: str) -> None:
        """A connection was given up."""
        self._note(_READER_TOO_SLOW, "its client does not read its answers", client)

    def _note(self, counter: int, reason: str, client: str, code: int = 0) -> str:
        """The id of a request that there was not quite."""
        context, request_id = self.context, _next_request_id()
        context.counters.add(counter)
        context.log(ConnectionLine("refused", context.now_us(), request_id, client, reason, code))
        return request_id
