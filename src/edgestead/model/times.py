"""Times as text: microseconds since the epoch in, RFC 3339 in UTC out.

Owns  the two spellings that answers use.
Asks  nobody.
Tells `services`.
Not   what time it is.
"""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def six_digits(time_us: int) -> str:
    """The form of resources: always six fraction digits.

    >>> six_digits(1_700_000_000_000_001)
    '2023-11-14T22:13:20.000001Z'
    """
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


def whole_seconds(time_us: int) -> str:
    """The form of tokens.

    >>> whole_seconds(1_700_000_000_999_999)
    '2023-11-14T22:13:20Z'
    """
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="seconds")[: -len("+00:00")] + "Z"
