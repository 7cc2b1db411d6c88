"""The interface of the objects' alarms: which are due.

Owns  the interface that hands out each due alarm once.
Not   setting an alarm: that is part of a commit (`Lease.append`) and becomes durable with it; what an alarm
      runs, and when it runs again.
"""

from collections.abc import Callable
from typing import Protocol

from edgestead.store.objectlog import ObjectRef


class Alarms(Protocol):
    on_set: Callable[[int], None]
    """Called with the time of each alarm that is set, when it is appended."""

    def take(self, before_us: int, limit: int) -> list[tuple[int, ObjectRef]]:
        """The earliest alarms at or before a time, with their times. Each is returned once, until it is set
        again or given back. Raises what reading the storage raises: then none is taken.
        """
        ...

    def give_back(self, ref: ObjectRef) -> None:
        """A taken alarm that was neither set again nor deleted may be taken again. Raises as `take`."""
        ...

    def next_us(self) -> int | None:
        """The earliest alarm of all that are not taken."""
        ...
