"""The REST face as an ASGI application.

Owns  `create_app`: routes and steps put together; the lifespan handshake.
Asks  `api.pipeline`.
Tells uvicorn.
Not   sockets and processes (`server`); what a route does.
"""

from edgestead.api import (  # noqa: F401 - importing them fills ROUTES
    accounts,
    custom_nameservers,
    deprecations,
    dns_records,
    dns_settings,
    ended,
    health,
    history,
    kv_bulk,
    kv_namespaces,
    kv_values,
    openapi_routes,
    rulesets,
    security_events,
    tokens,
    zone_extras,
    zone_files,
    zone_settings,
    zones,
)
from edgestead.api.asgi import Receive, Scope, Send
from edgestead.api.context import AppContext
from edgestead.api.exchange import Exchange
from edgestead.api.pipeline import request_steps, run
from edgestead.api.routing import ROUTES, Router


class Application:
    """An ASGI 3 application over one context. Speaks `http` and `lifespan`."""

    def __init__(self, context: AppContext) -> None:
        self.context = context
        self._steps = request_steps(Router((*ROUTES, *ended.OTHER_METHODS)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await run(self._steps, Exchange(self.context, scope, receive), send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)


def create_app(context: AppContext) -> Application:
    return Application(context)


async def _live(receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
