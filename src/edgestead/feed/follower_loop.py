"""Following the feed on an event loop, between the loop's other work.

Owns  the connection to control, and reconnecting.
Not   the loop's other tasks: they run after every slice.
"""

import asyncio
import logging
import socket

from edgestead.feed.follower import RECONNECT_MS, Follower, Position
from edgestead.feed.follower_thread import DESCRIPTORS_MAX, READ_BYTES
from edgestead.feed.protocol import ProtocolError

log = logging.getLogger(__name__)


class LoopFollower:
    def __init__(self, address: str, follower: Follower) -> None:
        """`address` is the feed's Unix socket: a path, or an abstract name that begins with a NUL."""
        self._address = address
        self._follower = follower
        self._may_serve = asyncio.Event()
        self.control_went = asyncio.Event()  # set whenever the connection ends; cleared by the waiting task

    @property
    def applied(self) -> int:
        """The last sequence that is visible in every answer; -1 before the first snapshot."""
        return self._follower.applied

    @property
    def position(self) -> Position:
        """The consumer's position after the last complete message."""
        return self._follower.position

    async def wait_until_may_serve(self) -> None:
        await self._may_serve.wait()

    async def run(self) -> None:
        """Follow until cancelled, reconnecting when control goes away. Raises what the consumer raises."""
        while True:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
                    # Connecting a Unix socket succeeds immediately, or fails when its backlog is full.
                    connection.connect(self._address)
                    await self._exchange(connection)
            except (OSError, ProtocolError) as error:
                log.info("the feed is not there: %s", error)
            finally:
                self._follower.disconnected()
                self.control_went.set()
            await asyncio.sleep(RECONNECT_MS / 1000)

    async def _exchange(self, connection: socket.socket) -> None:
        follower = self._follower
        follower.connected()
        await self._flush(connection)
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(
                    connection, READ_BYTES, DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                await _readable(connection)
                continue
            if not data:
                return
            follower.received(data, descriptors)
            for _ in follower.work():
                await self._flush(connection)
                await asyncio.sleep(0)

    async def _flush(self, connection: socket.socket) -> None:
        if self._follower.outgoing:
            outgoing = bytes(self._follower.outgoing)
            self._follower.outgoing.clear()
            await asyncio.get_running_loop().sock_sendall(connection, outgoing)
        if self._follower.may_serve:
            self._may_serve.set()


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection.fileno(), _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(connection.fileno())


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
