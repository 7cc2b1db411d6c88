"""Questions and answers between two processes, many at once.

Owns  the frames, their numbers, what becomes of open questions when a connection ends.
Not   what a question means: bytes in, bytes out.

A frame is four bytes of length, eight of the question's number, and the body; an answer carries the number
of its question. Questions of one connection arrive in the order in which they were asked.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import Context
from struct import Struct
from typing import cast

FRAME_BYTES_MAX = 34 * 1024 * 1024  # the largest value or message, and what stands around it
OPEN_MAX = 10_000  # questions of one connection that are not answered yet

HEAD = Struct(">IQ")
log = logging.getLogger(__name__)

Answer = Callable[[bytes], Awaitable[bytes]]
Open = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Connects the protocol that it is given. Raises OSError."""


class Lost(ConnectionError):
    """The other process went away. Whether it acted on the question is not known."""


class _Frames(asyncio.Protocol, ABC):
    """Cuts the stream into frames; either end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start, size = 0, len(buffer)
        while size - start >= HEAD.size:
            length, number = HEAD.unpack_from(buffer, start)
            if length > FRAME_BYTES_MAX:
                log.error("a frame of %d bytes came from another process", length)
                self._abort()
                return
            end = start + HEAD.size + length
            if size < end:
                break
            self.received(number, bytes(buffer[start + HEAD.size : end]))
            start = end
        if start:
            del buffer[:start]

    @abstractmethod
    def received(self, number: int, body: bytes) -> None:
        """A whole frame has come."""

    def send(self, number: int, body: bytes) -> None:
        if self.transport is not None:
            self.transport.write(HEAD.pack(len(body), number) + body)

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Asking(_Frames):
    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, asyncio.Future[bytes]] = {}
        self.is_lost = False
        self._number = 0

    def ask(self, body: bytes) -> "asyncio.Future[bytes]":
        """Raises Lost: the connection may have ended between its making and this question."""
        if self.is_lost:
            raise Lost("the other process went away")
        self._number += 1
        future = self.open[self._number] = asyncio.get_running_loop().create_future()
        self.send(self._number, body)
        return future

    def received(self, number: int, body: bytes) -> None:
        future = self.open.pop(number, None)
        if future is not None and not future.done():
            future.set_result(body)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost, self.transport = True, None
        waiting, self.open = self.open, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(Lost("the other process went away"))


class Asker:
    """Asks the process behind one address; connects when it has something to ask, and again after a loss."""

    def __init__(self, to: str | Open) -> None:
        """`to` is the path of a Unix socket, or opens a connection elsewhere."""
        self._to = to
        self._connection: _Asking | None = None
        self._connecting: asyncio.Task[_Asking] | None = None

    async def ask(self, body: bytes) -> bytes:
        """The answer. Raises Lost, OSError when nobody listens or too many questions are open."""
        connection = self._connection
        if connection is None or connection.is_lost:
            connection = await self._connect()
        if len(connection.open) >= OPEN_MAX:
            raise OSError(f"{OPEN_MAX} questions are open already")
        return await connection.ask(body)

    async def _connect(self) -> _Asking:
        """One connection, however many ask for it at once."""
        if self._connecting is None:
            # in a context of its own: the connection is everybody's, not the first object's that asks
            self._connecting = asyncio.get_running_loop().create_task(self._open(), context=Context())
            self._connecting.add_done_callback(self._connected)
        return await asyncio.shield(self._connecting)

    async def _open(self) -> _Asking:
        if isinstance(self._to, str):
            _, made = await asyncio.get_running_loop().create_unix_connection(_Asking, self._to)
            return made
        made = _Asking()
        await self._to(lambda: made)
        return made

    def _connected(self, task: "asyncio.Task[_Asking]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._connection = task.result()

    def close(self) -> None:
        if self._connection is not None and self._connection.transport is not None:
            self._connection.transport.close()


class Answering(_Frames):
    """The end that answers. What still runs when the connection ends goes on; `answer` should not raise."""

    def __init__(self, answer: Answer, running: "set[asyncio.Task[None]]") -> None:
        super().__init__()
        self._answer, self._running = answer, running

    def received(self, number: int, body: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(number, body))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, number: int, body: bytes) -> None:
        try:
            answer = await self._answer(body)
        except Exception:  # without an answer its asker would wait for ever
            log.exception("a question of another process could not be answered")
            self._abort()
        else:
            self.send(number, answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
