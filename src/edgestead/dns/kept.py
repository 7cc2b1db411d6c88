"""A cache with limits: it is emptied when it is full.

Owns  the bound.
Not   choosing the entries: only results of a finite set of questions belong here.

Emptying is cheap, and frequent entries are added again by their next question. Evicting single entries was
considered, not measured: it needs a second structure that every hit would have to update.
"""

from collections.abc import Hashable
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRIES_MAX: Final = 65_536  # answers that are cached in wire format; all are dropped at a time
OCTETS_MAX: Final = 16 * 1024 * 1024  # the same in memory, of each process


class Kept(dict[K, V]):
    """Read it as the dict it is; add with `keep`."""

    __slots__ = ("octets",)

    def __init__(self) -> None:
        self.octets = 0

    def keep(self, key: K, value: V, octets: int) -> None:
        self.octets += octets
        if len(self) >= ENTRIES_MAX or self.octets > OCTETS_MAX:
            self.clear()
            self.octets = octets
        self[key] = value
