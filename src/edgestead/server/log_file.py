"""A process that keeps the log: lines from a pipe into a file that is put aside when it is long enough.

Owns  the file and those before it.
Not   what a line says (`server.log`, `rest.log`).

A process of its own, because only one writer can put a file aside: to all others the log is their stderr, as
it is without a file. The supervisor keeps the pipe, so no line is lost when this process is started again.
"""

import fcntl
import logging.handlers
import os
import selectors
import signal
from pathlib import Path

from edgestead.server import process
from edgestead.server.messages import LogStart

READ_BYTES = 1 << 16
READS_PER_TURN = 64  # 4 MiB, some 50 ms; a pipe holds 64 KiB when its writers are gone
LINE_BYTES_MAX = 1 << 20  # a longer one is cut in two


class Lines:
    """Bytes in, whole lines into the file."""

    def __init__(self, path: Path, bytes_max: int, files_kept: int) -> None:
        self._handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=bytes_max, backupCount=files_kept, encoding="utf-8", errors="surrogateescape"
        )
        os.chmod(path, 0o600)  # lines hold addresses and names of clients
        self._rest = b""

    def take(self, octets: bytes) -> None:
        *lines, self._rest = (self._rest + octets).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            text = line.decode("utf-8", "surrogateescape")
            self._handler.emit(logging.LogRecord("", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        if self._rest:
            self.take(b"\n")
        self._handler.close()


def main() -> None:
    start = process.begin(LogStart)
    status = process.Status(start.status_fd)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    try:
        lines = Lines(Path(start.log_file), start.log_file_bytes, start.log_files)
    except OSError as error:
        status.failed(f"log-file {start.log_file} cannot be written: {error.strerror}")
        raise SystemExit(1) from None
    logging.raiseExceptions = False  # a full disk must not fill itself with complaints about it
    fcntl.fcntl(start.pipe_fd, fcntl.F_SETFL, os.O_NONBLOCK)
    status.ready()
    with selectors.DefaultSelector() as selector:
        selector.register(start.pipe_fd, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while not stopped:
            status.beat()
            selector.select(process.BEAT_SECONDS)
            _read(start.pipe_fd, lines)
    _read(start.pipe_fd, lines)
    lines.close()


def _read(pipe_fd: int, lines: Lines) -> None:
    """What is there, as much as a turn takes: who writes without end must not keep it from beating."""
    for _ in range(READS_PER_TURN):
        try:
            octets = os.read(pipe_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not octets:
            return
        lines.take(octets)


if __name__ == "__main__":
    main()
