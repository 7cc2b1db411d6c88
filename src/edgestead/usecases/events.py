"""Searching the security events of the edge.

Owns  what may be asked, and reading files in order.
Not   the form of an event and the names of files (`model.events`).

As ids sort by time, files are searched by their names and lines by their first characters, and only what may
be an answer is decoded. A line that is torn or damaged is skipped.
"""

import mmap
from collections.abc import Callable, Iterator
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgestead.model.events import ID_DIGITS, LINE_START, SUFFIX, decode, event_id, is_event_id

SCANNED_LINES_MAX = 200_000  # of one search, about a second; it then continues from a cursor
_HEAD = len(LINE_START)
_OLDEST, _NEWEST = "0" * ID_DIGITS, "g"


class Wanted(NamedTuple):
    """What is searched for. `members` are what an event's members must equal, by name.

    `path_prefix` is what its path begins with. `since` and `until` are microseconds, the first one included;
    `after` is the id after which the search continues, in its direction.
    """

    members: dict[str, Any]
    path_prefix: str = ""
    since_us: int = 0
    until_us: int | None = None
    descending: bool = True
    after: str | None = None
    limit: int = 100


class Found(NamedTuple):
    """`items` are events as JSON; `after` is where the search continues, None at its end."""

    items: list[msgspec.Raw]
    after: str | None


def search(folder: Path | None, zone_id: str, wanted: Wanted) -> Found:
    """A zone's events, in order of time. Reads files: not for an event loop.

    A folder that is None or missing holds no events.
    """
    low, high = _bounds(wanted)
    lines = _lines(folder, low, high, wanted.descending)
    mark = zone_id.encode()
    items: list[msgspec.Raw] = []
    scanned = 0
    last = ""
    for id_, line in lines:
        if len(items) == wanted.limit or scanned == SCANNED_LINES_MAX:
            return Found(items, last)
        scanned += 1
        last = id_
        if mark in line and _fits(line, zone_id, wanted):
            items.append(msgspec.Raw(line))
    return Found(items, None)


def _bounds(wanted: Wanted) -> tuple[str, str]:
    """Ids from `low` on, below `high`."""
    low = event_id(wanted.since_us, 0, 0) if wanted.since_us > 0 else _OLDEST
    high = _NEWEST if wanted.until_us is None else event_id(max(0, wanted.until_us), 0, 0)
    if wanted.after is None:
        return low, high
    if wanted.descending:
        return low, min(high, wanted.after)
    return max(low, _following(wanted.after)), high


def _following(id_: str) -> str:
    return f"{int(id_, 16) + 1:0{ID_DIGITS}x}"


def _fits(line: bytes, zone_id: str, wanted: Wanted) -> bool:
    try:
        event = decode(line)
    except msgspec.MsgspecError:
        return False
    return (
        event.zone_id == zone_id
        and event.path.startswith(wanted.path_prefix)
        and all(getattr(event, name) == value for name, value in wanted.members.items())
    )


Line = tuple[str, bytes]


def _lines(folder: Path | None, low: str, high: str, descending: bool) -> Iterator[Line]:
    """The lines of all files between two ids, in order."""
    workers = _files(folder, low, high)
    read = _backward if descending else _forward
    streams = [
        _worker_lines(files[::-1] if descending else files, read, low, high) for files in workers.values()
    ]
    return merge(*streams, key=lambda line: line[0], reverse=descending)


def _files(folder: Path | None, low: str, high: str) -> dict[str, list[Path]]:
    """Files that may hold lines between two ids, by worker and in order."""
    by_worker: dict[str, list[Path]] = {}
    names = sorted(path.name for path in folder.iterdir()) if folder and folder.is_dir() else ()
    for name in names:
        if folder and name.endswith(SUFFIX) and name.count("-") == 2:
            by_worker.setdefault(name.split("-")[1], []).append(folder / name)
    for worker, files in by_worker.items():
        firsts = [path.stem.rpartition("-")[2] for path in files]
        ends = [*firsts[1:], _NEWEST]
        by_worker[worker] = [
            path for path, first, end in zip(files, firsts, ends, strict=True) if first < high and end > low
        ]
    return by_worker


def _worker_lines(
    files: list[Path], read: Callable[[mmap.mmap], Iterator[bytes]], low: str, high: str
) -> Iterator[Line]:
    for path in files:
        for line in _of_file(path, read):
            id_ = line[_HEAD : _HEAD + ID_DIGITS].decode("ascii", "replace")
            if low <= id_ < high and is_event_id(id_):
                yield id_, line


def _of_file(path: Path, read: Callable[[mmap.mmap], Iterator[bytes]]) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as octets:
            yield from read(octets)
    except (FileNotFoundError, ValueError):  # rotated away meanwhile; empty
        return


def _forward(octets: mmap.mmap) -> Iterator[bytes]:
    start = 0
    while (end := octets.find(b"\n", start)) >= 0:
        yield octets[start:end]
        start = end + 1


def _backward(octets: mmap.mmap) -> Iterator[bytes]:
    end = octets.rfind(b"\n")  # what follows it is still being written
    while end > 0:
        start = octets.rfind(b"\n", 0, end) + 1
        yield octets[start:end]
        end = start - 1
