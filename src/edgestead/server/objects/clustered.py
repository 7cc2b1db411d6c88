"""What joins a process's slots, its log, its objects in memory, and the way to the other processes.

Owns  whether nothing of a slot is here, and what becomes of it when the slot comes or goes.
Not   who has a slot (`ownership`); passing calls on (`spread`).
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.placement import ANYWHERE, Regions, Worker
from edgestead.cluster.slots import Slots
from edgestead.objects.runtime.moving import Moving
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.spread import Owner
from edgestead.server.objects.ownership import Clerk, Ownership
from edgestead.store.objectlog import ObjectRef


class SlotLog(Protocol):
    """What a log that is shared by processes is told of slots."""

    def gained(self, slots: Iterable[int]) -> None:
        """They are this process's now."""
        ...

    def gone(self, slots: Iterable[int]) -> None:
        """They are not any more: nothing of them is leased or undecided."""
        ...

    def kept(self, slots: Iterable[int]) -> None:
        """They were about to be given away, and stay: what met that, alarms say, has to be tried again."""
        ...

    def holds(self, slot: int) -> bool:
        """Whether anything of it is leased, being opened or undecided."""
        ...


class Clustered:
    """The map for `Spread`, and the slots for a log. `register`, make log and node, `open`; `close`."""

    def __init__(
        self,
        clerk: Clerk,
        renewing: Clerk,
        *,
        now_ms: Callable[[], float],
        fatal: Callable[[str], None],
        lease_ms: float = LEASE_MS,
    ) -> None:
        self.ownership = Ownership(
            clerk,
            renewing,
            now_ms=now_ms,
            is_quiet=self._is_quiet,
            left=self._left,
            came=self._came,
            kept=self._kept,
            fatal=fatal,
            looked=lambda: self.looked_at(),
            lease_ms=lease_ms,
        )
        self.looked_at: Callable[[], None] = _nobody_asks  # called after each look at the map
        self.regions: Regions = ANYWHERE  # of classes, known before `open`
        self._log: SlotLog | None = None
        self._moving: Moving | None = None

    @property
    def slots(self) -> Slots:
        return self.ownership.slots

    async def register(self) -> None:
        await self.ownership.register()

    async def open(self, log: SlotLog, node: Node) -> None:
        """Have slots."""
        self._log, self._moving = log, Moving(node, self.regions.slot_of)
        await self.ownership.open()

    async def close(self) -> None:
        """Give the slots back. The node is closed, and its log."""
        await self.ownership.close()

    def _is_quiet(self, slot: int) -> bool:
        assert self._moving is not None
        assert self._log is not None
        return self._moving.let_go(slot) and not self._log.holds(slot)

    def _left(self, slots: list[int]) -> None:
        if slots and self._moving is not None and self._log is not None:
            self._moving.abandon(slots)
            self._log.gone(slots)

    def _came(self, slots: list[int]) -> None:
        if slots and self._log is not None:
            self._log.gained(slots)

    def _kept(self, slots: list[int]) -> None:
        if slots and self._log is not None:
            self._log.kept(slots)

    # the map

    @property
    def number(self) -> int:
        number = self.slots.number
        assert number is not None
        return number

    @property
    def version(self) -> int:
        return self.slots.version

    def has(self, ref: ObjectRef) -> bool:
        return self.slots.owns(self.slot_of(ref))

    def slot_of(self, ref: ObjectRef) -> int:
        return self.regions.slot_of(ref.class_name, ref.id)

    def version_of(self, ref: ObjectRef) -> int:
        return self.slots.version_of(self.slot_of(ref))

    def owns(self, slot: int) -> bool:
        """For the log, as is the next one."""
        return self.slots.owns(slot)

    def may_answer(self) -> bool:
        return self.slots.may_answer()

    async def owner(self, ref: ObjectRef, since: int = -1) -> Owner:
        return _named(await self.ownership.owner(self.slot_of(ref), since=since))

    def others(self) -> list[Owner]:
        return [_named(worker) for number, worker in self.slots.workers.items() if number != self.number]

    async def looked(self) -> None:
        await self.ownership.looked()


def _nobody_asks() -> None: ...


def _named(worker: Worker) -> Owner:
    return Owner(worker.number, worker.address, worker.place, worker.node, worker.region, worker.form)
