"""Statistics of queries: the most frequent names, counts by zone, type and rcode, and a sample.

Owns  the sketches and the sample, of limited size for any traffic.
Not   exact counters, which are `counters`.

The loops show one reply that represents all since the last one: after SHARE replies, or after PAUSE_SECONDS.
So with little traffic every query is counted, and under load one of about a hundred, which estimates shares
well and costs a hundredth of a query. A sketch keeps the keys with the highest counts: when it has twice as
many as promised, the lower half is dropped, and a key that is added (again) starts with the highest dropped
count. So no count is too low, none is too high by more than `floor`, and every key with a higher count is
present.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from edgestead.dns import wire

NAMES_MAX: Final = 2000  # names that are counted at a time, the most frequent ones
GROUPS_MAX: Final = 4000  # clients and answers that are counted at a time, the most frequent ones
SAMPLE_MAX: Final = 1000  # the last queries, which `edgecli dns` shows
SHARE: Final = 64
PAUSE_SECONDS: Final = 0.005

_QUESTION_AT: Final = 10
_RCODE: Final = 0x0F
_TC: Final = 0x02

K = TypeVar("K", bound=Hashable)


class Sketch(Generic[K]):
    """Counts of the `keys_max` most frequent keys, in memory for twice as many."""

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self.floor = 0
        self._counts: dict[K, int] = {}

    def add(self, key: K, n: int) -> None:
        counts = self._counts
        counts[key] = counts.get(key, self.floor) + n
        if len(counts) >= 2 * self.keys_max:
            self._shrink()

    def _shrink(self) -> None:
        ranked = self.top(len(self._counts))
        self.floor = max(self.floor, ranked[self.keys_max][1])
        self._counts = dict(ranked[: self.keys_max])

    def top(self, most: int) -> list[tuple[K, int]]:
        """The keys with the highest counts, the highest first."""
        return sorted(self._counts.items(), key=lambda item: item[1], reverse=True)[:most]


class Seen(NamedTuple):
    """One query of the sample. `network` is a /24 or a /56: single clients stay private."""

    at: float
    network: bytes
    name: bytes
    kind: int
    rcode: int
    truncated: bool
    octets: int


class Watch:
    """One loop's statistics. Not thread-safe: both sides take the table's lock."""

    def __init__(self, now: Callable[[], float] = time.time, share: int = SHARE) -> None:
        self._now = now
        self._share = share
        self._pending = 0
        self._shown_at = 0.0
        self.names: Sketch[tuple[bytes, int]] = Sketch(NAMES_MAX)
        self.groups: Sketch[tuple[bytes, int, int]] = Sketch(GROUPS_MAX)
        self.sample: deque[Seen] = deque(maxlen=SAMPLE_MAX)
        self._turn = 0

    def due(self, replies: int) -> int:
        """How many replies the one to be shown represents, after a batch of this size; 0 to show none."""
        self._pending += replies
        if self._pending < self._share and self._now() - self._shown_at < PAUSE_SECONDS:
            return 0
        shown, self._pending = self._pending, 0
        self._shown_at = self._now()
        return shown

    def choose(self, replies: int) -> int:
        """The index of the reply of a batch to show, in rotation."""
        self._turn += 1
        return self._turn % replies

    def see(self, reply: bytes, client: bytes, replies: int, zones: Mapping[bytes, object]) -> None:
        """Note a reply, without its ID, that represents this many."""
        name, kind, rcode = b"", 0, reply[1] & _RCODE
        if reply[3]:  # a question
            end = wire.name_end(reply, _QUESTION_AT)
            name = reply[_QUESTION_AT:end].lower()
            kind = int.from_bytes(reply[end : end + 2], "big")
            self.names.add((name, kind), replies)
        apex = name
        while apex not in zones and len(apex) > 1:
            apex = wire.parent(apex)
        self.groups.add((apex if apex in zones else b"", kind, rcode), replies)
        network = client[:3] if len(client) == 4 else client[:7]
        self.sample.append(
            Seen(self._now(), network, name, kind, rcode, bool(reply[0] & _TC), len(reply) + 2)
        )
