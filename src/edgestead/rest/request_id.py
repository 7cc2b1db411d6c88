"""The number that an answer and its log line share.

Owns  its form: 16 hex digits, and three letters for the place (contract "Headers").
Not   tracing over several services.
"""

import itertools
from collections.abc import Callable

HEADER = b"cf-ray"
PLACE = "EDG"
_MASK = (1 << 64) - 1
_STRIDE = 0x9E3779B97F4A7C15  # odd, so that all 2^64 numbers come before one repeats


def request_ids(first: int) -> Callable[[], str]:
    """A source of numbers, each one once.

    >>> next_id = request_ids(0)
    >>> next_id(), next_id()
    ('0000000000000000-EDG', '9e3779b97f4a7c15-EDG')
    """
    numbers = itertools.count(first, _STRIDE)
    return lambda: f"{next(numbers) & _MASK:016x}-{PLACE}"
