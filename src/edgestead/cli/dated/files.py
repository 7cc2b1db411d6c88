"""Files and folders, read for uses of what a date ended or replaced.

Owns  which files are read, in what portions, and what is found in each.
Not   what is printed.

Text is read as it streams: memory does not grow with a file. One that begins with the mark of gzip is read
unpacked. A folder gives its files in order of their names, without those that no person wrote.
"""

import gzip
import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
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


def files_of(paths: Iterable[str]) -> list[str]:
    """Every file that the paths name. Raises Failed: a path that is not there, more than FILES_MAX files."""
    found: list[str] = []
    for path in paths:
        if path != STDIN and not os.path.exists(path):
            raise Failed(
                f"{path}: there is no such file or folder.",
                "`edgecli deprecations check --help` says what it reads.",
            )
        for name in _below(path) if path != STDIN else [STDIN]:
            found.append(name)
            if len(found) > FILES_MAX:
                raise Failed(f"There are more than {FILES_MAX} files. Name fewer folders.")
    return found


def _below(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, names, files in os.walk(path):
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


def found_in(path: str) -> list[Found]:
    """The uses in one file, in their order. Raises Unreadable, OSError."""
    if path == STDIN:
        return _in_text(path, sys.stdin.buffer)
    with Path(path).open("rb") as file:
        first = file.read(_BINARY_BYTES)
        file.seek(0)
        if first.startswith(_GZIP):
            return _in_gzip(path, file)
        if path.endswith(".har"):
            return _in_har(path, file)
        return [] if b"\0" in first else _in_text(path, file)


def _in_gzip(path: str, file: BinaryIO) -> list[Found]:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            return _in_text(path, cast(BinaryIO, unpacked), UNPACKED_BYTES_MAX)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise Unreadable(f"it is no whole gzip file: {error}") from None


def _in_har(path: str, file: BinaryIO) -> list[Found]:
    octets = file.read(HAR_BYTES_MAX + 1)
    if len(octets) > HAR_BYTES_MAX:
        raise Unreadable(f"it holds more than {HAR_BYTES_MAX} bytes")
    try:
        uses = list(islice(har.uses(octets), FOUND_PER_FILE_MAX))
    except ValueError as error:
        raise Unreadable(f"it is no HAR file: {error}") from None
    return [Found(path, use.entry, 0, use.subject, use.text, True) for use in uses]


def _in_text(path: str, file: BinaryIO, bytes_max: int | None = None) -> list[Found]:
    """Common names count only near what makes them likely, which may also come after them."""
    candidates: list[tuple[Found, str]] = []
    near: dict[str, list[int]] = {word: [] for word in dated_lines.NEAR}
    for number, offset, text in _lines(file, bytes_max):
        for word in dated_lines.nearby(text):
            if not near[word] or near[word][-1] != number:
                near[word].append(number)
        for use in dated_lines.uses(text):
            found = Found(path, number, offset + use.column, use.subject, use.text, use.is_certain)
            candidates.append((found, use.near))
        if len(candidates) >= FOUND_PER_FILE_MAX:
            break
    kept = {found: None for found, word in candidates if not word or _is_near(near[word], found.line)}
    return list(kept)


def _is_near(lines: list[int], line: int) -> bool:
    at = bisect_left(lines, line - NEAR_LINES)
    return at < len(lines) and lines[at] <= line + NEAR_LINES


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
