"""One structured line per request.

Owns  what a line holds, and writing lines in batches on a thread of their own.
Asks  nobody.
Tells whoever reads the server's standard error.
Not   bodies, query strings, credentials: none of them ever enters a line.
"""

import os
import threading
import time
import traceback

import msgspec

from edgestead.api.exchange import Exchange
from edgestead.api.limits import LOG_END_SECONDS_MAX, LOG_LINES_WAITING_MAX

_BATCH_SECONDS = 0.1


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """`route` is the path's pattern, so that lines can be grouped; `path` is what was sent, undecoded."""

    event: str
    time_us: int
    request_id: str
    method: str
    path: str
    status: int
    bytes: int
    duration_us: int
    route: str = ""
    client: str = ""
    actor: str = ""
    token: str | None = None
    errors: tuple[int, ...] = ()
    fault: str | None = None


_encode = msgspec.json.Encoder().encode


def log_one_line(exchange: Exchange) -> None:
    """The last step of every request."""
    scope = exchange.scope
    identity = getattr(exchange, "identity", None)
    route = getattr(exchange, "route", None)
    error, fault = exchange.error, exchange.fault
    exchange.api.log(
        _encode(
            RequestLine(
                "request",
                getattr(exchange, "now_us", 0) or exchange.api.now_us(),
                exchange.request_id,
                scope["method"],
                scope["raw_path"].decode("ascii"),
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
    )


class BatchedLog:
    """Lines to a descriptor, written ten times a second by a thread, so that a slow reader never stops us.

    At most LOG_LINES_WAITING_MAX lines wait; what comes on top is dropped, and a line says how many.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: list[bytes] = []
        self._dropped = 0
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="request-log", daemon=True)
        self._thread.start()

    def __call__(self, line: bytes) -> None:
        """Hand over one line; never waits. Called by one thread."""
        lines = self._lines
        if len(lines) >= LOG_LINES_WAITING_MAX:
            self._dropped += 1
            return
        lines.append(line)
        if len(lines) == 1:
            self._wake.set()

    def close(self) -> None:
        """Write what waits, then end; a reader that is stuck loses it. Idempotent."""
        self._closed = True
        self._wake.set()
        self._thread.join(LOG_END_SECONDS_MAX)

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            if not self._closed:
                time.sleep(_BATCH_SECONDS)
            self._wake.clear()
            self._write()

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            lines.append(b'{"event":"log_lines_dropped","count":%d}' % dropped)
        waiting = memoryview(b"\n".join(lines) + b"\n") if lines else memoryview(b"")
        try:
            while waiting:
                waiting = waiting[os.write(self._descriptor, waiting) :]
        except OSError:
            self._closed = True  # nobody reads us any more; requests must go on
