"""Rates and latencies of the last hour and day, and the processes, for the overview.

Owns  which counters are sampled, the two rings, rates and percentiles between samples, the rings as octets.
Not   counters (`model.counters`); how a chart looks (`web.charts`); files.

    ring    a value of each line    holds     memory
    hour    10 s                    360       a tuple of floats each: together less than half a MiB
    day     5 min                   288
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

SAMPLE_SECONDS: Final = 10
DAY_EVERY: Final = 30  # samples of the hour for one of the day
Span = Literal["hour", "day"]
SPANS: Final[dict[Span, int]] = {"hour": 3_600, "day": 86_400}
_EVERY: Final[dict[Span, int]] = {"hour": 1, "day": DAY_EVERY}  # samples
POINTS_MAX: Final = {span: seconds // (SAMPLE_SECONDS * _EVERY[span]) for span, seconds in SPANS.items()}
_FORM: Final = 1  # of rings as octets
_US: Final = 1_000_000

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
_LINES: Final = [line for row in CHARTS for line in row.lines]
_NAMED: Final = [f"{row.title}: {line.words}" for row in CHARTS for line in row.lines]
_RATES: Final = {line.metric for line in _LINES if isinstance(line, Rate)}
_HISTOGRAMS: Final = {line.metric for line in _LINES if isinstance(line, Latency)}
_NAMES: Final = _RATES | {f"{name}_bucket" for name in _HISTOGRAMS}

Key = tuple[str, str]
Point = tuple[float, float]  # seconds before the newest sample, value


class Line(NamedTuple):
    """What a chart draws: `points` from the oldest on."""

    words: str
    points: list[Point]


class _Sample(NamedTuple):
    """A value of each line since the sample before; None for the latency of no requests."""

    at_s: float
    values: tuple[float | None, ...]


class _Kept(msgspec.Struct, frozen=True):
    """The rings as octets. `lines` are the names of the values of each sample, `ago_s` is before `at_us`."""

    form: int
    at_us: int
    lines: list[str]
    rings: dict[Span, list[tuple[float, tuple[float | None, ...]]]]


class Foreign(ValueError):
    """Octets that are no rings of this version; for people."""


class Samples:
    """Used by one event loop. Cost of a sample: one rendering of the metrics, once in SAMPLE_SECONDS.

    What a chart draws is worked out once a sample, not by each look at a page.
    """

    def __init__(self, metrics: Callable[[], str], now_s: Callable[[], float]) -> None:
        self._metrics, self._now_s = metrics, now_s
        self._rings = {span: deque[_Sample](maxlen=size) for span, size in POINTS_MAX.items()}
        self._last: dict[Span, tuple[float, dict[Key, float]]] = {}
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
        now_s, totals = self._now_s(), _totals(lines)
        self.processes = _processes(lines)
        for span, every in _EVERY.items():
            if self.taken % every == 0:
                self._note(span, now_s, totals)
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

    def _note(self, span: Span, now_s: float, totals: dict[Key, float]) -> None:
        """Counters that are smaller than before have begun again."""
        if span in self._last:
            began, first = self._last[span]
            grown = {key: max(0.0, value - first.get(key, 0.0)) for key, value in totals.items()}
            seconds = max(0.001, now_s - began)
            values = [_value(line, grown, seconds) for line in _LINES]
            self._rings[span].append(_Sample(now_s, tuple(values)))
        self._last[span] = now_s, totals

    def lines(self, row: ChartRow, span: Span) -> list[Line]:
        return [Line(line.words, list(self._points(_LINES.index(line), span))) for line in row.lines]

    def _points(self, place: int, span: Span) -> Iterable[Point]:
        ring = self._rings[span]
        for at_s, values in ring:
            value = values[place]
            if value is not None:
                yield ring[-1].at_s - at_s, value

    def encoded(self, now_us: int) -> bytes:
        now_s = self._now_s()
        rings: dict[Span, list[tuple[float, tuple[float | None, ...]]]] = {
            span: [(round(now_s - one.at_s, 1), tuple(map(_rounded, one.values))) for one in ring]
            for span, ring in self._rings.items()
        }
        return msgspec.json.encode(_Kept(_FORM, now_us, _NAMED, rings))

    def go_on(self, octets: bytes, now_us: int) -> None:
        """Begin with what another process had, as old as it is by now. Raises Foreign: nothing is changed."""
        try:
            kept = msgspec.json.decode(octets, type=_Kept)
            past_s = (now_us - kept.at_us) / _US
        except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError) as error:
            raise Foreign(str(error)) from None
        _look_at(kept, past_s)
        now_s = self._now_s()
        for span, ring in self._rings.items():
            found = kept.rings.get(span, [])
            past = [_Sample(now_s - past_s - ago_s, values) for ago_s, values in found]
            ring.extend(one for one in past if now_s - one.at_s < SPANS[span])


def _look_at(kept: _Kept, past_s: float) -> None:
    """Raises Foreign."""
    if kept.form != _FORM or kept.lines != _NAMED:
        raise Foreign("it has the charts of another version")
    if past_s < 0:
        raise Foreign("it is from the future: the clock was set back")
    for samples in kept.rings.values():
        ages = [ago_s for ago_s, _ in samples]
        if ages != sorted(ages, reverse=True) or min(ages, default=0.0) < 0:
            raise Foreign("its samples are not in order")
        if any(
            len(values) != len(_LINES) or min(filter(None, values), default=0.0) < 0 for _, values in samples
        ):
            raise Foreign("a sample has not one value of each line")


def _rounded(value: float | None) -> float | None:
    """Four digits that count: more are not seen."""
    return None if value is None else float(f"{value:.4g}")


def _value(line: Rate | Latency, grown: dict[Key, float], seconds: float) -> float | None:
    return _percentile(line, grown) if isinstance(line, Latency) else _sum(line, grown) / seconds


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
