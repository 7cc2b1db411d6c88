"""The newest changes in memory, shared by all consumers.

Owns  a bounded, dense run of changes and how many bytes lie between two of them.
Not   which consumer has which.
"""

from bisect import bisect_right
from collections.abc import Iterable

from edgestead.store.changes import Change, change_bytes


class Tail:
    """Holds the changes after `start` up to `head`: after `trim`, about `bytes_max` of them."""

    def __init__(self, start: int, bytes_max: int) -> None:
        self.start = start
        self._bytes_max = bytes_max
        self._changes: list[Change] = []
        self._bytes_upto = [0]  # [i]: bytes of everything up to and including sequence start + i

    @property
    def head(self) -> int:
        return self.start + len(self._changes)

    def extend(self, changes: Iterable[Change]) -> None:
        """Append what is newer than the head. Raises ValueError when something is missing in between."""
        for change in changes:
            if change.sequence <= self.head:
                continue
            if change.sequence != self.head + 1:
                raise ValueError(f"change {change.sequence} follows {self.head}")
            self._changes.append(change)
            self._bytes_upto.append(self._bytes_upto[-1] + change_bytes(change))

    def trim(self) -> None:
        """Forget the oldest beyond `bytes_max`."""
        surplus = self._bytes_upto[-1] - self._bytes_upto[0] - self._bytes_max
        if surplus > self._bytes_max // 4:  # deleting moves the rest of the list: so not after every change
            count = bisect_right(self._bytes_upto, self._bytes_upto[0] + surplus) - 1
            del self._changes[:count]
            del self._bytes_upto[:count]
            self.start += count

    def holds(self, after: int) -> bool:
        """Whether the changes that follow `after` are all here."""
        return self.start <= after <= self.head

    def bytes_between(self, after: int, upto: int) -> int:
        """Of the changes after one sequence up to another; both must be held."""
        return self._bytes_upto[upto - self.start] - self._bytes_upto[after - self.start]

    def slice(self, after: int, upto: int, bytes_max: int) -> list[Change]:
        """The changes after `after`: at least one, none beyond `upto`, about `bytes_max` of them."""
        first = after - self.start
        last = bisect_right(self._bytes_upto, self._bytes_upto[first] + bytes_max) - 1
        return self._changes[first : max(first + 1, min(last, upto - self.start))]
