"""Where lines of the access log go: a file, a socket, an HTTP server.

Owns  appending and rotating, connecting, sending; each on the log's thread, with a limit on its wait.
Not   what a line is (`lines`), what becomes of lines that nobody takes (`log`).
"""

import fcntl
import http.client
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol
from urllib.parse import urlsplit

SECONDS_MAX = 5.0  # that a socket or a server has, for each piece
ANSWER_OCTETS_MAX = 64 * 1024  # of a server's, which says nothing that is needed
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Sink(Protocol):
    """Raises OSError from each."""

    def write(self, content: bytes) -> None:
        """Whole lines."""
        ...

    def close(self) -> None: ...


class FileSink:
    """One file for all edge processes; old ones are `NAME.1`, `NAME.2` and so on.

    Lines are appended in one write each time, which the kernel does not mix with those of others. Who moves
    the file away, as logrotate does, finds a new one at the next write: no signal is needed.
    """

    def __init__(self, folder_fd: int, name: str, *, octets_max: int, files_max: int) -> None:
        self._folder_fd, self._name = folder_fd, name
        self._octets_max, self._files_max = octets_max, files_max
        self._fd = -1
        self._is_torn = False  # the disk may have taken a part of a line

    def write(self, content: bytes) -> None:
        if self._fd < 0 or not self._is_there():
            self._open()
        if os.fstat(self._fd).st_size >= self._octets_max:
            self._rotate()
        view = memoryview(b"\n" + content if self._is_torn else content)
        self._is_torn = True
        while view:
            view = view[os.write(self._fd, view) :]
        self._is_torn = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self.close()
        self._fd = os.open(self._name, _OPEN, 0o640, dir_fd=self._folder_fd)

    def _is_there(self) -> bool:
        with suppress(FileNotFoundError):
            named, open_ = os.stat(self._name, dir_fd=self._folder_fd), os.fstat(self._fd)
            return (named.st_dev, named.st_ino) == (open_.st_dev, open_.st_ino)
        return False

    def _rotate(self) -> None:
        """One process does it, and the others find its new file."""
        with self._alone():
            if not self._is_there():
                self._open()
            if os.fstat(self._fd).st_size < self._octets_max:
                return
            for number in range(self._files_max - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._rename(f"{self._name}.{number}", f"{self._name}.{number + 1}")
            if self._files_max:
                self._rename(self._name, f"{self._name}.1")
            else:
                os.unlink(self._name, dir_fd=self._folder_fd)
            self._open()

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A lock on the folder, by a descriptor of our own: what processes inherit is one lock for all."""
        lock = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder_fd)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


class SocketSink:
    """A stream of lines to a socket of Unix."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None

    def write(self, content: bytes) -> None:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(SECONDS_MAX)
                self._socket.connect(self._path)
            self._socket.sendall(content)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class HttpSink:
    """A POST for each batch, on a connection that is kept; anything but 2xx is a failure."""

    def __init__(self, url: str, content_type: str) -> None:
        self._parts = urlsplit(url)
        self._headers = {"content-type": content_type, "user-agent": "edgestead"}
        self._connection: http.client.HTTPConnection | None = None

    def write(self, content: bytes) -> None:
        try:
            self._post(content)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            raise OSError(str(error) or type(error).__name__) from None

    def _post(self, content: bytes) -> None:
        parts = self._parts
        if self._connection is None:
            assert parts.hostname is not None
            if parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    parts.hostname, parts.port, timeout=SECONDS_MAX, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=SECONDS_MAX)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._connection.request("POST", path, content, self._headers)
        answer = self._connection.getresponse()
        if len(answer.read(ANSWER_OCTETS_MAX)) == ANSWER_OCTETS_MAX:
            self.close()
        if not 200 <= answer.status < 300:
            raise OSError(f"it answered {answer.status}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
