"""One child of the supervisor, over all its lives.

Owns  starting the process, its status pipe, its pidfd, and how long to wait before its next life.
Asks  the kernel; `server.process` is the other end of the pipe.
Tells the supervisor which descriptors to watch and what they said.
Not   when to start or to stop: the supervisor.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from edgestead.model.counters import Page, slot
from edgestead.server import process
from edgestead.server.messages import Start

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 1.0  # while a DNS process waits, its share of the queries has no answer
STABLE_SECONDS = 10.0  # a life this long forgives the ends before it
_STATUS_BYTES_MAX = 4096

_STARTS = slot("edge_process_starts_total")


class MakeStart(Protocol):
    """Builds the message for a new life, and names the descriptors that the child inherits."""

    def __call__(self, child: "Child", status_fd: int) -> tuple[Start, Iterable[int]]: ...


class Child:
    """`name` is unique; `module` is run by `python -m`. `pid` and `pidfd` are -1 between lives.

    `environment` None means the supervisor's own.
    """

    def __init__(
        self,
        name: str,
        module: str,
        make_start: MakeStart,
        counters_fd: int,
        now: Callable[[], float],
        environment: Mapping[str, str] | None = None,
        log_level: int = logging.INFO,
    ) -> None:
        self.name = name
        self.counters_fd = counters_fd
        self._module = module
        self._make_start = make_start
        self._now = now
        self._environment = environment
        self._log_level = log_level
        self._counters: Page = process.page(counters_fd)
        self._backoff_seconds = BACKOFF_FIRST_SECONDS
        self._started_at = 0.0
        self._popen: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self.pidfd = -1
        self.status_fd = -1
        self.lives = 0
        self.is_ready = False
        self.is_hung_up = False
        self.reason = ""

    @property
    def pid(self) -> int:
        return self._popen.pid if self._popen else -1

    @property
    def is_alive(self) -> bool:
        return self._popen is not None

    def start(self) -> None:
        """Begin a life. Raises OSError when the system has no room for it, and what `make_start` raises.

        Then nothing has begun.
        """
        assert not self.is_alive
        status_read, status_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            popen = self._spawn(status_write)
        except BaseException:
            os.close(status_read)
            raise
        finally:
            os.close(status_write)
        try:
            self.pidfd = os.pidfd_open(popen.pid)
        except OSError:  # nobody could watch it
            os.close(status_read)
            popen.kill()
            popen.wait()
            raise
        self._popen, self.status_fd = popen, status_read
        self._started_at = self._now()
        self._counters.add(_STARTS)
        self.lives += 1
        self._unread, self.is_ready, self.is_hung_up, self.reason = b"", False, False, ""

    def _spawn(self, status_write: int) -> subprocess.Popen[bytes]:
        message_read, message_write = os.pipe2(os.O_CLOEXEC)
        try:
            start, descriptors = self._make_start(self, status_write)
            message = msgspec.msgpack.encode(msgspec.structs.replace(start, log_level=self._log_level))
            assert len(message) <= process.START_BYTES_MAX
            os.write(message_write, message)
            return subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, str(message_read), self.name],
                stdin=subprocess.DEVNULL,
                env=self._environment,
                pass_fds=(message_read, status_write, self.counters_fd, *descriptors),
                process_group=0,  # Ctrl-C in a terminal is for the supervisor alone
            )
        finally:
            os.close(message_read)
            os.close(message_write)

    def read_status(self) -> list[bytes]:
        """The lines that came since the last call. Notes readiness and the reason of a failure itself."""
        try:
            read = os.read(self.status_fd, _STATUS_BYTES_MAX)
        except BlockingIOError:
            return []
        self.is_hung_up = not read
        self._unread += read
        *lines, self._unread = self._unread[-_STATUS_BYTES_MAX:].split(b"\n")
        for line in lines:
            if line == process.READY:
                self.is_ready = True
            elif line.startswith(process.FAILED):
                self.reason = line.removeprefix(process.FAILED).decode("utf-8", "replace")
        return lines

    def send(self, number: signal.Signals) -> None:
        if self._popen is not None:
            signal.pidfd_send_signal(self.pidfd, number)

    def bury(self) -> str:
        """Reap a process that has ended; returns the words for how it ended."""
        assert self._popen is not None
        self.read_status()
        code = self._popen.wait()
        os.close(self.pidfd)
        os.close(self.status_fd)
        self._popen, self.pidfd, self.status_fd, self.is_ready = None, -1, -1, False
        if self.reason:
            return self.reason
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"

    def next_delay_seconds(self) -> float:
        """How long to wait before the next life: doubles with every short life, up to a limit."""
        if self._now() - self._started_at >= STABLE_SECONDS:
            self._backoff_seconds = BACKOFF_FIRST_SECONDS
        delay = self._backoff_seconds
        self._backoff_seconds = min(2 * delay, BACKOFF_MAX_SECONDS)
        return delay
