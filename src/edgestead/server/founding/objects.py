"""Stateful objects of a data folder into a cluster's database, and out of it into a backup.

Owns  which folders and which database.
Not   what is carried of an object (`store.carrying`).

A cluster's generation of bookmarks is one more than the folder's, a copy's one more than the cluster's, and
that of a folder that is made of the copy yet one more. So what was handed out before names the same moment
afterwards, and is in the order of texts before what comes; what the cluster handed out behind the copy is
refused, also for positions at which the copy itself has commits, and for objects that it lacks.
"""

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog.carrying import PostgresArriving, PostgresLeaving
from edgestead.server import files
from edgestead.server.founding.telling import Telling
from edgestead.server.objects import layout
from edgestead.sqlite.objectlog.carrying import LocalArriving, LocalLeaving
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store.carrying import carry

FOLDER = "objects"


def own_classes(source: Path) -> list[str]:
    """The classes of a data folder whose objects cannot move into a cluster."""
    return layout.own_classes(source / FOLDER) if (source / FOLDER).is_dir() else []


def bring_in(link: Link, source: Path, say: Callable[[str], None]) -> tuple[int, int]:
    """How many objects were copied, and the generation of the cluster's bookmarks.

    Raises LogError, BlockingIOError, OSError, apsw.Error, as `Link.rows`.
    """
    root = source / FOLDER
    if not (root / layout.FILE).exists():
        return 0, 1
    telling = Telling(
        say, lambda count, octets: f"{count:,} objects are copied, with {octets >> 20:,} MiB of databases"
    )
    try:
        folders = layout.bring_up(root, telling.tell)
        leaving = LocalLeaving(LocalFiles(), folders, _now_us())
        count = carry(leaving, PostgresArriving(link), telling.advance)
    finally:
        files.give_all_to_owner(root)  # its server may have to start again, as a user that is not root
    say(f"{count:,} stateful objects are copied")
    return count, leaving.life + 1


def take_out(link: Link, generation: int, target: Path, advance: Callable[[int, int], None]) -> int:
    """Copy a cluster's objects into the backup `target`; gives how many. They may be used meanwhile.

    Raises LogError, OSError, apsw.Error, as `Link.rows`.
    """
    root = target / FOLDER
    folder = str(layout.settle(root, 0, 1))
    arriving = LocalArriving(
        LocalFiles(),
        folder,
        life=generation + 1,
        now_us=_now_us,
        random=secrets.token_bytes,
        bring_up=lambda: _brought_up(root),
    )
    try:
        carried = carry(PostgresLeaving(link), arriving, advance)
    finally:
        arriving.abandon()
    for name in layout.RUNNING:
        (root / name).unlink(missing_ok=True)
        Path(folder, name).unlink(missing_ok=True)
    return carried


def _brought_up(root: Path) -> None:
    layout.bring_up(root)


def _now_us() -> int:
    return time.time_ns() // 1_000
