"""A copy of the edge's security events, made while edge processes write them.

Owns  which files are copied, and where a copy ends: behind the last whole line.
Not   the form of an event (`model.events`).

Files only grow, until the oldest of a process is removed: one that goes before it was copied is left out.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from edgestead.model.events import SUFFIX
from edgestead.sqlite.connection import sync_folder

_CHUNK_BYTES = 1 << 20


def bytes_of_events(folder: Path) -> int:
    """About how much a copy has to move."""
    return sum(size for _, size in _files(folder))


def copy_events(folder: Path, target: Path, advance: Callable[[int], None]) -> None:
    """Copy the whole lines of each file into `target`, made if there are any; durable when it returns.

    Raises OSError.
    """
    for path, size in _files(folder):
        target.mkdir(mode=0o700, exist_ok=True)
        try:
            _copy_lines(path, size, target / path.name)
        except FileNotFoundError:
            continue
        advance(size)
    if target.exists():
        sync_folder(target)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Each file with its length now."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            yield path, path.stat().st_size
        except FileNotFoundError:
            continue


def _copy_lines(source: Path, size: int, target: Path) -> None:
    """Raises FileNotFoundError when the source went."""
    with source.open("rb") as theirs, open(target, "xb", opener=_private) as ours:
        whole = 0
        while size > 0 and (chunk := theirs.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            if (last := chunk.rfind(b"\n")) >= 0:
                whole = ours.tell() + last + 1
            ours.write(chunk)
        ours.truncate(whole)
        ours.flush()
        os.fsync(ours.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
