"""The dashboard in the test's own process: real pages, real API, a real store, no socket.

Passwords cost next to nothing here: what scrypt takes is no part of any of these tests.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgestead.http1.head import by_name
from edgestead.http1.messages import Body, Request
from edgestead.web.issuer import Provider
from edgestead.web.samples import Samples
from edgestead.web.sessions import Sessions
from edgestead.web.site import Site
from tests.support.api import CREDENTIALS, LocalApi, received
from tests.web.conftest import Page, Visitor

HOST = "localhost"


class LocalSite:
    """A server as `Visitor` asks one."""

    def __init__(self, folder: Path, provider: Provider | None = None, **api: Any) -> None:
        self.api = LocalApi(folder, **api)
        self.folder = folder
        self.ready = {"api_base": f"http://{HOST}/client/v4", "api_token": CREDENTIALS.api_token}
        self.account = f"/accounts/{CREDENTIALS.account_id}"
        context = self.api.app.context
        self.sessions = sessions = Sessions(context.now_us)
        self.samples = samples = Samples(context.metrics, float)
        self.site = Site(self.api.app, context, sessions, samples, provider=provider)
        self.call = self.api.call
        self.guesses = 0
        context.guesses._counted = self._count

    def _count(self) -> None:
        self.guesses += 1

    def before(self, changes: tuple[str, ...], body: object, method: str, path: str) -> None:
        """Somebody else sends that right before the first request of a page with one of these methods."""
        application = self.site._application

        async def after_somebody_else(request: Request) -> Any:
            if request.method in changes:
                self.site._application = application
                await self.api.call_async(method, path, body)
            answer = application(request)
            return await answer if hasattr(answer, "__await__") else answer

        self.site._application = after_somebody_else

    def make_zone(self, name: str) -> str:
        return str(self.api.post("/zones", {"name": name}).result["id"])

    def ask(self, method: str, path: str, body: str | None, headers: dict[str, str], client: str) -> Any:
        octets = (body or "").encode()
        named = {name.lower(): value for name, value in headers.items()}
        sent = {"host": HOST, "content-length": str(len(octets)), **named}
        head = [(name.encode(), value.encode()) for name, value in sent.items()]
        incoming = Body(lambda: None)
        if octets:
            incoming.feed(octets)
        incoming.end()
        request = Request(method, path.encode(), head, client, incoming, by_name(head))

        async def asked() -> Any:
            answer = self.site(request)
            response = answer if not hasattr(answer, "__await__") else await answer
            return await received(response, method)

        (answer,) = self.api.together(asked())
        return answer

    def open_stream(self, path: str, cookie: str) -> Any:
        """The events of a stream, of which the first, that opens it, has come."""
        head = [(b"host", HOST.encode()), (b"cookie", cookie.encode())]
        body = Body(lambda: None)
        body.end()
        request = Request("GET", path.encode(), head, "127.0.0.1", body, by_name(head))

        async def opened() -> Any:
            answer: Any = self.site(request)
            response = await answer
            await anext(response.body)
            return response.body

        (events,) = self.api.together(opened())
        return events

    def next_of(self, events: Any) -> bytes:
        """The event that a new sample brings; empty at the stream's end."""

        async def arrived() -> bytes:
            coming = asyncio.ensure_future(anext(events, b""))
            await asyncio.sleep(0)
            self.samples.take()
            return await coming

        (octets,) = self.api.together(arrived())
        return octets

    def close(self) -> None:
        self.api.close()


class _Arrived(NamedTuple):
    """As http.client has an answer."""

    status: int
    headers: Mapping[str, str]

    def getheaders(self) -> list[tuple[str, str]]:
        return list(self.headers.items())


class LocalVisitor(Visitor):
    """`client` is the address of the browser."""

    def __init__(self, server: LocalSite, client: str = "127.0.0.1") -> None:
        super().__init__(server)
        self.client = client

    def ask(self, method, path, body=None, **headers):
        sent = {"Accept": "text/html", **self.cookies, **headers}
        answer = self.server.ask(method, path, body, sent, self.client)
        return self.kept(Page(_Arrived(answer.status, answer.headers), answer.body))
