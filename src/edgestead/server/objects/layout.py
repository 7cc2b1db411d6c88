"""Which folder each objects process has, and what happens when their number changes.

Owns  `layout.json` and the generations of folders.
Not   starting processes (the supervisor).

    FOLDER/lock          held by whoever reads or changes the layout
    FOLDER/layout.json   {"generation": 3, "processes": 2}, and "apart" with classes if there are any
    FOLDER/3/0, 3/1      one object log for each process
    FOLDER/3/2           if classes went apart since (`server.objects.apart`): theirs

Another number of processes, or other classes that are kept apart, make a new generation beside the old one.
It counts from the moment `layout.json` says so, in one rename; until then the old one is untouched, and a
start that was cut off begins again.
"""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from edgestead.objects.ids import owner_of
from edgestead.objects.runtime import quarantine
from edgestead.objects.runtime.stage import STAGE_FILE
from edgestead.server import files
from edgestead.server.objects.host import Host
from edgestead.server.objects.shared import locked, write_whole
from edgestead.sqlite.objectlog import adoption
from edgestead.sqlite.objectlog.distribution import deal_out
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.store.migrations import Doing, quiet
from edgestead.store.objectlog import ObjectRef, own_path

FILE = "layout.json"
RUNNING = ("lock", STAGE_FILE)
"""Of a folder, what means something only while a process runs."""


class Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """Generation and number of the folders in use; the classes that the last one is for, by name."""

    generation: int
    processes: int
    apart: tuple[str, ...] = ()


def settle(
    root: Path,
    worker: int,
    processes: int,
    apart: Iterable[str] = (),
    went: Collection[str] = (),
    doing: Doing = quiet,
) -> Path:
    """The folder of one of so many processes, of which the classes `apart` have the last one to themselves.

    The first to ask deals the objects out when either is new. Classes that `went` apart since stay so.
    `doing` is called at each step, and while another process does it: should that one stop, it is ended.

    Waits for whoever is at it already. Not to be called from a loop. Raises LogError, OSError, apsw.Error:
    then everything is as it was.
    """
    files.make_folder(root)
    with locked(root / "lock", lambda: doing("another process deals the objects out")):
        layout = _read(root)
        if layout is None:
            layout = Layout(1, processes, tuple(sorted(apart)))
            _write(root, layout)
        elif (layout.processes, layout.apart) != (processes, tuple(sorted(apart))):
            new = Layout(layout.generation + 1, processes, tuple(sorted(apart)))
            layout = _deal_out(root, layout, new, went, doing)
        files.make_folder(root / str(layout.generation))
        _sweep(root, layout)
    return root / str(layout.generation) / str(worker)


def adopt(root: Path) -> int:
    """Make a copied folder one of its own; gives how many logs it has, 0 without any.

    Raises BlockingIOError when a process has it open, OSError, apsw.Error.
    """
    if not root.is_dir():
        return 0
    with locked(root / "lock"):
        layout = _read(root)
        folders = [] if layout is None else [one for one in _folders(root, layout) if os.path.isdir(one)]
        for folder in folders:
            adoption.adopt(folder)
    return len(folders)


def accept_losses(root: Path) -> list[str]:
    """Let each log that lost its end go on; gives what is lost, in words.

    Raises BlockingIOError when a process has one open, LogDamaged, OSError, apsw.Error.
    """
    if not root.is_dir():
        return []
    with locked(root / "lock"):
        return [words for folder in folders(root) if (words := adoption.accept_loss(folder)) is not None]


def folders(root: Path) -> list[str]:
    """The folders of all processes that the layout knows. Raises OSError."""
    found = _read(root)
    return [] if found is None else _folders(root, found)


def bring_up(root: Path, doing: Doing = quiet) -> list[str]:
    """Bring every database up to its log, as before objects are dealt out; gives the folders that there are.

    Raises BlockingIOError when a process has one open, LogError, OSError, apsw.Error.
    """
    with locked(root / "lock"):
        there = [folder for folder in folders(root) if os.path.isdir(folder)]
        for folder in there:
            asyncio.run(_bring_up(folder, doing))
    return there


def own_classes(root: Path) -> list[str]:
    """The classes that have objects whose own database makes them durable (`durability = "sqlite"`)."""
    own = f"*{own_path('.sqlite')}"
    found = {
        path.name
        for folder in folders(root)
        for path in Path(folder, "data").glob("*")
        if next(path.rglob(own), None) is not None
    }
    return sorted(found)


def _read(root: Path) -> Layout | None:
    try:
        return msgspec.json.decode((root / FILE).read_bytes(), type=Layout)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise OSError(f"{root / 'layout.json'} cannot be read: {error}") from None


def _write(root: Path, layout: Layout) -> None:
    write_whole(root / FILE, msgspec.json.encode(layout))


def _deal_out(root: Path, layout: Layout, new: Layout, went: Collection[str], doing: Doing) -> Layout:
    shutil.rmtree(root / str(new.generation), ignore_errors=True)
    old_folders = [folder for folder in _folders(root, layout) if os.path.isdir(folder)]
    new_folders = _folders(root, new, beside=bool(went))
    for folder in old_folders:
        asyncio.run(_bring_up(folder, doing, is_left=True))

    def owner(ref: ObjectRef) -> int:
        return len(new_folders) - 1 if ref.class_name in went else owner_of(ref, new.processes, new.apart)

    deal_out(
        LocalFiles(),
        old_folders,
        new_folders,
        owner,
        random=secrets.token_bytes,
        now_us=time.time_ns() // 1_000,
        doing=doing,
    )
    quarantine.deal_out(LocalFiles(), old_folders, dict(enumerate(new_folders)), owner)
    LocalFiles().sync_folder(str(root))
    _write(root, new)
    return new


async def _bring_up(folder: str, doing: Doing, *, is_left: bool = False) -> None:
    """Bring every database of a log up to the log's head, and close it."""
    host = Host(folder, {}, doing=doing)
    assert isinstance(host.log, LocalObjectLog)
    host.log.is_left = is_left
    try:
        await host.node.bring_up(doing)
    finally:
        await host.close()


def _folders(root: Path, layout: Layout, *, beside: bool = False) -> list[str]:
    """One for each process. `beside`: one more for classes that went apart, unless the last one is it."""
    generation = root / str(layout.generation)
    count = layout.processes
    if not layout.apart:
        count += beside or (generation / str(count)).is_dir()
    return [str(generation / str(worker)) for worker in range(count)]


def _sweep(root: Path, layout: Layout) -> None:
    """Remove generations that do not count."""
    for name in os.listdir(root):
        if name.isdigit() and int(name) != layout.generation:
            shutil.rmtree(root / name, ignore_errors=True)
