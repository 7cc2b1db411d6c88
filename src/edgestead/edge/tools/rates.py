"""Counts of rate limits, exact over all workers of the edge.

Owns  the layout of the memory that workers share; windows, sums, mitigation times; which key loses its place.
Not   what is counted, and what happens to who is over a limit.

Each worker has a table of its own, which it alone writes and all read: it counts in its own table and sums up
the key over all of them. So nothing is locked and nothing is estimated. A table has buckets of eight places;
a key, which is a keyed hash that no stranger can aim, belongs into one bucket. A new key takes a place whose
window and mitigation are over, or else the one that is over soonest: with 131,072 places that takes 100,000
clients within one period, and an evicted one only starts to count again.

A window begins with the first request that counts and lasts a period. Two workers that both meet the first
request begin a window each, moments apart, and each of the two is counted until its own end.

A place is four cells: count, end of the window, end of the mitigation, key. The key is written last and read
last, so a place that changes hands is never taken for another's. Times are milliseconds of the machine's
monotonic clock, which all processes share; a worker that starts again goes on with its counts.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

BUCKETS: Final = 16_384
PLACES: Final = 8  # in a bucket: 256 octets, four lines of cache
_CELLS: Final = 4
_BUCKET_CELLS: Final = PLACES * _CELLS
_TABLE_CELLS: Final = BUCKETS * _BUCKET_CELLS
CELL_OCTETS: Final = 8
COUNT_MAX: Final = (1 << 63) - 1  # a counter has 64 bits
_COUNT, _WINDOW, _MITIGATION, _KEY = range(_CELLS)


def memory_octets(workers: int) -> int:
    """What `workers` share: 4 MiB each, of which only what is used takes memory."""
    return workers * _TABLE_CELLS * CELL_OCTETS


class Counted(NamedTuple):
    """A key's `total` in its window, the window's and the mitigation's ends in ms; 0 where there is none."""

    total: int
    window_end_ms: int
    mitigation_end_ms: int


class Rates:
    """One worker's end. For one thread."""

    __slots__ = ("_cells", "_evicted", "_now", "_own", "_secret", "_workers")

    def __init__(
        self,
        memory: memoryview,
        secret: bytes,
        *,
        worker: int = 0,
        workers: int = 1,
        now: Callable[[], float] = time.monotonic,
        evicted: Callable[[], None] = lambda: None,
    ) -> None:
        """`secret` of 16 to 32 octets is the same for all workers, and unknown to clients.

        `evicted` is told of each key that lost its place before its time.
        """
        self._cells = memory[: memory_octets(workers)].cast("B").cast("Q")
        self._secret = secret
        self._own = worker * _TABLE_CELLS
        self._workers = workers
        self._now = now
        self._evicted = evicted

    def key(self, rule: bytes, values: Sequence[bytes]) -> int:
        """The key of a rule and what it counts by; never 0."""
        hashed = hashlib.blake2s(rule, digest_size=CELL_OCTETS, key=self._secret)
        for value in values:
            hashed.update(len(value).to_bytes(4))
            hashed.update(value)
        return int.from_bytes(hashed.digest()) | 1

    def now_ms(self) -> int:
        return int(self._now() * 1_000)

    def look(self, key: int, now_ms: int) -> Counted:
        """The key over all workers, as it stands."""
        first = _bucket(key)
        count = window = mitigation = 0
        for table in range(0, self._workers * _TABLE_CELLS, _TABLE_CELLS):
            cells = self._cells[table + first : table + first + _BUCKET_CELLS].tolist()
            if key not in cells:
                continue
            place = cells.index(key) - _KEY
            if place % _CELLS:  # another cell that happens to hold this number
                continue
            if cells[place + _WINDOW] > now_ms:
                count += cells[place + _COUNT]
                window = max(window, cells[place + _WINDOW])
            mitigation = max(mitigation, cells[place + _MITIGATION])
        return Counted(count, window, mitigation if mitigation > now_ms else 0)

    def add(self, key: int, amount: int, period_ms: int, now_ms: int) -> Counted:
        """Count `amount`, then answer the key over all workers."""
        seen = self.look(key, now_ms)
        at = self._place(key, now_ms)
        cells = self._cells
        if cells[at + _KEY] != key:
            self._take(at, key)
        if cells[at + _WINDOW] <= now_ms:
            cells[at + _COUNT] = 0
            cells[at + _WINDOW] = seen.window_end_ms or now_ms + period_ms
        cells[at + _COUNT] = min(COUNT_MAX, cells[at + _COUNT] + amount)
        return self.look(key, now_ms)

    def mitigate(self, key: int, end_ms: int, now_ms: int) -> None:
        """Hold the key back until then, in every worker."""
        at = self._place(key, now_ms)
        if self._cells[at + _KEY] != key:
            self._take(at, key)
        self._cells[at + _MITIGATION] = end_ms

    def _take(self, at: int, key: int) -> None:
        cells = self._cells
        cells[at + _KEY] = 0
        cells[at + _COUNT] = cells[at + _WINDOW] = cells[at + _MITIGATION] = 0
        cells[at + _KEY] = key

    def _place(self, key: int, now_ms: int) -> int:
        """Where the key stands in this worker's table, or may take a place."""
        first = self._own + _bucket(key)
        cells = self._cells[first : first + _BUCKET_CELLS].tolist()
        best, soonest = 0, COUNT_MAX
        for place in range(0, _BUCKET_CELLS, _CELLS):
            if cells[place + _KEY] == key:
                return first + place
            over = max(cells[place + _WINDOW], cells[place + _MITIGATION])
            if over < soonest:
                best, soonest = place, over
        if soonest > now_ms:
            self._evicted()
        return first + best


def _bucket(key: int) -> int:
    return (key >> 1) % BUCKETS * _BUCKET_CELLS
