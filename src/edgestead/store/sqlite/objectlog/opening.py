"""What has to happen to a folder before its log takes commits: opening its books, redoing what was logged.

Owns  the order within each step, and which error a full or damaged disk becomes.
Asks  `catalogue`, `history`, `recovery`.
Tells `local`, which puts the steps together.
Not   anything while the log runs.
"""

import apsw

from edgestead.store.objectlog import LogDamaged, NoSpace, ObjectState
from edgestead.store.sqlite.objectlog.catalogue import Catalogue
from edgestead.store.sqlite.objectlog.files import File, Files
from edgestead.store.sqlite.objectlog.history import History
from edgestead.store.sqlite.objectlog.past import Begun, Past
from edgestead.store.sqlite.objectlog.paths import (
    catalogue_path,
    data_folder,
    data_path,
    history_path,
    keep_path,
    log_folder,
)
from edgestead.store.sqlite.objectlog.recovery import Found, recover, redo
from edgestead.store.sqlite.objectlog.restoring import read_file


def open_folder(files: Files, folder: str) -> File:
    """Make what is missing, and hold the lock. Raises BlockingIOError, OSError."""
    for path in (log_folder(folder), data_folder(folder)):
        files.make_folder(path)
    files.sync_folder(folder)
    lock = files.lock(f"{log_folder(folder)}/lock")
    files.open(keep_path(folder), create=True).close()  # here, where a full disk may say so
    return lock


def open_catalogue(folder: str, vfs: str, folder_id: bytes, made_us: int) -> Catalogue:
    """Raises NoSpace, apsw.Error."""
    try:
        return Catalogue(catalogue_path(folder), vfs, folder_id, made_us)
    except apsw.FullError as error:
        raise NoSpace("no space left for the object log's catalogue") from error


def open_history(folder: str, vfs: str) -> History:
    """Raises NoSpace, LogDamaged, apsw.Error."""
    path = history_path(folder)
    try:
        return History(path, vfs)
    except apsw.FullError as error:
        raise NoSpace("no space left for the objects' history") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise LogDamaged(f"{path}: {error}; move it away to go on without the past") from error


def begin_past(
    files: Files, folder: str, catalogue: Catalogue, history: History, life: int, time_us: int
) -> None:
    """A folder from before there was history, or that lost it: the past begins with what is there now."""
    past = Past(history)
    with history:
        history.begin(time_us)
        for row in catalogue.rows():
            if not row.base:
                continue
            image = read_file(files, data_path(folder, row.ref)) if row.has_file else b""
            state = ObjectState(row.base, bytearray(image), {}, row.alarm_us)
            past.begin_with(Begun(row.number, time_us, life, row.session), state)


def _sync_segments(files: Files, folder: str, slots: list[str]) -> None:
    """Make durable what was read: a killed process may have written a record without syncing it.

    Later records would follow it, and a power cut could take it from before them.
    """
    for slot in slots:
        file = files.open(f"{folder}/{slot}")
        try:
            file.sync()
        finally:
            file.close()


def redo_all(files: Files, folder: str, catalogue: Catalogue, history_needs: int) -> Found:
    """Redo every object, make that durable, write it down; then only tails and history keep segments live.

    History does not have the segments from `history_needs` on. Raises LogDamaged, OSError, apsw.Error.
    """
    found = recover(files, log_folder(folder), catalogue)
    _sync_segments(files, log_folder(folder), [row.slot for row in found.used])
    for recovered in found.objects.values():
        redo(files, data_path(folder, recovered.ref), recovered)
    files.sync_tree(data_folder(folder))
    needed = [found.oldest[one.number] for one in found.objects.values() if one.base < one.head]
    needed_from = min([*needed, catalogue.last_generation() + 1, history_needs])
    retired = [row for row in found.used if row.generation < needed_from]
    found.used = [row for row in found.used if row.generation >= needed_from]
    catalogue.settle(
        [recovered.row() for recovered in found.objects.values()],
        [row.generation for row in (*retired, *found.unused)],
    )
    return found
