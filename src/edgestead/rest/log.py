"""One structured line per request.

Owns  gathering a line, and writing lines in batches on a thread of their own.
Not   what a line may hold (`rest.request_line`); the write itself.
"""

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from edgestead.model.log_text import LogForm
from edgestead.rest.exchange import Exchange
from edgestead.rest.limits import LOG_LINES_WAITING_MAX
from edgestead.rest.request_line import FORMS, Line, RequestLine

_BATCH_SECONDS = 0.1
_CLOSE_SECONDS_MAX = 2.0
_LINES_PER_WRITE_MAX = 50  # encoded in one go: an eighth of a millisecond of the interpreter
_REST_SECONDS = 0.001  # then it is the loop's: who has it all the time gets it back before another wakes up


def log_one_line(exchange: Exchange, event: str = "request") -> None:
    """The last step of every request."""
    identity = getattr(exchange, "identity", None)
    route = getattr(exchange, "route", None)
    error, fault = exchange.error, exchange.fault
    exchange.api.log(
        RequestLine(
            event,
            getattr(exchange, "now_us", 0) or exchange.api.now_us(),
            exchange.request_id,
            exchange.request.method,
            exchange.raw_path.decode("ascii"),
            exchange.status,
            exchange.answer_bytes,
            (time.perf_counter_ns() - exchange.started_ns) // 1000,
            route.path if route else "",
            exchange.client_address,
            identity.actor.id if identity else "",
            identity.actor.token_id if identity else None,
            (error.code, *(one.code for one in error.also)) if error else (),
            "".join(traceback.format_exception(fault)) if fault else None,
        )
    )


class BatchedLog:
    """Lines, encoded and written by a thread ten times a second. `write` says whether they were written; it
    raises OSError when no line ever will be.

    A slow reader never stops the server: at most LOG_LINES_WAITING_MAX lines wait; what comes on top is
    dropped, and a line says how many.
    """

    def __init__(
        self, write: Callable[[bytes], bool], *, level: int = logging.INFO, form: LogForm = "json"
    ) -> None:
        self._write_lines = write
        self._written = FORMS[form]
        self._takes_all = level <= logging.INFO  # above it only what the server itself did wrong
        self._lines: deque[Line] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._thread.start()

    def __call__(self, line: Line) -> None:
        """Hand over one line; never waits. Called by one thread."""
        if not self._takes_all and not getattr(line, "fault", None):
            return
        lines = self._lines
        if len(lines) >= LOG_LINES_WAITING_MAX:
            self._dropped += 1
            return
        lines.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write what waits, then end; give up on a reader that is stuck. Idempotent."""
        self._closed = True
        self._wake.set()
        self._thread.join(_CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        with suppress(OSError):  # nobody reads us any more; requests must go on
            while not self._closed:
                self._wake.wait()
                if not self._closed:
                    time.sleep(_BATCH_SECONDS)
                self._wake.clear()
                self._write()
            self._write()  # what came between the last look and the end

    def _write(self) -> None:
        while self._lines:
            count = min(len(self._lines), _LINES_PER_WRITE_MAX)
            self._write_all(b"".join([self._written(self._lines.popleft()) for _ in range(count)]), count)
            if self._lines and not self._closed:
                time.sleep(_REST_SECONDS)
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._write_all(b'{"event":"log_lines_dropped","count":%d}\n' % dropped, dropped)

    def _write_all(self, lines: bytes, count: int) -> None:
        if not self._write_lines(lines):
            self._dropped += count
