"""What of a backup only the process itself can copy: its log, and databases that are durable by themselves.

Owns  the order of copying, which makes the copy one that a crash could have left.
Not   databases that the log makes whole: whoever backs up copies their files as they are.

    TARGET/log/history.db, catalogue.db, segment-0001.log …     in this order
    TARGET/data/<class>/<first two digits>/<id>.own.sqlite       then these: as after a crash, never behind

The caller holds the lock of `keep_path` meanwhile, so no segment goes. Pages that change in a database's file
while somebody reads it are in a segment from before, and the next start writes them again.

A segment is copied up to where it was durable at one moment. Copied while it grows, it could lack a record at
the end of one piece and have the next record in the piece behind it, which no crash leaves.
"""

import asyncio
import os
from functools import partial
from pathlib import Path

import apsw

from edgestead.objects.operate import copies
from edgestead.objects.runtime.asking import ask
from edgestead.objects.runtime.node import Node
from edgestead.sqlite.copies import copy_file
from edgestead.sqlite.objectlog.format import BLOCK_BYTES
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.sqlite.objectlog.paths import catalogue_path, data_path
from edgestead.store.objectlog import ObjectRef, own_path


async def copy_log(node: Node, log: LocalObjectLog, target: str) -> None:
    """Copy it into a new folder. Raises LogError, ObjectError, OSError, apsw.Error."""
    os.makedirs(f"{target}/log", mode=0o700)
    await ask(partial(log.copy_books, target))
    await asyncio.to_thread(_copy_segments, log.folder, target, log.durable_ends())
    refs = [entry.ref for entry in log.entries()]
    for ref, path in await asyncio.to_thread(_own_databases, log.folder, target, refs):
        await node.visit(ref, partial(copies.copy, path=path))
        await asyncio.to_thread(copies.finish, path)


def _own_databases(folder: str, target: str, refs: list[ObjectRef]) -> list[tuple[ObjectRef, str]]:
    """Objects with a database that is durable by itself, and where its copy goes."""
    found = []
    for ref in refs:
        if os.path.exists(own_path(data_path(folder, ref))):
            path = own_path(data_path(target, ref))
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            found.append((ref, path))
    return found


def _copy_segments(folder: str, target: str, ends: dict[str, int]) -> None:
    """Those that the copied catalogue names; one that is begun later is not needed.

    One without an end has no record yet, only its header.
    """
    catalogue = apsw.Connection(catalogue_path(target), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        slots = [slot for (slot,) in catalogue.execute("SELECT slot FROM segments ORDER BY generation")]
    finally:
        catalogue.close()
    for slot in slots:
        copy_file(Path(folder, "log", slot), Path(target, "log", slot), ends.get(slot, BLOCK_BYTES))
