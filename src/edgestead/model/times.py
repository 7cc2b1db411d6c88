"""Times as text: microseconds since the epoch in, RFC 3339 in UTC out.

Owns  the two spellings that answers use, and reading the exact one back.
Not   what time it is.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

TIMES_KEPT_MAX = 64  # the records of one batch or import have one time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(TIMES_KEPT_MAX)
def six_digits(time_us: int) -> str:
    """The form of resources: always six fraction digits.

    >>> six_digits(1_700_000_000_000_001)
    '2023-11-14T22:13:20.000001Z'
    """
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


def from_six_digits(text: str) -> int:
    """The inverse of `six_digits`.

    >>> from_six_digits("2023-11-14T22:13:20.000001Z")
    1700000000000001
    """
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)


def whole_seconds(time_us: int) -> str:
    """The form of tokens.

    >>> whole_seconds(1_700_000_000_999_999)
    '2023-11-14T22:13:20Z'
    """
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="seconds")[: -len("+00:00")] + "Z"
