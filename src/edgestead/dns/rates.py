"""Response rate limiting: the number of answers of one kind to one network per second.

Owns  the counts, in memory that all UDP workers share, and which network is over the limit.
Not   the form of a short answer (`answer`); clients that proved their address by a cookie (`cookies`).

Queries with a forged source address direct the answers at a victim. So answers are counted by destination
network, a /24 or a /56, and by kind, in whole seconds of the machine's clock. Of those over the limit every
SLIP-th gets a short answer, so that a genuine client can retry by TCP or with a cookie; the rest is dropped.

The memory has a row of cells for each (network, kind), found by a checksum, with a cell for each worker,
which only that worker writes: it adds to its own and reads the sum. Networks that share a row share a limit:
with one network under attack that is one in 65,536 of the others, and it is still answered by TCP. No network
can be over the limit in a second in which all answers together are not, so counting by network starts only
then; therefore the first second of a flood lets through at most twice the limit.
"""

import time
from collections.abc import Callable
from typing import Final
from zlib import crc32

ROWS: Final = 65_536
SLIP: Final = 2
CELL_OCTETS: Final = 8
LOOKS: Final = 64
"""A worker adds its answers up this often on the way to the limit; less often nobody could be over it."""

_TOTALS: Final = ROWS  # the row after the last one
_COUNT_BITS: Final = 32
_COUNT: Final = (1 << _COUNT_BITS) - 1
_IPV4_OCTETS: Final = 4
_LOOPBACK_4: Final = 127
_LOOPBACK_6: Final = bytes(15) + b"\1"

_ANSWER, _NO_DATA, _REFERRAL, _NO_NAME, _ERROR = range(5)
_AA: Final = 0x04
_NXDOMAIN: Final = 3


def memory_octets(workers: int) -> int:
    """The memory that `workers` share."""
    return (ROWS + 1) * workers * CELL_OCTETS


class Rates:
    """One worker's side. For one thread."""

    def __init__(
        self,
        per_second: int,
        memory: memoryview,
        *,
        worker: int = 0,
        workers: int = 1,
        loopback_exempt: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._cells = memory[: memory_octets(workers)].cast("B").cast("Q")
        self._worker = worker
        self._workers = workers
        self._loopback_exempt = loopback_exempt
        self._now = now
        self._second = 0
        self._look_every = max(1, per_second // LOOKS)
        self._pending = 0
        self._over: set[int] = set()
        self._exceeded = False  # all answers of this second together
        self._watching = False
        self._denied = 0

    def watching(self, answers: int) -> bool:
        """Whether any network may be over the limit with `answers` more. To be called once per batch."""
        self._pending += answers
        if 0 < self._pending < self._look_every and not self._watching:
            return False
        answers, self._pending = self._pending, 0
        second = int(self._now())
        if second != self._second:
            # Keep counting in the second after one over the limit: a flood does not pause.
            self._watching = self._exceeded and second == self._second + 1
            self._exceeded = False
            self._second = second
            self._over.clear()
        self._add(_TOTALS, answers)
        if not self._exceeded and self._sum(_TOTALS) > self._per_second:
            self._exceeded = self._watching = True
        return self._watching

    def admits(self, client: bytes, reply: bytes) -> bool:
        """Count an answer, without its ID, to a client of 4 or 16 octets; whether it is within the limit."""
        short = len(client) == _IPV4_OCTETS
        if self._loopback_exempt and (client[0] == _LOOPBACK_4 if short else client == _LOOPBACK_6):
            return True
        network = client[:3] if short else client[:7]
        row = crc32(network, _kind(reply)) % ROWS
        if row in self._over:
            return False
        self._add(row, 1)
        if self._sum(row) <= self._per_second:
            return True
        self._over.add(row)
        return False

    def slips(self) -> bool:
        """Whether the answer over the limit is replaced by a short one, or dropped."""
        self._denied += 1
        return self._denied % SLIP == 0

    def _add(self, row: int, n: int) -> None:
        at = row * self._workers + self._worker
        count = self._cells[at]
        if count >> _COUNT_BITS != self._second:
            count = self._second << _COUNT_BITS
        self._cells[at] = count + n

    def _sum(self, row: int) -> int:
        at, second = row * self._workers, self._second
        cells = self._cells[at : at + self._workers].tolist()
        return sum(cell & _COUNT for cell in cells if cell >> _COUNT_BITS == second)


def _kind(reply: bytes) -> int:
    rcode = reply[1] & 0x0F
    if rcode:
        return _NO_NAME if rcode == _NXDOMAIN else _ERROR
    if reply[4:6] != b"\0\0":
        return _ANSWER
    return _NO_DATA if reply[0] & _AA else _REFERRAL
