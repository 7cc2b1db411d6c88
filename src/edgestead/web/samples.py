"""Rates and latencies of the last hour and day, and the processes, for the overview.

Owns  which counters are sampled, the two rings, rates and percentiles between samples.
Not   counters (`model.counters`); how a chart looks (`web.charts`).

    ring    a sample each     holds     memory
    hour    10 s              361       a tuple of floats each: together less than half a MiB
    day     5 min             289
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

SAMPLE_SECONDS: Final = 10
SAMPLES_MAX: Final = 361  # an hour
DAY_EVERY: Final = 30  # samples of the hour for one of the day
Span = Literal["hour", "day"]
SPANS: Final[dict[Span, int]] = {"hour": 3_600, "day": 86_400}
_RINGS: Final[dict[Span, int]] = {"hour": SAMPLES_MAX, "day": 86_400 // (SAMPLE_SECONDS * DAY_EVERY) + 1}

log = logging.getLogger("edgestead.server")


class Rate(NamedTuple):
    """A line: how often a second. `values` are those of the counter's label, none means all."""

    words: str
    metric: str
    values: tuple[str, ...] = ()


class Latency(NamedTuple):
    """A line: the time within which this share of requests was answered, in milliseconds."""

    words: str
    metric: str
    share: float


class ProcessRow(NamedTuple):
    """A process of the server, and how often each thing of `PROCESS_METRICS` happened to it."""

    name: str
    starts: int
    silences: int
    stops: int


class ChartRow(NamedTuple):
    title: str
    unit: str
    lines: Sequence[Rate | Latency]


_STATUSES: Final = (
    ("success", ("2xx",)),
    ("redirect", ("3xx",)),
    ("client error", ("4xx",)),
    ("server error", ("5xx",)),
)
PROCESS_METRICS: Final = (
    "edge_process_starts_total",
    "edge_process_silences_total",
    "edge_process_stops_total",
)
_CHALLENGES: Final = ("challenge", "js_challenge", "managed_challenge")
CHARTS: Final = (
    ChartRow("DNS queries", "a second", (Rate("queries", "edge_dns_queries_total"),)),
    ChartRow(
        "Time of a DNS answer by UDP",
        "ms",
        (
            Latency("half within", "edge_dns_answer_seconds", 0.5),
            Latency("99 % within", "edge_dns_answer_seconds", 0.99),
        ),
    ),
    ChartRow(
        "Requests at the edge",
        "a second",
        tuple(Rate(words, "edge_http_requests_total", values) for words, values in _STATUSES),
    ),
    ChartRow(
        "Decisions of the edge",
        "a second",
        (
            Rate("blocked", "edge_events_total", ("block",)),
            Rate("challenged", "edge_events_total", _CHALLENGES),
            Rate("only logged", "edge_events_total", ("log",)),
        ),
    ),
    ChartRow(
        "Time until the edge answers",
        "ms",
        (
            Latency("half within", "edge_http_request_seconds", 0.5),
            Latency("99 % within", "edge_http_request_seconds", 0.99),
        ),
    ),
    ChartRow(
        "Requests to the API",
        "a second",
        tuple(
            Rate(words, "edge_api_requests_total", values)
            for words, values in _STATUSES
            if words != "redirect"
        ),
    ),
    ChartRow(
        "Time of a request to the API",
        "ms",
        (
            Latency("half within", "edge_api_request_seconds", 0.5),
            Latency("99 % within", "edge_api_request_seconds", 0.99),
        ),
    ),
)
_RATES: Final = {line.metric for row in CHARTS for line in row.lines if isinstance(line, Rate)}
_HISTOGRAMS: Final = {line.metric for row in CHARTS for line in row.lines if isinstance(line, Latency)}
_NAMES: Final = _RATES | {f"{name}_bucket" for name in _HISTOGRAMS}

Key = tuple[str, str]
Point = tuple[float, float]  # seconds before the newest sample, value


class Line(NamedTuple):
    """What a chart draws: `points` from the oldest on."""

    words: str
    points: list[Point]


class Samples:
    """Used by one event loop. Cost of a sample: one rendering of the metrics, once in SAMPLE_SECONDS."""

    def __init__(self, metrics: Callable[[], str], now_s: Callable[[], float]) -> None:
        self._metrics, self._now_s = metrics, now_s
        self._rings = {
            span: deque[tuple[float, dict[Key, float]]](maxlen=size) for span, size in _RINGS.items()
        }
        self.processes: list[ProcessRow] = []  # as of the newest sample
        self.taken = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                self.take()
            except Exception:
                log.exception("a sample for the dashboard failed")  # the next one may not
            await asyncio.sleep(SAMPLE_SECONDS)

    def take(self) -> None:
        lines = self._metrics().splitlines()
        sample = (self._now_s(), _totals(lines))
        self.processes = _processes(lines)
        self._rings["hour"].append(sample)
        if self.taken % DAY_EVERY == 0:
            self._rings["day"].append(sample)
        self.taken += 1
        self.wake()

    async def next(self) -> None:
        """Wait for a sample, or the end."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def wake(self) -> None:
        """Whoever waits for a sample goes on."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def lines(self, row: ChartRow, span: Span) -> list[Line]:
        return [Line(line.words, list(self._points(line, span))) for line in row.lines]

    def _points(self, line: Rate | Latency, span: Span) -> Iterable[Point]:
        ring = self._rings[span]
        for (began, first), (ended, last) in pairwise(ring):
            grown = {
                key: max(0.0, last[key] - first.get(key, 0.0))
                for key in last
                if key[0].startswith(line.metric)
            }
            value = (
                _percentile(line, grown)
                if isinstance(line, Latency)
                else _sum(line, grown) / max(0.001, ended - began)
            )
            if value is not None:
                yield ring[-1][0] - ended, value


def _processes(lines: Iterable[str]) -> list[ProcessRow]:
    counts: dict[str, dict[str, int]] = {}
    for line in lines:
        metric, _, rest = line.partition('{process="')
        if metric in PROCESS_METRICS:
            name, _, value = rest.partition('"} ')
            counts.setdefault(name, {})[metric] = int(float(value))
    return [
        ProcessRow(name, *(counted.get(metric, 0) for metric in PROCESS_METRICS))
        for name, counted in sorted(counts.items())
    ]


def _totals(lines: Iterable[str]) -> dict[Key, float]:
    """The sampled counters over all processes, by name and label."""
    found: dict[Key, float] = {}
    for line in lines:
        name, _, rest = line.partition("{")
        if name in _NAMES:
            labels, _, value = rest.rpartition("} ")
            label = labels.rpartition('="')[2].rstrip('"') if "," in labels else ""
            found[name, label] = found.get((name, label), 0.0) + float(value)
    return found


def _sum(line: Rate, grown: dict[Key, float]) -> float:
    return sum(
        count
        for (name, label), count in grown.items()
        if name == line.metric and (not line.values or label in line.values)
    )


def _percentile(line: Latency, grown: dict[Key, float]) -> float | None:
    """The bound of the bucket that holds it, in milliseconds; None without requests.

    What is above the last bound is shown as that bound.
    """
    counts = {label: count for (name, label), count in grown.items() if name == f"{line.metric}_bucket"}
    total = counts.get("+Inf", 0.0)
    if not total:
        return None
    bounds = sorted(float(label) for label in counts if label != "+Inf")
    for bound in bounds:
        if counts[f"{bound:g}"] >= line.share * total:
            return bound * 1_000
    return bounds[-1] * 1_000
