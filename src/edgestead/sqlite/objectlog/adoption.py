"""Whether a folder is a copy of another one, and how a copy becomes independent.

Owns  the check at each opening; the generation of bookmarks (`life`); reopening a log that lost its end.
Not   copying folders.

Two copies of one folder would both continue with the same positions, and a bookmark would be ambiguous. So a
folder whose device or inode changed is not opened until it is adopted. Adoption starts the next generation of
bookmarks, and bookmarks of commits that the folder never had are refused.
"""

from contextlib import closing

import msgspec

from edgestead.sqlite.objectlog.catalogue import Catalogue, Identity
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.format import BLOCK_BYTES
from edgestead.sqlite.objectlog.history import History
from edgestead.sqlite.objectlog.paths import catalogue_path, history_path, lock_path, log_folder
from edgestead.sqlite.objectlog.recovery import recover
from edgestead.sqlite.objectlog.watermark import NOWHERE, Mark, read_mark, write_mark
from edgestead.store.files import Files
from edgestead.store.objectlog import LogError, LogLost


class Copied(LogError):
    """The folder is a copy of another one, or was moved to another disk. Nothing was changed."""


def check_identity(files: Files, log: str, catalogue: Catalogue) -> Identity:
    """The identity of the folder. Raises Copied."""
    known = catalogue.identity()
    device, inode = files.identity(log)
    if known.device is None:
        known = msgspec.structs.replace(known, device=device, inode=inode)
        catalogue.set_identity(known)
    elif (known.device, known.inode) != (device, inode):
        raise Copied(
            f"{log} is a copy, or was moved to another disk: `edgecli object adopt` makes it a folder "
            "of its own. Never let the original run again beside it"
        )
    return known


def accept_loss(folder: str, files: Files | None = None, vfs: str = "") -> str | None:
    """Let a log that lost acknowledged records continue at its end; returns a text about the loss, or None.

    Starts the next generation, so that bookmarks of lost commits are refused. A history that is ahead of the
    log is moved to `history.db.before-loss`, since its positions will be used again. No process may have the
    folder open. Raises BlockingIOError when a process has it, LogDamaged when more than the end is lost,
    OSError, apsw.Error.
    """
    files = files or LocalFiles()
    with (
        closing(files.lock(lock_path(folder))),
        closing(Catalogue(catalogue_path(folder), vfs, None)) as catalogue,
    ):
        mark = read_mark(files, folder, catalogue.folder_id) or NOWHERE
        try:
            recover(files, log_folder(folder), catalogue, mark)
            return None
        except LogLost as error:
            words = str(error).partition(". Nothing")[0]
        found = recover(files, log_folder(folder), catalogue, NOWHERE)
        end = Mark(mark.generation, found.ends.get(mark.generation, BLOCK_BYTES))
        _put_past_aside(files, folder, vfs, end)
        _begin_life(files, folder, catalogue)
        write_mark(files, folder, catalogue.folder_id, end)
    return words


def _put_past_aside(files: Files, folder: str, vfs: str, end: Mark) -> None:
    path = history_path(folder)
    if not files.exists(path):
        return
    with closing(History(path, vfs)) as history:
        cursor = history.cursor()
        if (cursor.segment, cursor.offset) <= (end.generation, end.offset):
            return
        history.copy(f"{path}.before-loss")
    for suffix in ("", "-wal", "-shm"):
        files.remove(path + suffix)
    files.sync_folder(log_folder(folder))


def adopt(folder: str, files: Files | None = None, vfs: str = "") -> int:
    """Start the next generation of a copied folder (as passed to `LocalObjectLog`); returns its number.

    No process may have it open. Bookmarks of every commit that it contains stay valid.
    Raises BlockingIOError when a process has it, OSError, apsw.Error.
    """
    files = files or LocalFiles()
    with (
        closing(files.lock(lock_path(folder))),
        closing(Catalogue(catalogue_path(folder), vfs, None)) as catalogue,
    ):
        return _begin_life(files, folder, catalogue)


def _begin_life(files: Files, folder: str, catalogue: Catalogue) -> int:
    known, since = catalogue.identity(), catalogue.last_generation()
    before = known.life if since > known.life_since else known.life_before
    device, inode = files.identity(log_folder(folder))
    catalogue.set_identity(Identity(known.life + 1, before, since, device, inode))
    return known.life + 1
