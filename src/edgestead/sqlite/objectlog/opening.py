"""Preparing a folder before its log accepts commits: opening its databases, redoing logged commits.

Owns  the order of the steps, and the errors of a full or damaged disk.
Not   the running log.
"""

import logging
from contextlib import closing

import apsw

from edgestead.model.refusals import NO_SPACE_ERRNOS
from edgestead.sqlite.objectlog.catalogue import Catalogue
from edgestead.sqlite.objectlog.history import History
from edgestead.sqlite.objectlog.paths import (
    catalogue_path,
    data_folder,
    data_path,
    history_path,
    keep_path,
    lock_path,
    log_folder,
)
from edgestead.sqlite.objectlog.recovery import Found, recover, redo
from edgestead.sqlite.objectlog.watermark import Mark, Watermark, missed, read_mark
from edgestead.store.files import File, Files
from edgestead.store.history.reader import Begun, PastReader
from edgestead.store.history.restoring import read_file
from edgestead.store.migrations import Doing, quiet
from edgestead.store.objectlog import LogDamaged, NoSpace
from edgestead.store.past import ObjectState

log = logging.getLogger(__name__)


def open_folder(files: Files, folder: str) -> File:
    """Create the folders that are missing, and take the lock. Raises BlockingIOError, OSError."""
    for path in (log_folder(folder), data_folder(folder)):
        files.make_folder(path)
    files.sync_folder(folder)
    if above := folder.rpartition("/")[0]:
        files.sync_folder(above)
    lock = files.lock(lock_path(folder))
    files.open(keep_path(folder), create=True).close()  # here, where the error of a full disk is expected
    return lock


def lock_keep(files: Files, folder: str) -> File | None:
    """The lock under which bases are written down and segments go; None while the folder is being copied.

    Whoever copies has read databases already that lack what the segments have. Raises OSError.
    """
    try:
        return files.lock(keep_path(folder))
    except BlockingIOError:
        return None


def open_catalogue(
    files: Files, folder: str, vfs: str, folder_id: bytes, made_us: int, doing: Doing = quiet
) -> Catalogue:
    """Create a catalogue where there is neither log nor object; otherwise open the existing one.

    Raises NoSpace, LogDamaged, LogError for a newer schema, OSError, apsw.Error.
    """
    has_log = any(name.startswith("segment-") for name in files.names(log_folder(folder)))
    begins = not has_log and not files.names(data_folder(folder))
    try:
        return Catalogue(catalogue_path(folder), vfs, folder_id if begins else None, made_us, doing=doing)
    except apsw.FullError as error:
        raise NoSpace("no space left for the object log's catalogue") from error


def find_mark(files: Files, folder: str, catalogue: Catalogue, life: int) -> Mark | None:
    """The position of the mark. A missing mark is logged. Raises OSError."""
    found = read_mark(files, folder, catalogue.folder_id)
    if found is None and catalogue.marked_life == life:
        log.warning("%s", missed(folder))
    return found


def open_mark(files: Files, folder: str, catalogue: Catalogue, life: int, found: Mark | None) -> Watermark:
    """The open mark; if it is gone later, that will be noticed. Raises NoSpace, OSError."""
    try:
        made = Watermark(files, folder, catalogue.folder_id, anew=found is None)
        files.sync_folder(log_folder(folder))
        if catalogue.marked_life != life:
            catalogue.note_mark(life)
        return made
    except OSError as error:
        if error.errno in NO_SPACE_ERRNOS:
            raise NoSpace("no space left for the object log's mark") from error
        raise


def open_history(folder: str, vfs: str, doing: Doing = quiet) -> History:
    """Raises NoSpace, LogDamaged, LogError for a newer schema, OSError, apsw.Error."""
    path = history_path(folder)
    try:
        return History(path, vfs, doing)
    except apsw.FullError as error:
        raise NoSpace("no space left for the objects' history") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise LogDamaged(f"{path}: {error}; move it away to go on without the past") from error


def begin_past(
    files: Files, folder: str, catalogue: Catalogue, history: History, life: int, time_us: int
) -> None:
    """For a folder without history, because it is older or lost it: the past begins with the present
    state.
    """
    past = PastReader(history)
    if catalogue.last_number():
        log.warning("%s: there is no past of these objects: it begins now", history_path(folder))
    with history:
        history.begin(time_us)
        for row in catalogue.rows():
            if not row.base or row.base in history.snapshot_positions(row.number):
                continue
            image = read_file(files, data_path(folder, row.ref)) if row.has_file else b""
            state = ObjectState(row.base, bytearray(image), {}, row.alarm_us)
            past.begin_with(Begun(row.number, time_us, life, row.session), state)


def _sync_segments(files: Files, folder: str, slots: list[str]) -> None:
    """Sync what was read: a killed process may have written a record without syncing it.

    Otherwise a power cut could lose it and keep later records.
    """
    for slot in slots:
        file = files.open(f"{folder}/{slot}")
        try:
            file.sync()
        finally:
            file.close()


def redo_all(
    files: Files, folder: str, catalogue: Catalogue, history_needs: int, mark: Mark, doing: Doing = quiet
) -> Found:
    """Redo every object, sync, update the catalogue; then only tails and history still need segments.

    While the folder is being copied the catalogue stays as it was, and so do all segments that have records.
    History does not have the segments from `history_needs` on. Raises LogDamaged, LogLost when they end
    before `mark`, OSError, apsw.Error.
    """
    found = recover(files, log_folder(folder), catalogue, mark, doing)
    for words in found.dropped:
        log.warning("%s: nobody was told of it, and it is dropped", words)
    _sync_segments(files, log_folder(folder), [row.slot for row in found.used])
    for count, recovered in enumerate(found.objects.values()):
        doing(f"{count:,} of {len(found.objects):,} databases have what was logged")
        redo(files, data_path(folder, recovered.ref), recovered)
    files.sync_tree(data_folder(folder))
    keep = lock_keep(files, folder)
    if keep is None:
        catalogue.settle((), [row.generation for row in found.unused])
        return found
    with closing(keep):
        needed = [found.oldest[one.number] for one in found.objects.values() if one.base < one.head]
        needed_from = min([*needed, catalogue.last_generation() + 1, history_needs])
        retired = [row for row in found.used if row.generation < needed_from]
        found.used = [row for row in found.used if row.generation >= needed_from]
        catalogue.settle(
            [recovered.row() for recovered in found.objects.values()],
            [row.generation for row in (*retired, *found.unused)],
        )
    return found
