"""Where lines of the access log go: a file, a socket, an HTTP server.

Owns  appending and rotating, connecting, sending; each on the log's thread, with a limit on its wait.
Not   what a line is (`lines`), what becomes of lines that nobody takes (`log`).
"""

import errno
import fcntl
import http.client
import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol
from urllib.parse import urlsplit

SECONDS_MAX = 5.0  # that a socket or a server has, for each piece
POST_SECONDS_MAX = 15.0  # for a batch: who answers by the octet is cut
ANSWER_OCTETS_MAX = 64 * 1024  # of a server's, which says nothing that is needed
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Partly(OSError):
    """A failure behind so many whole lines, which are not to be written again."""

    def __init__(self, error: OSError, lines: int) -> None:
        super().__init__(*error.args)
        self.lines = lines


class Sink(Protocol):
    """Raises OSError from each."""

    def write(self, content: bytes) -> None:
        """Whole lines."""
        ...

    def close(self) -> None: ...


def _write_all(content: bytes, write: Callable[[memoryview], int], torn: Callable[[], None]) -> None:
    """Raises Partly; `torn` is told when that is in the middle of a line."""
    view, at = memoryview(content), 0
    try:
        while at < len(content):
            at += write(view[at:])
    except OSError as error:
        if at and content[at - 1 : at] != b"\n":
            torn()
        raise Partly(error, content.count(b"\n", 0, at)) from None


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
        if self._is_torn:
            os.write(self._fd, b"\n")
            self._is_torn = False
        fd = self._fd
        _write_all(content, lambda view: os.write(fd, view), self._tear)

    def _tear(self) -> None:
        self._is_torn = True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self.close()
        fd = os.open(self._name, _OPEN, 0o640, dir_fd=self._folder_fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "the access log's file is none")
        self._fd = fd

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
            _write_all(content, self._socket.send, lambda: None)
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
        self._is_late = False

    def write(self, content: bytes) -> None:
        try:
            self._post(content)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            raise OSError(str(error) or type(error).__name__) from None

    def _post(self, content: bytes) -> None:
        """Each read has SECONDS_MAX, and all of it POST_SECONDS_MAX."""
        self._is_late = False
        late = threading.Timer(POST_SECONDS_MAX, self._cut)
        late.daemon = True
        late.start()
        try:
            self._exchange(content)
        finally:
            late.cancel()

    def _cut(self) -> None:
        self._is_late = True
        sock = None if self._connection is None else self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _exchange(self, content: bytes) -> None:
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
        if self._connection.sock is None:
            self._connection.connect()
        if self._is_late:  # there was nothing to cut yet
            raise TimeoutError("it took too long to connect")
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
