"""A request as it arrives, and the answer to it.

Owns  `Request`, its `Body`, `Response` and the bytes of its head.
Not   routing; the order of requests and answers (`connection`).
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec

from edgestead.http1 import limits
from edgestead.http1.head import Headers
from edgestead.http1.limits import CHUNK_BYTES

_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}
NO_BODY = frozenset({204, 304})  # a body would be read as the next answer (RFC 9112 §6.3)


class BodyTooLarge(Exception):
    """The body has more bytes than the reader takes."""


class BodyBroken(Exception):
    """The peer went away, or was too slow, before the body was complete."""


class Body:
    """A request's body as a stream for one reader.

    `taken` is called when the reader took bytes, `wanted` once when it has to wait for the first of them.
    `guard` is awaited with each portion that is read and at the end; what it raises the reader gets.
    `held_bytes` is what it takes in memory: what waits to be read, and what a reader of all of it has read.
    """

    __slots__ = (
        "_broken",
        "_chunks",
        "_is_kept",
        "_taken",
        "_waiter",
        "ended",
        "guard",
        "held_bytes",
        "waiting_bytes",
        "wanted",
    )

    def __init__(
        self, taken: Callable[[], None], wanted: Callable[[], None] | None = None, *, ended: bool = False
    ) -> None:
        self._chunks: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._taken = taken
        self._broken = False
        self.wanted = wanted
        self.guard: Callable[[], Awaitable[None]] | None = None
        self.ended = ended
        self._is_kept = False  # what is read is held until its request is answered
        self.waiting_bytes = self.held_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the peer should send no more for now. A chunk of an octet takes as much as one of 64."""
        return self.waiting_bytes + len(self._chunks) * CHUNK_BYTES > limits.BODY_BUFFER_BYTES

    def keep(self) -> None:
        """A reader of all of it keeps what it reads until the request is answered."""
        self._is_kept = True

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.waiting_bytes += len(chunk)
        self.held_bytes += len(chunk) + CHUNK_BYTES
        self.wanted = None
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

    async def portion(self) -> bytes:
        """What arrived next, b"" at the end; however long that takes. Raises BodyBroken."""
        while not self._chunks and not self.ended:
            if self._broken:
                raise BodyBroken
            if self.wanted is not None:
                wanted, self.wanted = self.wanted, None
                wanted()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        chunk = b""
        if self._chunks:
            chunk = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
            self.held_bytes -= len(self._chunks) * CHUNK_BYTES + (0 if self._is_kept else self.waiting_bytes)
            self._chunks.clear()
            self.waiting_bytes = 0
            self._taken()
        if self.guard is not None:
            await self.guard()
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Its portions, each within BODY_SECONDS_MAX. Raises BodyBroken."""
        while True:
            if self._chunks or self.ended:
                chunk = await self.portion()
            else:
                try:
                    async with asyncio.timeout(limits.BODY_SECONDS_MAX):
                        chunk = await self.portion()
                except TimeoutError:
                    raise BodyBroken from None
            if not chunk:
                return
            yield chunk

    def taken_whole(self, bytes_max: int) -> bytes | None:
        """All of it, if all of it is here and not too large: most bodies come with their head.

        Past the guard: for a reader that has just asked what it would ask.
        """
        if not self.ended or self.waiting_bytes > bytes_max:
            return None
        whole = b"".join(self._chunks)
        self._chunks.clear()
        self.waiting_bytes = 0
        return whole

    async def read(self, bytes_max: int) -> bytes:
        """All of it. Raises BodyTooLarge, BodyBroken."""
        if self.guard is None and (whole := self.taken_whole(bytes_max)) is not None:
            return whole
        self.keep()
        whole_so_far = bytearray()  # no list: a portion may be an octet
        async for chunk in self:
            if len(whole_so_far) + len(chunk) > bytes_max:
                raise BodyTooLarge
            whole_so_far += chunk
        return bytes(whole_so_far)

    async def arrived(self, bytes_max: int) -> None:
        """Wait until all of it is here for `taken_whole`. Raises BodyTooLarge, BodyBroken."""
        self._chunks = [await self.read(bytes_max)]  # which is held already
        self.waiting_bytes = len(self._chunks[0])


class Request(msgspec.Struct):
    """One request. `target` is a path with its query, `client` the peer's address, `found` `head.by_name`.

    `keep_alive` is what the client asks for, `is_old` a client of HTTP/1.0. `admitted` belongs to whoever
    answers: what the client was let in by. `interface` is what the client uses, for logs: no header says it.
    """

    method: str
    target: bytes
    headers: Headers
    client: str
    body: Body
    found: dict[bytes, bytes] = {}
    keep_alive: bool = True
    is_old: bool = False
    admitted: Any = None
    interface: str = "API"

    # what its connection asks (`connection.Incoming`)

    @property
    def upgrades(self) -> bool:
        return False

    @property
    def held_bytes(self) -> int:
        return self.body.held_bytes

    drawn_bytes = held_bytes

    @property
    def is_full(self) -> bool:
        return self.body.is_full

    def body_piece(self, piece: bytes) -> None:
        self.body.feed(piece)

    def body_end(self) -> None:
        self.body.end()

    def unreadable(self, status: int, reason: str) -> None:
        self.body.break_off()

    def client_gone(self) -> None:
        self.body.break_off()

    # what applications ask

    def header(self, name: bytes) -> bytes | None:
        """The first header of that lower-case name."""
        for found, value in self.headers:
            if found == name:
                return value
        return None


def _nothing(error: BaseException | None) -> None: ...


class Response(msgspec.Struct):
    """An answer. A body that is no bytes is streamed.

    A stream goes with its `length` where that is known, else in chunks, or to the connection's end for
    HTTP/1.0. `done` is called when it is sent, or will not be sent to its end; with the error of its source.
    `close` ends the connection behind it. Names of headers are in lower case.
    """

    status: int = 200
    headers: Headers = []
    body: bytes | AsyncIterable[bytes] = b""
    length: int | None = None
    close: bool = False
    done: Callable[[BaseException | None], Any] = _nothing

    def head(self, *, keep_alive: bool, is_old: bool = False, date_line: bytes = b"") -> bytes:
        """Its bytes before the body."""
        head = _STATUS_LINES.get(self.status) or b"HTTP/1.1 %d \r\n" % self.status
        for name, value in self.headers:
            head += name + b": " + value + b"\r\n"
        body = self.body
        if self.status in NO_BODY:
            pass  # nor do they speak of a length (RFC 9110 §8.6)
        elif isinstance(body, bytes):
            head += b"content-length: %d\r\n" % len(body)
        elif self.length is not None:
            head += b"content-length: %d\r\n" % self.length
        elif not is_old:
            head += b"transfer-encoding: chunked\r\n"
        if b"\r\ndate: " not in head:
            head += date_line
        if not keep_alive:
            head += b"connection: close\r\n"
        elif is_old:
            head += b"connection: keep-alive\r\n"
        return head + b"\r\n"
