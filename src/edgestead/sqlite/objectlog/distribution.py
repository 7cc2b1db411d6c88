"""Redistributing the objects of some logs to other logs.

Owns  reading closed logs, creating new ones that begin where those ended.
Not   closing the old logs with every base at its head; when the new ones count.

A database file is linked, not copied, so the old logs stay complete until they are removed. Positions
continue, since each object has its own. The past is copied.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec

from edgestead.sqlite.objectlog.catalogue import Catalogue, Identity, ObjectRow
from edgestead.sqlite.objectlog.format import FOLDER_ID_BYTES
from edgestead.sqlite.objectlog.history import History
from edgestead.sqlite.objectlog.paths import catalogue_path, data_path, history_path
from edgestead.store.files import Files
from edgestead.store.migrations import Doing, quiet
from edgestead.store.objectlog import LogError, ObjectRef, own_path

BATCH_ROWS = 1_000


def deal_out(
    files: Files,
    old: list[str],
    new: list[str],
    owner: Callable[[ObjectRef], int],
    *,
    random: Callable[[int], bytes],
    now_us: int,
    doing: Doing = quiet,
) -> None:
    """Fill the folders `new`, which do not exist yet, with the objects of the closed logs `old`.

    Raises LogError when an old log has commits that are not in its databases yet; OSError; apsw.Error.
    """
    made = [begin(files, folder, random(FOLDER_ID_BYTES), now_us) for folder in new]
    try:
        waiting: list[list[ObjectRow]] = [[] for _ in new]
        numbers = [0] * len(new)
        moved: list[dict[str, list[tuple[int, int]]]] = [{} for _ in new]
        for folder in old:
            for row in settled_rows(folder):
                to = owner(row.ref)
                numbers[to] += 1
                doing(f"{sum(numbers):,} objects are dealt out")
                moved[to].setdefault(folder, []).append((row.number, numbers[to]))
                _link(files, data_path(folder, row.ref), data_path(new[to], row.ref), row.has_file)
                waiting[to].append(msgspec.structs.replace(row, number=numbers[to]))
                if len(waiting[to]) == BATCH_ROWS:
                    made[to].settle(waiting[to], ())
                    waiting[to] = []
        for catalogue, rows in zip(made, waiting, strict=True):
            catalogue.settle(rows, ())
        life = life_of(old)
        for catalogue, folder, numbers_of in zip(made, new, moved, strict=True):
            catalogue.set_identity(Identity(life, life, 0, None, None))
            _move_past(folder, numbers_of, now_us, doing)
    finally:
        for catalogue in made:
            catalogue.close()
    files.sync_tree(new[0])


def begin(files: Files, folder: str, folder_id: bytes, now_us: int) -> Catalogue:
    """The catalogue of a new log."""
    path = catalogue_path(folder)
    files.make_folder(path.rpartition("/")[0])
    return Catalogue(path, "", folder_id, now_us)


def settled_rows(folder: str) -> Iterator[ObjectRow]:
    """The objects of a closed log. Raises LogError when it has commits that are in no database yet."""
    with closing(Catalogue(catalogue_path(folder), "", None)) as catalogue:
        if catalogue.segments():
            raise LogError(f"the object log {folder} has commits that are in no database yet")
        for row in catalogue.rows():
            if row.base != row.head:
                raise LogError(f"the database of {row.ref.class_name}/{row.ref.id} lags behind its log")
            yield row


def life_of(folders: list[str]) -> int:
    """The newest generation of bookmarks of some closed logs; 0 without any."""
    return max(map(_life, folders), default=0)


def _life(folder: str) -> int:
    with closing(Catalogue(catalogue_path(folder), "", None)) as catalogue:
        return catalogue.identity().life


def _move_past(folder: str, numbers: dict[str, list[tuple[int, int]]], now_us: int, doing: Doing) -> None:
    """Copy the past: (number there, number here) by old folder."""
    with closing(History(history_path(folder))) as history:
        history.begin(now_us)
        for old, pairs in numbers.items():
            history.copy_from(history_path(old), pairs, doing)


def _link(files: Files, old: str, new: str, has_file: bool) -> None:
    """Link an object's database: the log's, and its own one with the commits that are still in its `-wal`."""
    own, own_new = own_path(old), own_path(new)
    pairs = [(old, new)] if has_file else []
    pairs += [(own + end, own_new + end) for end in ("", "-wal") if files.exists(own + end)]
    for before, after in pairs:
        files.make_folder(after.rpartition("/")[0])
        os.link(before, after)
