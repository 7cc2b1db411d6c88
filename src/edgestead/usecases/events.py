"""Searching the security events of the edge.

Owns  what may be asked, and reading files in order.
Not   the form of an event and the names of files (`model.events`).

As ids sort by time, files are searched by their names and lines by their first characters. Of a file, `Pick`
says which parts may hold an answer (`usecases.event_index`); of these, only lines with the wanted octets
are decoded. A line that is torn or damaged is skipped.
"""

import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from edgestead.model.events import ID_DIGITS, LINE_START, SUFFIX, decode, event_id, is_event_id

SCANNED_LINES_MAX = 5_000  # of one search: about twenty milliseconds; it then continues from a cursor
SCANNED_OCTETS_MAX = 32 << 20  # of one search that finds nothing in them: the same
PIECE_OCTETS = 1 << 17  # of a file, at once: a page of events needs a few of the newest from each
ID_OCTETS = ID_DIGITS
_HEAD = len(LINE_START)
_OLDEST, _NEWEST = "0" * ID_DIGITS, "g"


class Line(NamedTuple):
    """`passed` is how many octets were looked at since the line before."""

    id: str
    octets: bytes
    passed: int


class Span(NamedTuple):
    """Octets of a file, to its end where `end` is None. Both are where a line begins."""

    start: int
    end: int | None


WHOLE = [Span(0, None)]


class Pick(Protocol):
    """Which parts of a file may hold a wanted line with low <= id < high; None where nobody knows."""

    def __call__(
        self, path: Path, members: Mapping[str, object], path_prefix: str, low: str, high: str
    ) -> list[Span] | None: ...


def everything(
    path: Path, members: Mapping[str, object], path_prefix: str, low: str, high: str
) -> list[Span] | None:
    return None


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


def search(folder: Path | None, zone_id: str, wanted: Wanted, pick: Pick = everything) -> Found:
    """A zone's events, in order of time. Reads files: not for an event loop.

    A folder that is None or missing holds no events.
    """
    low, high = _bounds(wanted)
    members = {"zone_id": zone_id, **wanted.members}

    def spans(path: Path) -> list[Span]:
        found = pick(path, members, wanted.path_prefix, low, high)
        return WHOLE if found is None else found

    marks = [_octets(name, value) for name, value in members.items()]
    if wanted.path_prefix:
        marks.append(_octets("path", wanted.path_prefix)[:-1])
    rarest = max(marks[1:] or marks, key=len)
    items: list[msgspec.Raw] = []
    lines = octets = 0
    last = ""
    for line in _lines(folder, low, high, _Look(rarest, spans, wanted.descending)):
        if len(items) == wanted.limit or lines == SCANNED_LINES_MAX or octets > SCANNED_OCTETS_MAX:
            return Found(items, last)
        lines += 1
        octets += line.passed
        last = line.id
        if all(mark in line.octets for mark in marks) and _fits(line.octets, zone_id, wanted):
            items.append(msgspec.Raw(line.octets))
    return Found(items, None)


class _Look(NamedTuple):
    """How files are read: for lines with a mark, in the spans of each."""

    mark: bytes
    spans: Callable[[Path], list[Span]]
    descending: bool


def _octets(name: str, value: object) -> bytes:
    """How a member stands in a line."""
    return msgspec.json.encode({name: value})[1:-1]


def lines_from(path: Path, start: int) -> Iterator[tuple[bytes, int]]:
    """Each whole line of a file from an octet on, and where it ends. Reads the file."""
    for piece in _pieces(path, [Span(start, None)], False):
        for line in piece.split(b"\n")[:-1]:
            start += len(line) + 1
            yield line, start


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


def _lines(folder: Path | None, low: str, high: str, look: _Look) -> Iterator[Line]:
    """Lines between two ids, in order: those with the mark, and some that tell how far it went."""
    workers = _files(folder, low, high)
    streams = [
        _worker_lines(files[::-1] if look.descending else files, look, low, high)
        for files in workers.values()
    ]
    return merge(*streams, key=lambda line: line.id, reverse=look.descending)


def files_of(folder: Path | None) -> dict[str, list[Path]]:
    """All files of events, by worker and in order."""
    by_worker: dict[str, list[Path]] = {}
    names = sorted(os.listdir(folder)) if folder and folder.is_dir() else ()
    for name in names:
        if folder and name.endswith(SUFFIX) and name.count("-") == 2:
            by_worker.setdefault(name.split("-")[1], []).append(folder / name)
    return by_worker


def _files(folder: Path | None, low: str, high: str) -> dict[str, list[Path]]:
    """Files that may hold lines between two ids, by worker and in order."""
    by_worker = files_of(folder)
    for worker, files in by_worker.items():
        firsts = [path.stem.rpartition("-")[2] for path in files]
        ends = [*firsts[1:], _NEWEST]
        by_worker[worker] = [
            path for path, first, end in zip(files, firsts, ends, strict=True) if first < high and end > low
        ]
    return by_worker


def _worker_lines(files: list[Path], look: _Look, low: str, high: str) -> Iterator[Line]:
    marked = _marked_backward if look.descending else _marked_forward
    for path in files:
        for piece in _pieces(path, look.spans(path), look.descending):
            for line, passed in marked(piece, look.mark):
                id_ = line[_HEAD : _HEAD + ID_DIGITS].decode("ascii", "replace")
                if low <= id_ < high and is_event_id(id_):
                    yield Line(id_, line, passed)


def _pieces(path: Path, spans: Sequence[Span], descending: bool) -> Iterator[bytes]:
    """Whole lines of a file, many at once. What follows the last one is still being written."""
    if not spans:
        return
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as octets:
            for start, end in spans[::-1] if descending else spans:
                stop = octets.rfind(b"\n", start, len(octets) if end is None else end) + 1
                yield from (_backward if descending else _forward)(octets, start, stop)
    except (FileNotFoundError, ValueError):  # rotated away meanwhile; empty
        return


def _forward(octets: mmap.mmap, start: int, stop: int) -> Iterator[bytes]:
    while start < stop:
        end = octets.find(b"\n", min(start + PIECE_OCTETS, stop - 1), stop) + 1
        yield octets[start:end]
        start = end


def _backward(octets: mmap.mmap, start: int, stop: int) -> Iterator[bytes]:
    while start < stop:
        begin = max(octets.rfind(b"\n", start, max(stop - PIECE_OCTETS, start)) + 1, start)
        yield octets[begin:stop]
        stop = begin


def _marked_forward(piece: bytes, mark: bytes) -> Iterator[tuple[bytes, int]]:
    """(line, octets since the one before) of lines with the mark, and of the last one."""
    at, last = 0, len(piece) - 1
    while (found := piece.find(mark, at)) >= 0:
        end = piece.find(b"\n", found)
        yield piece[piece.rfind(b"\n", at, found) + 1 or at : end], end + 1 - at
        at = end + 1
    if at <= last:
        yield piece[piece.rfind(b"\n", at, last) + 1 or at : last], last + 1 - at


def _marked_backward(piece: bytes, mark: bytes) -> Iterator[tuple[bytes, int]]:
    """The same from the end, and of the first one."""
    until = len(piece)
    while (found := piece.rfind(mark, 0, until)) >= 0:
        begin = piece.rfind(b"\n", 0, found) + 1
        yield piece[begin : piece.find(b"\n", found)], until - begin
        until = begin
    if until:
        yield piece[: piece.find(b"\n")], until
