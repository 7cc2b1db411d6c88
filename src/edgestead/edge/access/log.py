"""Which answers get a line, and the thread that writes them.

Owns  samples and zones; what waits and how much may; lines that are dropped, and their count.
Not   a line (`lines`), where it goes (`sinks`).

No request waits until its line is written. A thread does that, in batches; what nobody takes is kept up to
PENDING_MAX lines and PENDING_BYTES_MAX, and then new ones are not made but counted.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from edgestead.edge.access.lines import Line
from edgestead.edge.access.sinks import Partly, Sink
from edgestead.edge.exchanges.exchange import Exchange, ZoneFacts

PENDING_MAX = 20_000  # lines: a few seconds of one busy process
PENDING_BYTES_MAX = 16 << 20  # of them
BATCH_MAX = 500  # lines in one write: a quarter of a megabyte
SLOW_SECONDS = 10.0  # of one write, from which on it is told
GATHER_SECONDS = 0.25  # lines of this time are written together
AGAIN_SECONDS = 1.0  # before the next try where nobody took the last
END_SECONDS_MAX = 2.0  # for what waits when the server ends
_NOWHERE = ZoneFacts("", b"", "", "", {})


class Counts(Protocol):
    """The process's counters."""

    def written(self, lines: int) -> None: ...

    def dropped(self, lines: int) -> None: ...


class AccessLog:
    """`line` makes a line; `zones` are the names of those that are logged, none means all.

    `failed` is told why lines could not be written, once for each cause. Both counts are told by the loop's
    thread alone, since a counter has one writer.
    """

    def __init__(
        self,
        sink: Sink,
        line: Line,
        counts: Counts,
        *,
        sample: int = 1,
        zones: frozenset[bytes] = frozenset(),
        failed: Callable[[str], None] = lambda words: None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        pending_max: int = PENDING_MAX,
    ) -> None:
        self._sink, self._line, self._counts = sink, line, counts
        self._sample, self._zones = sample, zones
        self._failed, self._now_us, self._pending_max = failed, now_us, pending_max
        self._count = 0
        self._pending: deque[bytes] = deque()  # the loop appends, the thread takes: each in one step
        self._added_bytes = self._taken_bytes = 0  # ever; the one is the loop's, the other the thread's
        self._writes_since = 0.0
        self._is_slow = False
        self._written = 0  # by the thread, not told to the counts yet
        self._lock = threading.Lock()
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def ended(self, exchange: Exchange, status: int, sent: int) -> None:
        """An answer is complete, or was broken off."""
        if not self._zones or exchange.zone.name in self._zones:
            if self._sample == 1 or self._is_sampled():
                self._add(exchange, status, sent)

    def refused(
        self, client: str, ray: bytes, status: int, method: bytes, host: bytes, target: bytes, sent: int = 0
    ) -> None:
        """A request without an exchange: it could not be read, or nothing is proxied under its name."""
        if not self._zones and self._is_sampled():
            now_us = self._now_us()
            asked = Exchange(
                client, client, b"", 0, b"", method, target, [], {}, host, _NOWHERE, ray, now_us
            )  # as far as it is known
            self._add(asked, status, sent)

    def close(self) -> None:
        """Write what waits, for a moment, and end."""
        self._ending.set()
        self._wake.set()
        self._thread.join(END_SECONDS_MAX + 1)
        self.count()
        if self._pending:
            self._counts.dropped(len(self._pending))

    def count(self) -> None:
        """Tell the counts what the thread has written."""
        with self._lock:
            written, self._written = self._written, 0
        if written:
            self._counts.written(written)
        since = self._writes_since
        if since and not self._is_slow and time.monotonic() - since > SLOW_SECONDS:
            self._failed(f"one write takes longer than {SLOW_SECONDS:g} s")
        self._is_slow = since > 0 and time.monotonic() - since > SLOW_SECONDS

    def _is_sampled(self) -> bool:
        """The first of every so many."""
        self._count += 1
        return self._sample == 1 or self._count % self._sample == 1

    def _add(self, exchange: Exchange, status: int, sent: int) -> None:
        pending = self._pending
        held = self._added_bytes - self._taken_bytes
        if len(pending) >= self._pending_max or held >= PENDING_BYTES_MAX:
            self._counts.dropped(1)
            return
        line = self._line(exchange, status, sent, self._now_us())
        self._added_bytes += len(line)
        pending.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        cause, give_up = "", float("inf")
        while True:
            self._wake.wait()
            if self._ending.wait(AGAIN_SECONDS if cause else GATHER_SECONDS):
                give_up = min(give_up, time.monotonic() + END_SECONDS_MAX)
            self._wake.clear()
            new_cause = self._write_pending()
            if new_cause and new_cause != cause:
                self._failed(new_cause)
            cause = new_cause
            if self._ending.is_set() and (not self._pending or cause or time.monotonic() > give_up):
                self._sink.close()
                return
            if self._pending:
                self._wake.set()

    def _write_pending(self) -> str:
        """Why it did not work, or nothing. What was not written waits for the next try."""
        while batch := self._batch():
            self._writes_since = time.monotonic()
            try:
                self._sink.write(b"".join(batch))
            except Exception as error:  # also what no sink should raise: this thread is the only one
                taken = error.lines if isinstance(error, Partly) else 0
                self._took(batch[:taken])
                self._pending.extendleft(reversed(batch[taken:]))
                words = error.strerror if isinstance(error, OSError) else ""
                return words or str(error) or type(error).__name__
            finally:
                self._writes_since = 0.0
            self._took(batch)
        return ""

    def _took(self, batch: list[bytes]) -> None:
        self._taken_bytes += sum(map(len, batch))
        with self._lock:
            self._written += len(batch)

    def _batch(self) -> list[bytes]:
        """Whose turn it is. Nobody else takes, so what is counted is there."""
        pending = self._pending
        return [pending.popleft() for _ in range(min(len(pending), BATCH_MAX))]
