"""Times as pages write them and people type them.

Owns  `10m` and RFC 3339 as milliseconds; how long ago something was, in words.
Not   clocks.
"""

import time
from typing import Final

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DIGITS_MAX: Final = 9
_STEPS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ahead_ms(text: str) -> int | None:
    """`10m` is in ten minutes. None for text that is no such time."""
    seconds = _seconds(text)
    return None if seconds is None else now_ms() + seconds * 1_000


def _seconds(text: str) -> int | None:
    number, unit = text[:-1], text[-1:]
    if unit in _UNIT_SECONDS and number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX:
        return int(number) * _UNIT_SECONDS[unit]
    return None


def when(micros: int) -> str:
    """`2026-11-21 10:30:00 UTC`."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(micros // 1_000_000)) + " UTC"
    except (ValueError, OverflowError):
        return f"{micros} µs"  # beyond what calendars of the system reach


def moment(micros: int) -> str:
    """The same to the millisecond."""
    return when(micros).replace(" UTC", f".{micros // 1_000 % 1_000:03d} UTC")


def ago(micros: int) -> str:
    """`3 minutes ago`, `in 2 days`."""
    seconds = time.time_ns() // 1_000_000_000 - micros // 1_000_000
    for size, unit in _STEPS:
        count = abs(seconds) // size
        if count:
            words = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"{words} ago" if seconds > 0 else f"in {words}"
    return "just now"
