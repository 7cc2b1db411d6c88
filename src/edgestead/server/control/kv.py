"""The key-value part of control: its store, and what is swept in the background.

Owns  opening and closing; when what is swept.
Not   routes; what a sweep removes.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edgestead.model.quotas import NO_QUOTAS, Quotas
from edgestead.model.refusals import Unavailable
from edgestead.rest.kv_data import KvData
from edgestead.s3.bodies import Bucket
from edgestead.server import stores
from edgestead.server.rounds import Rounds
from edgestead.sqlite.database import Database
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.store.control import ControlStore
from edgestead.store.kv import Allowance
from edgestead.store.migrations import Doing, quiet
from edgestead.usecases.kv import namespaces

if TYPE_CHECKING:
    from edgestead.postgres.kv import PostgresKvStore

SWEEP_SECONDS = 30  # expired rows, and rows of deleted namespaces
SLICE_PAUSE_SECONDS = 0.01  # writes pass between two slices

Now = Callable[[], float]


def _allowance(control: ControlStore, quotas: Quotas, namespace: str) -> Allowance:
    return control.read(lambda reader: namespaces.allowance(reader, quotas, namespace))


class KvPart:
    """Made before the loop runs, so that a broken database stops the start. Raises `stores.CANNOT_OPEN`.

    `cluster_database` is where a cluster's key-values are, `bucket` where its large ones go; `place` as in
    `PostgresKvStore`. There `may_sweep`
    has to be replaced: only the process that leads knows which namespaces there are.
    """

    def __init__(
        self,
        data_dir: Path,
        control: ControlStore,
        quotas: Quotas = NO_QUOTAS,
        *,
        cluster_database: str | None = None,
        place: Callable[[], int | None] = lambda: None,
        bucket: Bucket | None = None,
        ahead: bool = False,
        now_s: Now = time.time,
        doing: Doing = quiet,
    ) -> None:
        allowance = partial(_allowance, control, quotas) if namespaces.have_quota(quotas) else None
        self._free_bytes: Callable[[], int] = lambda: 0
        self._sweep_elsewhere: Callable[[], int] = lambda: 0
        self.databases: dict[str, Database] = {}
        """Of this machine, by the names of their files."""
        self._store: SqliteKvStore | PostgresKvStore
        if cluster_database is None:
            embedded = stores.open_kv(data_dir, ahead=ahead, allowance=allowance, doing=doing)
            self._store, self._free_bytes = embedded, embedded.free_bytes
            self.databases["kv.db"] = embedded.database
        else:
            far = stores.open_cluster_kv(
                cluster_database, spool_dir=data_dir, allowance=allowance, place=place, bucket=bucket
            )
            self._store, self._sweep_elsewhere = far, far.sweep_elsewhere
        self.may_sweep: Callable[[], bool] = lambda: cluster_database is None
        self._control = control
        self._now_s = now_s
        self.data = KvData(self._store, spool_dir=data_dir)
        what, sweep = "sweeping key-value data", self._sweep_if_it_may
        self._sweeps = Rounds(what, SWEEP_SECONDS, sweep, known=(Unavailable, OSError))

    def free_bytes(self) -> int:
        """Room inside the database, which deleted rows left."""
        return self._free_bytes()

    @property
    def is_short(self) -> bool:
        """Whether the next small writes may need free blocks of the disk."""
        return any(database.is_short for database in self.databases.values())

    def open(self) -> None:
        """Sweep from now on; the first time at once, because a crash may have left something."""
        self._sweeps.open()

    def close(self) -> None:
        """No more writes. Blocks until the queue is on disk."""
        self._sweeps.close()
        self.data.close()
        self._store.close()

    async def _sweep_if_it_may(self) -> None:
        """What fails is swept later; requests meet the same trouble and say so themselves."""
        if self.may_sweep():
            await self._drop_unknown()
            await self._sweep()

    async def _sweep(self) -> None:
        """Every slice that there is now; writes pass between them."""
        while True:
            if not await self.data.in_thread(self._store.sweep, int(self._now_s())):
                break
            await asyncio.sleep(SLICE_PAUSE_SECONDS)
        while await self.data.in_thread(self._sweep_elsewhere):  # noqa: ASYNC110 - it is work, not a wait
            await asyncio.sleep(SLICE_PAUSE_SECONDS)

    async def _drop_unknown(self) -> None:
        """Drop the data of namespaces that control no longer knows: what a crash in a deletion left."""
        held = await self.data.in_thread(self._store.namespaces)
        if not self.may_sweep():
            return
        unknown = self._control.read(lambda reader: namespaces.unknown(reader, held))
        # All are asked for in this turn of the loop: each holds the place with which this process has read.
        for dropped in [self._store.drop(id_) for id_ in unknown]:
            await asyncio.wrap_future(dropped)
