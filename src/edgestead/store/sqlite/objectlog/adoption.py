"""Whether a folder is the one it was, and what makes a copy a folder of its own.

Owns  the check at each opening; the generation of bookmarks, which is the folder's life.
Asks  `catalogue` for what it was, `files` for what it is.
Tells `local`; the command line, which adopts folders and brings them back.
Not   copying folders.

Two copies of one folder would both go on with the same positions, and a bookmark would mean two things. So a
folder whose device or inode is not what it was is not opened until it is adopted. Then its life begins anew:
its bookmarks have the next generation, and those of commits that it never had are refused.
"""

import msgspec

from edgestead.store.objectlog import LogError
from edgestead.store.sqlite.objectlog.catalogue import Catalogue, Identity
from edgestead.store.sqlite.objectlog.files import Files, LocalFiles


class Copied(LogError):
    """The folder is a copy of another one, or was moved to another disk. Nothing was changed."""


def check_identity(files: Files, log_folder: str, catalogue: Catalogue) -> Identity:
    """Whose life the folder is. Raises Copied."""
    known = catalogue.identity()
    device, inode = files.identity(log_folder)
    if known.device is None:
        known = msgspec.structs.replace(known, device=device, inode=inode)
        catalogue.set_identity(known)
    elif (known.device, known.inode) != (device, inode):
        raise Copied(
            f"{log_folder} is a copy, or was moved to another disk: `edgecli object adopt` makes it a folder "
            "of its own. Never let the original run again beside it"
        )
    return known


def adopt(folder: str, files: Files | None = None, vfs: str = "") -> int:
    """Begin the next life of a copied folder (as `LocalObjectLog` takes it); gives its number.

    No process may have it open. The bookmarks of every commit that it holds stay good.
    Raises BlockingIOError when a process has it, OSError, apsw.Error.
    """
    files = files or LocalFiles()
    log_folder = f"{folder}/log"
    lock = files.lock(f"{log_folder}/lock")
    try:
        catalogue = Catalogue(f"{log_folder}/catalogue.db", vfs, b"", 0)
        try:
            known, since = catalogue.identity(), catalogue.last_generation()
            before = known.life if since > known.life_since else known.life_before
            device, inode = files.identity(log_folder)
            catalogue.set_identity(Identity(known.life + 1, before, since, device, inode))
        finally:
            catalogue.close()
    finally:
        lock.close()
    return known.life + 1
