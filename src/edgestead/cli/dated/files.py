"""Files and folders, read for uses of what a date ended or replaced.

Owns  which files are read, in what portions, and what is found in each.
Not   what is printed.

Text is read as it streams, and a use is told once it is decided: memory does not grow with a file. One that
begins with the mark of gzip is read unpacked. A folder gives its files in order of their names, without those
that no person wrote.
"""

import gzip
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from edgestead.cli.dated import har
from edgestead.cli.dated import lines as dated_lines
from edgestead.cli.dated.lines import NEAR_LINES
from edgestead.cli.failure import Failed

FILES_MAX = 200_000
LINE_BYTES_MAX = 65_536  # a longer line is read in portions
OVERLAP_BYTES = 512  # of two portions, so that nothing is lost between them
FOUND_PER_FILE_MAX = 1_000
UNDECIDED_MAX = 10_000  # uses of common names within NEAR_LINES
UNPACKED_BYTES_MAX = 4 << 30  # of one gzip file
HAR_BYTES_MAX = 256 << 20  # it is read as a whole
STDIN = "-"
_BINARY_BYTES = 8_192
_GZIP = b"\x1f\x8b"
SKIPPED = frozenset(
    (".git", ".hg", ".svn", ".venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache")
)


class Found(NamedTuple):
    """One use. `line` is the number of an entry in a HAR file; `column` is then 0."""

    path: str
    line: int
    column: int
    subject: str
    text: str
    is_certain: bool


class Unreadable(Exception):
    """Why a file could not be read to its end."""


def files_of(paths: Iterable[str], unread: Callable[[OSError], None]) -> list[str]:
    """Every file that the paths name; `unread` gets what became of a folder that cannot be listed.

    Raises Failed: a path that is not there, more than FILES_MAX files.
    """
    found: list[str] = []
    for path in paths:
        if path != STDIN and not os.path.exists(path):
            raise Failed(
                f"{path}: there is no such file or folder.",
                "`edgecli deprecations check --help` says what it reads.",
            )
        for name in _below(path, unread) if path != STDIN else [STDIN]:
            found.append(name)
            if len(found) > FILES_MAX:
                raise Failed(f"There are more than {FILES_MAX} files. Name fewer folders.")
    return found


def _below(path: str, unread: Callable[[OSError], None]) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, names, files in os.walk(path, onerror=unread):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        for name in sorted(files):
            file = os.path.join(folder, name)
            if os.path.isfile(file) and not os.path.islink(file):
                yield file


def size_of(path: str) -> int:
    try:
        return os.path.getsize(path) if path != STDIN else 0
    except OSError:
        return 0


def found_in(path: str, rows: Container[str]) -> Iterator[Found]:
    """The uses of these rows in one file, in their order.

    Raises Unreadable, also behind FOUND_PER_FILE_MAX; OSError.
    """
    for number, found in enumerate(one for one in _every_use(path) if one.subject in rows):
        if number == FOUND_PER_FILE_MAX:
            raise Unreadable(f"it has more than {FOUND_PER_FILE_MAX} uses")
        yield found


def _every_use(path: str) -> Iterator[Found]:
    if path == STDIN:
        yield from _in_text(path, sys.stdin.buffer)
        return
    with Path(path).open("rb") as file:
        first = file.read(_BINARY_BYTES)
        file.seek(0)
        if first.startswith(_GZIP):
            yield from _in_gzip(path, file)
        elif path.endswith(".har"):
            yield from _in_har(path, file)
        elif b"\0" not in first:
            yield from _in_text(path, file)


def _in_gzip(path: str, file: BinaryIO) -> Iterator[Found]:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _in_text(path, cast(BinaryIO, unpacked), UNPACKED_BYTES_MAX)
    except (EOFError, OSError, zlib.error) as error:
        raise Unreadable(f"it is no whole gzip file: {error}") from None


def _in_har(path: str, file: BinaryIO) -> Iterator[Found]:
    octets = file.read(HAR_BYTES_MAX + 1)
    if len(octets) > HAR_BYTES_MAX:
        raise Unreadable(f"it holds more than {HAR_BYTES_MAX} bytes")
    try:
        for use in har.uses(octets):
            yield Found(path, use.entry, 0, use.subject, use.text, True)
    except ValueError as error:
        raise Unreadable(f"it is no HAR file: {error}") from None


def _in_text(path: str, file: BinaryIO, bytes_max: int | None = None) -> Iterator[Found]:
    """Common names count only near what makes them likely, which may also come after them."""
    undecided: deque[tuple[Found, str]] = deque()  # and what stands behind one, so that the order is kept
    last = dict.fromkeys(dated_lines.NEAR, -NEAR_LINES)  # the line where each was last
    before: set[Found] = set()  # of the portion before, which this one overlaps
    for number, offset, text in _lines(file, bytes_max):
        while undecided and undecided[0][0].line < number - NEAR_LINES:
            found, word = undecided.popleft()
            if _is_near(found, word, last):
                yield found
        last |= dict.fromkeys(dated_lines.nearby(text), number)
        here = [
            (Found(path, number, offset + use.column, use.subject, use.text, use.is_certain), use.near)
            for use in dated_lines.uses(text)
        ]
        undecided += (one for one in here if one[0] not in before)
        before = {found for found, _ in here}
        while undecided and _is_near(*undecided[0], last):
            yield undecided.popleft()[0]
        if len(undecided) > UNDECIDED_MAX:
            raise Unreadable(f"it has more than {UNDECIDED_MAX} common names within {NEAR_LINES} lines")
    yield from (found for found, word in undecided if _is_near(found, word, last))


def _is_near(found: Found, word: str, last: Mapping[str, int]) -> bool:
    return not word or last[word] >= found.line - NEAR_LINES


def _lines(file: BinaryIO, bytes_max: int | None) -> Iterator[tuple[int, int, str]]:
    """Number, where the portion begins in its line, and text. Raises Unreadable: more than `bytes_max`."""
    number, offset, kept, bytes_read = 1, 0, b"", 0
    while octets := file.readline(LINE_BYTES_MAX):
        bytes_read += len(octets)
        if bytes_max is not None and bytes_read > bytes_max:
            raise Unreadable(f"it holds more than {bytes_max} bytes")
        portion = kept + octets
        yield number, offset, portion.decode("utf-8", "replace")
        if octets.endswith(b"\n"):
            number, offset, kept = number + 1, 0, b""
        else:
            kept = portion[-OVERLAP_BYTES:]
            offset += len(portion) - len(kept)
