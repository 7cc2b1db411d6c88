"""What of a backup only the process itself can copy: its log, and databases that are durable by themselves.

Owns  the order of copying, which makes the copy one that a crash could have left.
Asks  the object log for its books; `copies` for a database; SQLite.
Tells `operate`.
Not   databases that the log makes whole: whoever backs up copies their files as they are.

    TARGET/log/history.db, catalogue.db, segment-0001.log …     in this order
    TARGET/data/<class>/<first two digits>/<id>.own.sqlite       then these: as after a crash, never behind

The caller holds the lock of `keep_path` meanwhile, so no segment goes. Pages that change in a database's file
while somebody reads it are in a segment from before, and the next start writes them again.
"""

import asyncio
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING

import apsw

from edgestead.objects import copies
from edgestead.store.objectlog import LogError, ObjectRef
from edgestead.store.sqlite.objectlog.local import LocalObjectLog
from edgestead.store.sqlite.objectlog.paths import catalogue_path, data_path, own_path

if TYPE_CHECKING:
    from edgestead.objects.node import Node
    from edgestead.objects.operate import Offload


async def copy_log(node: "Node", target: str, offload: "Offload") -> None:
    """Copy it into a new folder. Raises LogError, ObjectError, OSError, apsw.Error."""
    log = node.log
    assert isinstance(log, LocalObjectLog)
    os.makedirs(f"{target}/log", mode=0o700)
    copied: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def told(_: None, error: LogError | None) -> None:
        if copied.done():
            return
        if error is None:
            copied.set_result(None)
        else:
            copied.set_exception(error)

    log.copy_books(target, told)
    await copied
    await offload(partial(_copy_segments, log.folder, target))
    refs = [entry.ref for entry in log.catalogue()]
    for ref, path in await offload(partial(_own_databases, log.folder, target, refs)):
        await node.visit(ref, partial(copies.copy, path=path))
        await offload(partial(copies.finish, path))


def _own_databases(folder: str, target: str, refs: list[ObjectRef]) -> list[tuple[ObjectRef, str]]:
    """Objects with a database that is durable by itself, and where its copy goes."""
    found = []
    for ref in refs:
        if os.path.exists(own_path(data_path(folder, ref))):
            path = own_path(data_path(target, ref))
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            found.append((ref, path))
    return found


def _copy_segments(folder: str, target: str) -> None:
    """Those that the copied catalogue names; one that is begun later is not needed."""
    catalogue = apsw.Connection(catalogue_path(target), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        slots = [slot for (slot,) in catalogue.execute("SELECT slot FROM segments ORDER BY generation")]
    finally:
        catalogue.close()
    for slot in slots:
        shutil.copyfile(f"{folder}/log/{slot}", f"{target}/log/{slot}")
