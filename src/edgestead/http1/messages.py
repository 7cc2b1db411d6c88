"""A request as it arrives, and the answer to it.

Owns  `Request`, its `Body`, `Response`.
Asks  `connection` to pause and go on while a body is read.
Tells an application's handler.
Not   routing; the bytes on the wire (`connection`).
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable

import msgspec

from edgestead.http1 import limits

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, in the order of arrival; a name may occur more than once."""


class BodyTooLarge(Exception):
    """The body has more bytes than the reader takes."""


class BodyBroken(Exception):
    """The peer went away, or was too slow, before the body was complete."""


class Body:
    """A request's body as a stream. `taken` is told how many bytes the reader took."""

    __slots__ = ("_broken", "_chunks", "_taken", "_waiter", "ended", "waiting_bytes")

    def __init__(self, taken: Callable[[], None]) -> None:
        self._chunks: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._taken = taken
        self._broken = False
        self.ended = False
        self.waiting_bytes = 0

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.waiting_bytes += len(chunk)
        self._wake()

    def end(self) -> None:
        self.ended = True
        if self._waiter is not None:
            self._wake()

    def break_off(self) -> None:
        if not self.ended:
            self._broken = True
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[bytes]:
        while True:
            while self._chunks:
                chunk = self._chunks.pop(0)
                self.waiting_bytes -= len(chunk)
                self._taken()
                yield chunk
            if self.ended:
                return
            if self._broken:
                raise BodyBroken
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(limits.BODY_SECONDS_MAX):
                    await self._waiter
            except TimeoutError:
                raise BodyBroken from None

    def taken_whole(self, bytes_max: int) -> bytes | None:
        """All of it, if all of it is here and not too large: most bodies come with their head."""
        if not self.ended or self.waiting_bytes > bytes_max:
            return None
        whole = b"".join(self._chunks)
        self._chunks.clear()
        self.waiting_bytes = 0
        return whole

    async def read(self, bytes_max: int) -> bytes:
        """All of it. Raises BodyTooLarge, BodyBroken."""
        whole = self.taken_whole(bytes_max)
        if whole is not None:
            return whole
        parts, total = [], 0
        async for chunk in self:
            total += len(chunk)
            if total > bytes_max:
                raise BodyTooLarge
            parts.append(chunk)
        return b"".join(parts)


class Request(msgspec.Struct):
    """One request. `target` is the request target as sent; `client` the peer's address."""

    method: str
    target: bytes
    headers: Headers
    client: str
    body: Body

    def header(self, name: bytes) -> bytes | None:
        """The first header of that lower-case name."""
        for found, value in self.headers:
            if found == name:
                return value
        return None


class Response(msgspec.Struct):
    """An answer. A body that is no bytes is streamed: in chunks, or to the connection's end for HTTP/1.0."""

    status: int = 200
    headers: Headers = []
    body: bytes | AsyncIterable[bytes] = b""
