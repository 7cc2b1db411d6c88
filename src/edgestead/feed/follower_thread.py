"""Following the feed on a thread: blocking calls, for processes without an event loop.

Owns  the connection to control, and reconnecting.
Not   the loop that answers queries: it runs on another thread and never waits for this one.
"""

import logging
import socket
import threading
from collections.abc import Callable

from edgestead.feed.follower import RECONNECT_MS, Follower
from edgestead.feed.protocol import ProtocolError

READ_BYTES = 262_144
DESCRIPTORS_MAX = 4  # per read

log = logging.getLogger(__name__)


class ThreadFollower:
    def __init__(self, address: str, follower: Follower) -> None:
        """`address` is the feed's Unix socket: a path, or an abstract name that begins with a NUL."""
        self._address = address
        self._follower = follower
        self._may_serve = threading.Event()
        self._stopping = threading.Event()
        self._connection: socket.socket | None = None
        self._turn = threading.Lock()  # held while there is a connection
        self._pausing = False
        self._door = threading.Lock()  # `stop` either sees a connection or keeps it from being used

    @property
    def applied(self) -> int:
        """The last sequence that is visible in every answer; -1 before the first snapshot."""
        return self._follower.applied

    def wait_until_may_serve(self, timeout_seconds: float | None = None) -> bool:
        """False when the time is over."""
        return self._may_serve.wait(timeout_seconds)

    def run(self) -> None:
        """Follow until `stop`, reconnecting whenever control goes away. Raises what the consumer raises."""
        while not self._stopping.is_set():
            try:
                with self._turn, socket.socket(socket.AF_UNIX) as connection:
                    self._follow(connection)
            except (OSError, ProtocolError) as error:
                log.info("the feed is not there: %s", error)
            self._follower.disconnected()
            self._stopping.wait(RECONNECT_MS / 1000)

    def serve_alone(self, may_serve: Callable[[], bool]) -> bool:
        """Serve without a message from control, if `may_serve` still returns True when no message of ours is
        in transit.

        A message to a control that is not running is still queued in its socket, and says that we do not
        serve. So the connection is closed first, and the next control finds it dead. Then we register as
        serving.
        """
        with self._door:
            self._pausing = True
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_RDWR)
        with self._turn:
            alone = may_serve()
            if alone:
                self._follower.may_serve = True
                self._may_serve.set()
        with self._door:
            self._pausing = False
        return alone

    def stop(self) -> None:
        """Make `run` return; from any thread."""
        with self._door:
            self._stopping.set()
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_RDWR)

    def _follow(self, connection: socket.socket) -> None:
        connection.connect(self._address)
        with self._door:
            if self._stopping.is_set() or self._pausing:
                return
            self._connection = connection
        try:
            self._exchange(connection)
        finally:
            with self._door:
                self._connection = None

    def _exchange(self, connection: socket.socket) -> None:
        follower = self._follower
        follower.connected()
        self._flush(connection)
        while True:
            data, descriptors, _, _ = socket.recv_fds(
                connection, READ_BYTES, DESCRIPTORS_MAX, socket.MSG_CMSG_CLOEXEC
            )
            if not data:
                return
            follower.received(data, descriptors)
            for _ in follower.work():
                self._flush(connection)

    def _flush(self, connection: socket.socket) -> None:
        if self._follower.outgoing:
            connection.sendall(self._follower.outgoing)
            self._follower.outgoing.clear()
        if self._follower.may_serve:
            self._may_serve.set()
