"""Sets for `in { … }`: membership in constant or logarithmic time.

Owns  how a list of items becomes something that `in` works on.
Asks  nobody.
Tells the compiler.
Not   named lists: those come ready from outside.
"""

from bisect import bisect_right
from collections.abc import Container, Iterable


class Ranges:
    """Integers in inclusive ranges: merged, sorted, found by bisection.

    Networks are ranges too, so one list serves addresses, networks and ranges of both families.
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int):
            return False
        place = bisect_right(self._firsts, value)
        return place > 0 and value <= self._lasts[place - 1]


def item_set(items: Iterable[bytes | tuple[int, int]]) -> Container[object]:
    """The fitting set: hashed when every item is a single value."""
    strings, ranges = [], []
    for item in items:
        if isinstance(item, bytes):
            strings.append(item)
        else:
            ranges.append(item)
    if all(first == last for first, last in ranges):
        return frozenset(strings) | frozenset(first for first, _ in ranges)
    return Ranges(ranges)
