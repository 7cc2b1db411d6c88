"""The world outside of a test's node: what `ctx.fetch` reaches.

Owns  handing a request to the test's function instead of a socket.
Not   requests to objects (`answers`).
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest.mock import patch

from edgestead.http1 import client
from edgestead.http1.client import Tcp, Unix
from edgestead.http1.head import Headers
from edgestead.objects.errors import FetchError
from edgestead.objects.runtime import outgoing
from edgestead.testing.answers import Answer


class OutgoingRequest(NamedTuple):
    """A request that an object makes. `headers` has lower-case names."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


Respond = Callable[[OutgoingRequest], Answer]


class Network:
    """`respond` answers; None is a world that nobody can reach."""

    def __init__(self) -> None:
        self.respond: Respond | None = None

    def installed(self) -> AbstractContextManager[object]:
        """Objects reach this instead of sockets, until the block ends."""
        return patch.object(outgoing, "exchange", self._exchange)

    async def _exchange(
        self, to: Tcp | Unix, method: str, target: bytes, headers: Headers, body: Any, **limits: Any
    ) -> client.Answer:
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        scheme = "https" if isinstance(to, Tcp) and to.tls is not None else "http"
        site = f"{scheme}://{named['host']}"
        if self.respond is None:
            raise FetchError(f"{site}: no network in a test; objects.on_fetch() answers")
        answer = self.respond(OutgoingRequest(method, site + target.decode(), named, body))
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
        return client.Answer(answer.status, sent, _once(answer.body))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
