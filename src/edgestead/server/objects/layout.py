"""Which folder each objects process has, and what happens when their number changes.

Owns  `layout.json` and the generations of folders.
Not   starting processes (the supervisor).

    FOLDER/lock          held by whoever reads or changes the layout
    FOLDER/layout.json   {"generation": 3, "processes": 2}, and "apart" with classes if there are any
    FOLDER/3/0, 3/1      one object log for each process

Another number of processes, or other classes that are kept apart, make a new generation beside the old one.
It counts from the moment `layout.json` says so, in one rename; until then the old one is untouched, and a
start that was cut off begins again.
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgestead.objects.ids import owner_of
from edgestead.objects.runtime import quarantine
from edgestead.server.objects.host import Host
from edgestead.sqlite.objectlog import adoption
from edgestead.sqlite.objectlog.distribution import deal_out
from edgestead.sqlite.objectlog.files import LocalFiles


class Layout(msgspec.Struct, frozen=True, omit_defaults=True):
    """Generation and number of the folders in use; the classes that the last one is for, by name."""

    generation: int
    processes: int
    apart: tuple[str, ...] = ()


def settle(root: Path, worker: int, processes: int, apart: Iterable[str] = ()) -> Path:
    """The folder of one of so many processes, of which the classes `apart` have the last one to themselves.

    The first to ask deals the objects out when either is new.

    Waits for whoever is at it already. Not to be called from a loop. Raises LogError, OSError, apsw.Error:
    then everything is as it was.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(root / "lock"):
        layout = _read(root)
        if layout is None:
            layout = Layout(1, processes, tuple(sorted(apart)))
            _write(root, layout)
        elif (layout.processes, layout.apart) != (processes, tuple(sorted(apart))):
            layout = _deal_out(root, layout, Layout(layout.generation + 1, processes, tuple(sorted(apart))))
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


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def folders(root: Path) -> list[str]:
    """The folders of all processes that the layout knows. Raises OSError."""
    found = _read(root)
    return [] if found is None else _folders(root, found)


def _read(root: Path) -> Layout | None:
    try:
        return msgspec.json.decode((root / "layout.json").read_bytes(), type=Layout)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise OSError(f"{root / 'layout.json'} cannot be read: {error}") from None


def _write(root: Path, layout: Layout) -> None:
    """Durable when it returns; never half."""
    files, aside = LocalFiles(), root / "layout.json.new"
    file = files.open(str(aside), create=True)
    try:
        file.truncate(0)
        file.write(msgspec.json.encode(layout), 0)
        file.sync()
    finally:
        file.close()
    aside.rename(root / "layout.json")
    files.sync_folder(str(root))


def _deal_out(root: Path, layout: Layout, new: Layout) -> Layout:
    shutil.rmtree(root / str(new.generation), ignore_errors=True)
    old_folders = [folder for folder in _folders(root, layout) if os.path.isdir(folder)]
    for folder in old_folders:
        asyncio.run(_bring_up(folder))
    deal_out(
        LocalFiles(),
        old_folders,
        _folders(root, new),
        lambda ref: owner_of(ref, new.processes, new.apart),
        random=secrets.token_bytes,
        now_us=time.time_ns() // 1_000,
    )
    quarantine.deal_out(
        LocalFiles(),
        old_folders,
        dict(enumerate(_folders(root, new))),
        lambda ref: owner_of(ref, new.processes, new.apart),
    )
    LocalFiles().sync_folder(str(root))
    _write(root, new)
    return new


async def _bring_up(folder: str) -> None:
    """Bring every database of a log up to the log's head, and close it."""
    host = Host(folder, {})
    try:
        await host.node.bring_up()
    finally:
        await host.close()


def _folders(root: Path, layout: Layout) -> list[str]:
    return [str(root / str(layout.generation) / str(worker)) for worker in range(layout.processes)]


def _sweep(root: Path, layout: Layout) -> None:
    """Remove generations that do not count."""
    for name in os.listdir(root):
        if name.isdigit() and int(name) != layout.generation:
            shutil.rmtree(root / name, ignore_errors=True)
