"""Object logs for the tests: on real files or on a simulated disk, with invented time."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import msgspec

from edgestead.objects.runtime.classes import Durability
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.store.objectlog import (
    UNCHANGED,
    Alarm,
    CatalogueEntry,
    Commit,
    CommitKind,
    Group,
    Lease,
    Log,
    LogError,
    ObjectRef,
    Told,
)
from edgestead.store.past import LoggedPosition
from edgestead.store.runner import InlineRunner
from edgestead.testing.disks import SimulatedDisk

SEGMENT_BYTES = 64 * 1024
LATEST_US = 2**62


def ref(name: str = "one", class_name: str = "Counter") -> ObjectRef:
    return ObjectRef(class_name, name.encode().hex().rjust(64, "0"), name)


def keys(**changes: bytes | None) -> Commit:
    return Commit(CommitKind.KEYS, msgspec.msgpack.encode(changes))


def put(log: LocalObjectLog, lease: Lease, *commits: Commit, alarm: Alarm = UNCHANGED) -> Group:
    """Append, flush, and give the group back."""
    group = lease.append(list(commits), alarm)
    log.flush()
    return group


def answer(begin: Callable[[Told[Any]], None]) -> Any:
    """What an inline log answers. Raises the error that comes instead."""
    told: list[tuple[Any, LogError | None]] = []
    begin(lambda result, error: told.append((result, error)))
    ((result, error),) = told
    if error is not None:
        raise error
    return result


def entries(log: Log) -> list[CatalogueEntry]:
    """Every object of a log that answers at once."""
    found: list[CatalogueEntry] = answer(lambda done: log.catalogue(("", ""), 10_000, done))
    return found


def leased(log: Log, of: ObjectRef) -> Lease:
    """The lease of an object in a log that answers at once."""
    lease: Lease = answer(lambda done: log.acquire(of, done))
    return lease


def kept(log: LocalObjectLog, of: ObjectRef, after: int, upto: int) -> list[LoggedPosition]:
    """The commits that are kept with after < position <= upto, in order."""
    found = answer(lambda done: log.past.moments(of, 0, LATEST_US, 10_000, done))
    return [one for one in reversed(found) if after < one.position <= upto]


class Logs:
    """Opens one log after the other on one simulated disk, and remembers what was fatal."""

    def __init__(self, disk: SimulatedDisk, vfs: str) -> None:
        self.disk, self.vfs = disk, vfs
        self.fatal: list[BaseException] = []
        self.clock = itertools.count(1_000_000, 1_000)
        self.opened: list[LocalObjectLog] = []
        self.databases: list[Any] = []
        self.durability: Durability = "log"  # of every class that runs on it

    def open(self, **options: Any) -> LocalObjectLog:
        options = {"segment_bytes": SEGMENT_BYTES, "files": self.disk} | options
        log = LocalObjectLog(
            "/objects",
            commits=InlineRunner(),
            upkeep=InlineRunner(),
            now_us=lambda: next(self.clock),
            random=random.Random(len(self.opened)).randbytes,
            fatal=self.fatal.append,
            vfs=self.vfs,
            **options,
        )
        self.opened.append(log)
        return log

    def killed(self) -> None:
        """The process is gone without a word; the kernel is not."""
        self.disk.restart()
        self.abandon()

    def power_cut(self, seed: int = 0) -> None:
        self.disk.cut_power(random.Random(seed))
        self.abandon()

    def abandon(self) -> None:
        """Close what the killed processes had open, without any effect on the disk."""
        with self.disk.freeze():
            for database in self.databases:
                database.close()
            for log in self.opened:
                log._chronicle.close()
                log._catalogue.close()
        self.databases.clear()
