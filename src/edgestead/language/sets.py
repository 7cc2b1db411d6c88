"""Sets for `in { … }`: membership in constant or logarithmic time.

Owns  how a list of items becomes something that `in` works on.
Not   named lists: those come ready from outside.
"""

from bisect import bisect_right
from collections.abc import Container, Iterable


class Ranges:
    """Integers in inclusive ranges: merged, sorted, found by bisection.

    Networks are ranges too, so one list serves addresses, networks and ranges of both families.
    """

    __slots__ = ("bounds",)

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.bounds: list[int] = []  # where a range begins, where it is over, in turns
        for first, last in sorted(ranges):
            if self.bounds and first <= self.bounds[-1]:
                self.bounds[-1] = max(self.bounds[-1], last + 1)
            else:
                self.bounds += (first, last + 1)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and bisect_right(self.bounds, value) & 1 == 1


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
