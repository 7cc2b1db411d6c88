"""Opening each store by its implementation: the one place that chooses it.

Owns  which implementation there is, where its files are in a data folder.
Not   who may use the folder; when a store is closed.
"""

from collections.abc import Callable
from pathlib import Path

import apsw

from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.sqlite.objectlog.local import KEEPING, SEGMENT_BYTES, LocalObjectLog
from edgestead.store.runner import Runner
from edgestead.store.history.thinning import Keeping
from edgestead.sqlite.witness import WritesLost
from edgestead.store.files import Files
from edgestead.store.kv import Allowance
from edgestead.store.migrations import Doing, SchemaError, quiet
from edgestead.tables.schema import MIGRATIONS

CONTROL_NAME = "control.db"
FAULTS = (SchemaError, WritesLost, apsw.Error)
CANNOT_OPEN = (*FAULTS, OSError)


def open_control(
    folder: Path, *, ahead: bool = False, synced: bool = True, doing: Doing = quiet
) -> SqliteControlStore:
    """Control's data. With `ahead` small writes succeed on a full disk, too. Without `synced` nothing is
    durable: for tests. `doing` is called as long as an upgrade makes progress. Raises CANNOT_OPEN.
    """
    return SqliteControlStore(folder / CONTROL_NAME, MIGRATIONS, ahead=ahead, synced=synced, doing=doing)


def open_kv(
    folder: Path,
    *,
    ahead: bool = False,
    synced: bool = True,
    allowance: Callable[[str], Allowance] | None = None,
    doing: Doing = quiet,
) -> SqliteKvStore:
    """The key-values. `ahead` and `doing` as above. Raises CANNOT_OPEN."""
    return SqliteKvStore(folder, ahead=ahead, synced=synced, allowance=allowance, doing=doing)


def open_objects(
    folder: str,
    *,
    files: Files,
    runner: Callable[[str], Runner],
    now_us: Callable[[], int],
    random: Callable[[int], bytes],
    fatal: Callable[[BaseException], None],
    clock: Callable[[], float] | None = None,
    vfs: str = "",
    segment_bytes: int = SEGMENT_BYTES,
    keeping: Keeping = KEEPING,
    doing: Doing = quiet,
) -> LocalObjectLog:
    """The objects of one process; `runner(name)` makes a place for slow work. Raises as `LocalObjectLog`."""
    return LocalObjectLog(
        folder,
        files=files,
        commits=runner("object-log"),
        upkeep=runner("object-upkeep"),
        past=runner("object-past"),
        now_us=now_us,
        clock=clock,
        random=random,
        fatal=fatal,
        vfs=vfs,
        segment_bytes=segment_bytes,
        keeping=keeping,
        doing=doing,
    )
