"""Where each object of a cluster should live: slots, and the workers that are wanted for them.

Owns  the slot of an object; which worker is wanted for each slot.
Not   who has a slot (`slots`); which class belongs to which region (`postgres.regions`).

Rendezvous hashing: each worker draws a number for each slot, by its name, and the highest is wanted. When a
worker goes only its slots move, to all others alike. Its name is that of its machine and its place there, so
that they come back to the next process of that place.

Classes that name a region share slots that are that region's alone, and for which only workers of its nodes
are wanted:

    0 … 4,095            objects of all classes without a region
    4,096 + 256 (n - 1)  and 255 more: objects of classes with the region whose number is n
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import shake_128
from struct import unpack
from types import MappingProxyType
from typing import Final, NamedTuple

SLOTS: Final = 4_096
REGION_SLOTS: Final = 256
_SLOT_DIGITS: Final = 3  # of an id, which is random or a hash
_REGION_DIGITS: Final = 2
NO_REGIONS: Final[Mapping[int, str]] = MappingProxyType({})


class Worker(NamedTuple):
    """One process that runs objects, as its row in the cluster's database shows it.

    `place` counts those of its node. `renewed` changes as long as it lives. One that is draining has no slots
    in the end. `region` is that of its node, "" where it has none; `form` the newest that it reads
    (`cluster.forms`).
    """

    number: int
    node: str
    place: int
    address: str
    renewed: int
    is_draining: bool = False
    region: str = ""
    form: int = 1


def slot_of(object_id: str, region: int = 0) -> int:
    """The slot of an object, by its id in hexadecimal digits and the number of its region; 0 is none."""
    if region:
        return SLOTS + (region - 1) * REGION_SLOTS + int(object_id[:_REGION_DIGITS], 16)
    return int(object_id[:_SLOT_DIGITS], 16)


def region_of(slot: int) -> int:
    """The number of the region that a slot belongs to; 0 is none."""
    return 0 if slot < SLOTS else (slot - SLOTS) // REGION_SLOTS + 1


class Regions(NamedTuple):
    """The number of each class's region; a class that is not there has none."""

    of_class: Mapping[str, int]

    def slot_of(self, class_name: str, object_id: str) -> int:
        return slot_of(object_id, self.of_class.get(class_name, 0))


ANYWHERE: Final = Regions(MappingProxyType({}))


def wanted(
    workers: Iterable[Worker], slots: int = SLOTS, regions: Mapping[int, str] = NO_REGIONS
) -> list[int | None] | None:
    """The number of the worker that each of so many slots should have, and behind them those of `regions`,
    which are names by number; None for the slots of a region without workers. None without workers at all.

    Those that are draining count only when there are no others.
    """
    all_workers = list(workers)
    everywhere = _wanted_of(all_workers, slots)
    if not everywhere:
        return None
    found: list[int | None] = [*everywhere]
    for number in range(1, max(regions, default=0) + 1):
        there = [worker for worker in all_workers if worker.region == regions.get(number)]
        found += _wanted_of(there, REGION_SLOTS) or [None] * REGION_SLOTS
    return found


def _wanted_of(workers: Iterable[Worker], slots: int) -> list[int]:
    all_workers = sorted(workers, key=lambda worker: worker.number)
    staying = [worker for worker in all_workers if not worker.is_draining] or all_workers
    if not staying:
        return []
    numbers = [worker.number for worker in staying]
    best = _highest(tuple((worker.node, worker.place) for worker in staying), slots)
    return [numbers[index] for index in best]


@lru_cache(maxsize=64)
def _highest(names: tuple[tuple[str, int], ...], slots: int) -> list[int]:
    """For each slot, the index of the name that drew the highest number."""
    drawn = zip(*(_draw(name, slots) for name in names), strict=True)
    return [column.index(max(column)) for column in drawn]


@lru_cache(maxsize=1_024)
def _draw(name: tuple[str, int], slots: int) -> tuple[int, ...]:
    """A number for each slot, which depends on the name alone."""
    node, place = name
    return unpack(f">{slots}Q", shake_128(f"{place}@{node}".encode()).digest(8 * slots))
