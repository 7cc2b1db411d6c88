"""Times as one writes them in a shell, and the moments of an object's past as a picture.

Owns  `10m` and ISO 8601 as milliseconds; bars and the line over them.
Not   printing. Imports click and the standard library only.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from edgestead.cli.failure import Failed, counted
from edgestead.cli.target import Json

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SECONDS_MAX = 100 * 366 * 86_400
_STEPS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_BAR = "\u2588"
BAR_WIDTH, LINE_WIDTH = 20, 60
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def ago_ms(text: str) -> int:
    """A time that was: `10m` is ten minutes ago. Raises Failed."""
    return _moment_ms(text, -1)


def ahead_ms(text: str) -> int:
    """A time to come: `10m` is in ten minutes. Raises Failed."""
    return _moment_ms(text, 1)


def _moment_ms(text: str, sign: int) -> int:
    number, unit = text[:-1], text[-1:]
    if unit in _UNIT_SECONDS and number.isdecimal() and len(number) <= 12:
        seconds = int(number) * _UNIT_SECONDS[unit]
        if seconds <= _SECONDS_MAX:
            return int(time.time() * 1_000) + sign * seconds * 1_000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failed(f"{text!r} is no time. Write 10m, or 2026-11-21T10:30:00Z.") from None
    if moment.tzinfo is None:
        raise Failed(f"{text!r} does not say its zone: {text}Z is UTC.")
    return int(moment.timestamp() * 1_000)


def when(time_ms: int | None) -> str | None:
    """A time in milliseconds as text, in UTC: 2026-11-21T10:30:00.250Z."""
    if time_ms is None:
        return None
    try:
        moment = datetime.fromtimestamp(time_ms / 1_000, UTC)
    except (ValueError, OverflowError):
        return f"{time_ms} ms"  # beyond the year 9999
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def picture(moments: Sequence[Json]) -> Iterator[str]:
    """Lines for people: how much was kept when, and each moment with its bookmark, newest first."""
    if not moments:
        yield "Nothing is kept of that time."
        return
    times = [moment["time_us"] for moment in moments]
    sizes = [moment["bytes_stored"] for moment in moments]
    first, last = when(min(times) // 1_000), when(max(times) // 1_000)
    yield f"{first} |{_density(times, sizes)}| {last}"
    yield f"{counted(len(moments), 'moment')}, {size_of(sum(sizes))}"
    yield ""
    largest = max(sizes)
    for moment in moments:
        share = moment["bytes_stored"] / largest if largest else 0
        bar = _BAR * max(1, round(share * BAR_WIDTH)) if moment["bytes_stored"] else ""
        marks = ("*" if moment["pinned"] else " ") + ("<" if moment["event"] == "restore" else " ")
        shown = f"{when(moment['time_us'] // 1_000)} {marks} {moment['bookmark']}"
        yield f"{shown}  {size_of(moment['bytes_stored']):>9} {bar}".rstrip()


def _density(times: Sequence[int], sizes: Sequence[int]) -> str:
    """How many bytes were kept in each part of the time between the first and the last."""
    first, span = min(times), max(times) - min(times) + 1
    kept = [0] * LINE_WIDTH
    for at, size in zip(times, sizes, strict=True):
        kept[(at - first) * LINE_WIDTH // span] += max(size, 1)
    most = max(kept)
    return "".join(_STEPS[-(-part * (len(_STEPS) - 1) // most)] for part in kept)


def size_of(count: int) -> str:
    """`712 B`, `4.0 KiB`."""
    for least, unit in _SIZES:
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count} B"
