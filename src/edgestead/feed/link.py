"""A framed Unix socket on an event loop.

Owns  reading without blocking, writing what the socket accepts and queueing the rest.
Not   the contents of frames.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable

from edgestead.feed.protocol import Frames, ProtocolError

READ_BYTES = 65_536


class Link:
    """One connection. `on_end` is called once, unless the owner closes first."""

    def __init__(
        self, connection: socket.socket, on_frame: Callable[[bytes], None], on_end: Callable[[str], None]
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._on_frame = on_frame
        self._on_end = on_end
        self._frames = Frames()
        self._unsent: deque[tuple[memoryview, int | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)
        self._open = True

    def send(self, data: bytes, descriptor: int | None = None) -> None:
        """Queue a frame; the link closes the descriptor once it was sent or cannot be sent any more."""
        if not self._open:
            _close(descriptor)
            return
        self._unsent.append((memoryview(data), descriptor))
        if len(self._unsent) == 1:
            self._write()

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._connection.fileno())
        self._loop.remove_writer(self._connection.fileno())
        self._connection.close()
        while self._unsent:
            _close(self._unsent.popleft()[1])

    def _read(self) -> None:
        try:
            data = self._connection.recv(READ_BYTES)
            for body in self._frames.feed(data):
                self._on_frame(body)
                if not self._open:
                    return
        except BlockingIOError:
            return
        except (OSError, ProtocolError) as error:
            self._end(str(error))
            return
        if not data:
            self._end("end of stream")

    def _write(self) -> None:
        fileno = self._connection.fileno()
        try:
            while self._unsent:
                self._write_one()
            self._loop.remove_writer(fileno)
        except BlockingIOError:
            self._loop.add_writer(fileno, self._write)
        except OSError as error:
            self._loop.remove_writer(fileno)
            self._loop.call_soon(self._end, str(error))  # not from inside the owner's call

    def _write_one(self) -> None:
        data, descriptor = self._unsent[0]
        if descriptor is None:
            count = self._connection.send(data)
        else:
            count = socket.send_fds(self._connection, [data], [descriptor])
            _close(descriptor)
        if count == len(data):
            self._unsent.popleft()
        else:
            self._unsent[0] = (data[count:], None)

    def _end(self, reason: str) -> None:
        if self._open:
            self.close()
            self._on_end(reason)


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
