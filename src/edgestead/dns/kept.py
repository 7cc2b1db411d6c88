"""A dict that never grows past its limits: full means empty again.

Owns  the bound.
Not   deciding what is worth keeping: only what a finite set of questions can lead to belongs here.

Emptying is cheap to decide and the entries that matter come back with their next question. Evicting one by
one was tried on paper only: it needs a second structure that every hit would have to touch.
"""

from collections.abc import Hashable
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRIES_MAX: Final = 65_536  # answers that are kept in wire format; all are forgotten at once
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
