"""How much a challenge asks for: more of whoever looks like a program, and of everybody in a flood.

Owns  what a worker remembers of challenges, the demand of the next one, counts for metrics.
Not   tokens and solutions (`edge.tools.clearance`), pages.

    bits    those of the kind
            + 1 to 3   a zone had over 100, 1,000, 10,000 challenges in the last ten seconds, of this worker
            + 1 to 3   the client's network left over 3, 10, 30 unanswered or failed in ten minutes
            + 1        the request's head tells of a program
    click   `managed_challenge`, when the head tells of a program, or three were left unanswered

One bit doubles the work. All of it is a guess by what clients say and do, and none of it refuses anybody: who
is suspected by mistake works for a second longer and presses a button.
"""

from collections import Counter
from typing import Final, NamedTuple

from edgestead.edge.exchanges.exchange import Exchange
from edgestead.edge.tools.clearance import Kind, network

WINDOW_SECONDS: Final = 10  # of a zone's count
MEMORY_SECONDS: Final = 600  # of a network's
ZONES_MAX: Final = 4_096  # that are counted; with more all counts begin again
NETWORKS_MAX: Final = 50_000  # the same: 10 MB
ZONE_STEPS: Final = (100, 1_000, 10_000)  # challenges in a window, beyond each of which there is a bit more
NETWORK_STEPS: Final = (3, 10, 30)  # unanswered ones, the same
EXTRA_BITS_MAX: Final = 5  # 17 bits become 22: four million tries, some seconds of a browser


class Demand(NamedTuple):
    bits: int
    click: bool


class Pressure:
    """Of one worker. Times are Unix seconds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # by kind and outcome, as `model.counters.CHALLENGED` has it
        self._zones: dict[
            str, tuple[int, int, int]
        ] = {}  # its window, the count in it, and in the one before
        self._networks: dict[bytes, tuple[int, int]] = {}  # the time of the first, and how many

    def demand(self, kind: Kind, exchange: Exchange, now_s: int) -> Demand:
        """Of a challenge that is shown now; it counts."""
        self.counts[f"{kind.name} shown"] += 1
        left = self._count_network(network(exchange.client), now_s)
        busy = self._count_zone(exchange.zone.id, now_s)
        if not kind.bits:
            return Demand(0, click=False)
        tells = is_program(exchange)
        extra = _steps(busy, ZONE_STEPS) + _steps(left, NETWORK_STEPS) + tells
        wants_click = kind.name == "managed_challenge" and (tells or left > NETWORK_STEPS[0])
        return Demand(kind.bits + min(extra, EXTRA_BITS_MAX), wants_click)

    def solved(self, kind: str, exchange: Exchange) -> None:
        """The network's past is forgiven."""
        self.counts[f"{kind} solved"] += 1
        self._networks.pop(network(exchange.client), None)

    def failed(self, kind: str) -> None:
        self.counts[f"{kind} failed"] += 1

    def _count_network(self, of: bytes, now_s: int) -> int:
        """How many there were, with this one."""
        since_s, count = self._networks.get(of, (now_s, 0))
        if not 0 <= now_s - since_s < MEMORY_SECONDS:
            since_s, count = now_s, 0
        if len(self._networks) >= NETWORKS_MAX and of not in self._networks:
            self._networks.clear()
        self._networks[of] = (since_s, count + 1)
        return count + 1

    def _count_zone(self, zone_id: str, now_s: int) -> int:
        """The larger count of this window and the one before."""
        window = now_s // WINDOW_SECONDS
        at, count, before = self._zones.get(zone_id, (window, 0, 0))
        if at != window:
            at, count, before = window, 0, count if at == window - 1 else 0
        if len(self._zones) >= ZONES_MAX and zone_id not in self._zones:
            self._zones.clear()
        self._zones[zone_id] = (at, count + 1, before)
        return max(count + 1, before)


def is_program(exchange: Exchange) -> bool:
    """Whether the head says so: a browser without a screen by its name, or none that has a language."""
    agent = exchange.header(b"user-agent") or b""
    return b"HeadlessChrome" in agent or exchange.header(b"accept-language") is None


def _steps(count: int, steps: tuple[int, ...]) -> int:
    return sum(count > step for step in steps)
