"""Stateful objects in a backup: copying their folder, and making a copy of it an object store of its own.

Owns  when the folder may be copied, which files of it.
Asks  the data folder whether a server runs.
Tells `server.backup` and `server.verifying` through the functions that they take.
Not   what the files hold.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from edgestead.server import admin
from edgestead.server.backup import BackupError
from edgestead.server.folder import read_state
from edgestead.server.verifying import Fault
from edgestead.store.sqlite.copies import faults

FOLDER = "objects"


def copy_objects(data_dir: Path) -> Callable[[Path], None]:
    """Copies the objects of a data folder into a backup."""

    def copy(target: Path) -> None:
        source = data_dir / FOLDER
        if not source.exists():
            return
        state = read_state(data_dir)
        if state is not None and state.objects is not None and admin.is_served(state.admin_socket):
            raise BackupError("stateful objects are in use: stop the server for a backup of them")
        shutil.copytree(source, target / FOLDER, copy_function=_copy_durably)

    return copy


def adopt(folder: Path) -> None:
    """Make a copied folder one that may be used."""


def objects_faults(folder: Path) -> Iterator[Fault]:
    """What is wrong with the databases of objects."""
    for path in sorted(folder.rglob("*.db")):
        for words in faults(path):
            yield Fault(f"{FOLDER}/{path.relative_to(folder)}", words)


def _copy_durably(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
