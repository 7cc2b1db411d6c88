"""A plain SQLite file of what an object has committed, made while it goes on.

Owns  copying page by page between other work, and taking off what only a live database needs.
Not   who may have it; the log, which knows more commits of the past.

The copy is the object at one moment, the last page's: every transaction is in it whole or not at all.
"""

import asyncio
import os
import shutil
import time

import apsw

from edgestead.objects.errors import ObjectError
from edgestead.objects.runtime.engine import Engine

PAGES_AT_ONCE = 256  # copied in one turn of the loop
BUSY_SECONDS = 0.002  # between two looks at a transaction that is still open
BUSY_SECONDS_MAX = 60.0  # that a copy waits for a database that is written to
ROOM_LEFT_BYTES = 64 * 1024 * 1024  # of the disk, for the log: a copy is not to stop anybody's commits
_MIB = 1024 * 1024


async def copy(engine: Engine, path: str) -> None:
    """Copy the database to a new file.

    Raises ObjectError when its object keeps a transaction open, or the disk has no room for a copy.
    """
    engine.commit()
    engine.commit(flush=True, upkeep=True)  # of what is acknowledged: also on a full disk
    engine.check()
    database = engine.open()
    _check_room(os.path.dirname(path), database.size_bytes())
    source = database.connection
    target = apsw.Connection(path)
    try:
        target.execute("PRAGMA synchronous = OFF").fetchall()
        with target.backup("main", source, "main") as backup:
            await _copy_pages(engine, backup)
    except apsw.FullError:  # others took the room meanwhile
        raise ObjectError("There is no room left for a copy of the object.") from None
    finally:
        target.close()


def _check_room(folder: str, size_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < size_bytes + ROOM_LEFT_BYTES:
        raise ObjectError(
            f"There is no room for a copy: it takes {size_bytes / _MIB:.1f} MiB and is to leave "
            f"{ROOM_LEFT_BYTES // _MIB} MiB free; {free_bytes / _MIB:.1f} MiB are free in the data folder."
        )


async def _copy_pages(engine: Engine, backup: apsw.Backup) -> None:
    until = time.monotonic() + BUSY_SECONDS_MAX
    while True:
        engine.commit()  # what others wrote in this turn: pages are not copied in a transaction
        engine.check()
        try:
            if backup.step(PAGES_AT_ONCE):
                return
            until = time.monotonic() + BUSY_SECONDS_MAX
            await asyncio.sleep(0)
        except apsw.BusyError:
            if time.monotonic() > until:
                raise ObjectError("The object keeps a transaction open.") from None
            await asyncio.sleep(BUSY_SECONDS)


def finish(path: str) -> None:
    """Make it a file that any program can open: no write-ahead log beside it. Not to be called on a loop."""
    target = apsw.Connection(path)
    try:
        target.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        target.close()
