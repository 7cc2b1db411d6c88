"""Lines as SVG, made on the server.

Owns  how points become paths of bounded length, their numbers in words.
Not   where they come from (`web.samples`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from edgestead.web.samples import CHARTS, SPANS, Line, Point, Samples, Span

WIDTH, HEIGHT = 320, 80
POINTS_MAX: Final = 120  # of a line: more are not seen, and each is sent


class Drawn(NamedTuple):
    """`path` is that of a line in WIDTH × HEIGHT, `now` and `highest` its numbers."""

    words: str
    path: str
    now: str
    highest: str


class Chart(NamedTuple):
    """`summary` says it to those who do not see it."""

    title: str
    unit: str
    lines: list[Drawn]
    highest: str
    summary: str


def charts(samples: Samples, span: Span) -> list[Chart]:
    return [_chart(row.title, row.unit, samples.lines(row, span), SPANS[span]) for row in CHARTS]


def _chart(title: str, unit: str, lines: Sequence[Line], seconds: int) -> Chart:
    thin = [Line(line.words, _thinned(line.points, seconds)) for line in lines]
    highest = max((value for line in thin for _, value in line.points), default=0.0)
    drawn = [_drawn(one, seconds, highest, _now(line)) for line, one in zip(lines, thin, strict=True)]
    words = "; ".join(f"{one.words} {one.now}, at most {one.highest}" for one in drawn)
    return Chart(title, unit, drawn, number(highest), f"{title}, {unit}: {words}")


def _thinned(points: Sequence[Point], seconds: int) -> list[Point]:
    """The largest of each POINTS_MAX-th part of the time: what stands out stays."""
    parts: dict[int, Point] = {}
    for ago, value in points:
        part = int(ago * POINTS_MAX / seconds)
        if part < POINTS_MAX and (part not in parts or parts[part][1] < value):
            parts[part] = (ago, value)
    return [parts[part] for part in sorted(parts, reverse=True)]


def _drawn(line: Line, seconds: int, highest: float, now: float | None) -> Drawn:
    places = [
        f"{WIDTH * (1 - ago / seconds):.0f} {HEIGHT - 2 - (HEIGHT - 4) * value / (highest or 1):.0f}"
        for ago, value in line.points
    ]
    most = max((value for _, value in line.points), default=None)
    return Drawn(line.words, "M" + "L".join(places) if places else "", number(now), number(most))


def _now(line: Line) -> float | None:
    """What the newest sample says. Of requests that there were not, no latency is known."""
    ago, value = line.points[-1] if line.points else (1.0, 0.0)
    return None if ago else value


def number(value: float | None) -> str:
    """`0`, `0.25`, `12`, `1,200`: two digits that count; `none`."""
    if value is None:
        return "none"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
