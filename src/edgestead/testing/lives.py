"""One life of a simulated objects process: from its start until it is killed.

Owns  the loop, the log and the node of one life, and ending them without a word.
Not   what is done with the node; time between two lives.
"""

import asyncio
import contextlib
import random as random_module
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from edgestead.objects.errors import ObjectReset
from edgestead.objects.runtime import aftermath
from edgestead.objects.runtime.classes import ClassInfo
from edgestead.objects.runtime.database import Database
from edgestead.objects.runtime.env import Bindings
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.quarantine import Quarantine
from edgestead.objects.runtime.stage import SLOT_BYTES, Stage
from edgestead.server import stores
from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.simulation import Deadlock, SimulatedLoop, SimulatedRunner

T = TypeVar("T")
FOLDER = "/objects"
SEGMENT_BYTES = 64 * 1024  # small: each is made when a node begins
NEVER_SECONDS = 1e9  # this clock is set by `node` only, which tells the alarms
LAST_TURNS_MAX = 20  # of the loop, for killed tasks to end


_STAGE_BYTES = 256 * SLOT_BYTES  # enough for the objects of a test
_BOOT = b"simulated"


def new_stage() -> memoryview:
    """Memory in which no life has left anything."""
    return memoryview(bytearray(_STAGE_BYTES))


class Stuck(AssertionError):
    """A call waits for something that cannot come any more, or polled for a day of invented time."""


class RecordedNode(Node):
    """A node that knows every database it ever opened, to close what a kill leaves open."""

    databases: list[Database]

    def _open_database(self, *arguments: Any) -> Database:
        database = super()._open_database(*arguments)
        self.databases.append(database)
        return database


class Life:
    """A node over what the disk holds. `seed` numbers an order of what happens at once; None: as it comes."""

    def __init__(
        self,
        disk: SimulatedDisk,
        vfs: str,
        classes: Mapping[str, ClassInfo],
        *,
        time_us: int,
        seed: int | None,
        bindings: Bindings | None = None,
        stage: memoryview | None = None,
    ) -> None:
        """`stage` is memory that outlives a kill, to be found by the next life."""
        self._disk, self._vfs = disk, vfs
        self.random = random_module.Random(seed or 0)
        self.loop = SimulatedLoop(self.random, in_order=seed is None)
        self.loop.epoch_us = time_us
        self.fatal: list[BaseException] = []
        self._stage = Stage(stage or new_stage(), _BOOT)
        self.node = self.loop.run_until_complete(self._begin(classes, bindings))

    async def _begin(self, classes: Mapping[str, ClassInfo], bindings: Bindings | None) -> RecordedNode:
        loop = self.loop
        log = self.log = stores.open_objects(
            FOLDER,
            files=self._disk,
            runner=lambda name: SimulatedRunner(loop, 0.0),
            now_us=loop.now_us,
            random=self.random.randbytes,
            fatal=self.fatal.append,
            vfs=self._vfs,
            segment_bytes=SEGMENT_BYTES,
        )
        quarantine = Quarantine(self._disk, FOLDER)
        node = RecordedNode(
            classes,
            log.store,
            self._disk,
            now_ms=loop.now_ms,
            random=self.random.randbytes,
            vfs=self._vfs,
            bindings=bindings,
            stage=self._stage,
            quarantine=quarantine,
        )
        node.databases = []
        node.alarms.look_seconds_max = NEVER_SECONDS
        await aftermath.settle(node, self._stage, quarantine)
        node.alarms.start()
        return node

    def run(self, work: Coroutine[Any, Any, T], seconds_max: float | None = None) -> T:
        """Run until the work is done; everything else goes on meanwhile. Raises Stuck."""
        loop = self.loop
        until = None if seconds_max is None else loop.now + seconds_max

        def watch() -> None:
            if until is not None and loop.now > until:
                raise Stuck(f"nothing came of it in {seconds_max:g} s of invented time")

        loop.watch = watch
        task = loop.create_task(work)
        try:
            return loop.run_until_complete(task)
        except Deadlock:
            raise Stuck("it waits for something that nobody will do") from None
        finally:
            loop.watch = _nothing
            if not task.done():
                task.cancel()

    def kill(self) -> None:
        """End as by SIGKILL: nothing more reaches the disk, no code of users has any effect."""
        error = ObjectReset("The process was killed.")
        with self._disk.freeze():
            for instance in self.node._live.values():
                instance.state, instance.error = "over", error
                if instance._engine is not None:
                    instance._engine.broken = error
            self._cancel_all()
            for database in self.node.databases:
                database.close()
            self.log._chronicle.close()
            self.log._catalogue.close()
        self.loop.close()

    def _cancel_all(self) -> None:
        loop = self.loop
        for _ in range(LAST_TURNS_MAX):
            tasks = asyncio.all_tasks(loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            with contextlib.suppress(Exception):  # of callbacks, which a kill would not have run
                loop.run_until_complete(asyncio.sleep(0))
        for task in asyncio.all_tasks(loop):  # they refuse to end
            task._log_destroy_pending = False  # type: ignore[attr-defined]


def _nothing() -> None:
    pass
