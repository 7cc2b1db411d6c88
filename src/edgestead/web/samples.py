"""Rates of the last hour, for the overview's charts.

Owns  the ring of samples, rates between them, a chart as SVG.
Not   counters (`model.counters`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

SAMPLE_SECONDS: Final = 10
SAMPLES_MAX: Final = 361  # an hour
SERIES: Final = {
    "DNS queries": "edge_dns_queries_total",
    "Requests at the edge": "edge_http_requests_total",
    "Requests to the API": "edge_api_requests_total",
    "Events of the edge": "edge_events_total",
}
WIDTH, HEIGHT = 320, 60

log = logging.getLogger("edgestead.server")


class Chart(NamedTuple):
    """`points` are `x,y` of a polyline in WIDTH × HEIGHT; rates are per second."""

    name: str
    points: str
    now: float
    highest: float


class Samples:
    """Used by one event loop. Cost of a sample: one rendering of the metrics, once in SAMPLE_SECONDS."""

    def __init__(self, metrics: Callable[[], str], now_s: Callable[[], float]) -> None:
        self._metrics, self._now_s = metrics, now_s
        self._ring: deque[tuple[float, tuple[float, ...]]] = deque(maxlen=SAMPLES_MAX)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                self.take()
            except Exception:
                log.exception("a sample for the dashboard failed")  # the next one may not
            await asyncio.sleep(SAMPLE_SECONDS)

    def take(self) -> None:
        sums = dict.fromkeys(SERIES.values(), 0.0)
        for line in self._metrics().splitlines():
            name = line.partition("{")[0].partition(" ")[0]
            if name in sums:
                sums[name] += float(line.rpartition(" ")[2])
        self._ring.append((self._now_s(), tuple(sums.values())))

    def charts(self) -> list[Chart]:
        return [_chart(name, self._rates(at)) for at, name in enumerate(SERIES)]

    def _rates(self, at: int) -> list[float]:
        """A counter that is less than before began anew: its process was started again."""
        pairs = list(self._ring)
        return [
            max(0.0, after[at] - before[at]) / max(0.001, then - first)
            for (first, before), (then, after) in pairwise(pairs)
        ]


def _chart(name: str, rates: Sequence[float]) -> Chart:
    highest = max(rates, default=0.0)
    step = WIDTH / (SAMPLES_MAX - 2)
    begin = WIDTH - step * (len(rates) - 1)
    points = " ".join(
        f"{begin + step * number:.1f},{HEIGHT - 2 - (HEIGHT - 4) * rate / (highest or 1):.1f}"
        for number, rate in enumerate(rates)
    )
    return Chart(name, points, rates[-1] if rates else 0.0, highest)
