"""Which classes went apart, in one file that all objects processes of a server read.

Owns  `apart.json` and `apart-1.json` beside the layout, of which one counts (`store.inturn`); who may write
      them, and when others see that.
Not   the table of states (`objects.runtime.containment`); what follows for calls (`objects.runtime.shards`).

A process writes before it serves, after a process ended before it; the process of these classes writes when
one of them goes back. All of them look twice a second whether the file changed. Between two looks one may
still begin a new object of such a class itself: then the object is there, and the others ask there anyway.
"""

import logging
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from edgestead.objects.runtime import containment
from edgestead.objects.runtime.containment import Row, Rows
from edgestead.server.objects.shared import locked
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store import inturn

log = logging.getLogger(__name__)
FILES = ("apart.json", "apart-1.json")
LOCK = "lock"
Seen = list[tuple[int, int]]


class _File(msgspec.Struct):
    classes: list[Row]
    sequence: int = 0


class Apart:
    """`containment.Classes` in the file of one folder. Classes `fixed` are apart anyway: an operator says so.

    Without `may_begin` no class goes apart that is not yet.
    """

    def __init__(
        self,
        root: Path,
        fixed: Collection[str] = (),
        *,
        may_begin: bool = True,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self._root, self._fixed, self._may_begin, self._now_us = root, fixed, may_begin, now_us
        self._seen: Seen = []
        self.classes: frozenset[str] = frozenset()
        self.rows: Rows = {}
        self.look()

    def look(self) -> bool:
        """Read the files if one of them is another one now. Raises OSError."""
        found = _seen(self._root)
        if found == self._seen:
            return False
        before = self.classes
        self._take(read(self._root))
        self._seen = found  # last: who could not read it looks again
        return self.classes != before

    def take_room(self) -> None:
        """So that a class can also go apart when the disk is full. Raises OSError.

        Who finds it taken waits for no lock, which a process that gives way to all others may hold.
        """
        files, paths = LocalFiles(), _paths(self._root)
        if not inturn.has_room(files, paths):
            with locked(self._root / LOCK):
                inturn.take_room(files, paths)

    def note_end(self, class_name: str, *, is_own: bool) -> bool:
        """A process ended while this class ran. Durable when it returns. Raises OSError.

        True when the class went apart by it.
        """
        if class_name in self._fixed:
            return False

        def note(rows: Rows) -> None:
            row = rows.get(class_name)
            if self._may_begin or (row is not None and row.state == "apart"):
                rows[class_name] = containment.after_end(row, class_name, self._now_us(), is_own=is_own)

        before = self.classes
        self._change(note)
        went = class_name in self.classes and class_name not in before
        if went:
            log.warning("class %s gets a process of its own: it ended one that others share", class_name)
        return went

    def release(self, class_name: str) -> bool:
        if class_name not in self.classes:
            return False

        def release(rows: Rows) -> None:
            if class_name in rows:
                rows[class_name] = containment.released(rows[class_name])

        self._change(release)
        return True

    def returning(self) -> list[str]:
        """Classes whose objects are to go back."""
        now_us = self._now_us()
        return [row.class_name for row in self.rows.values() if containment.may_return(row, now_us)]

    def tend(self, has_objects: Callable[[str], bool]) -> None:
        """In the process of these classes: forget whose time is over. `has_objects`: whether one is here."""
        now_us = self._now_us()
        over = [
            row.class_name
            for row in self.rows.values()
            if containment.is_over(row, now_us, has_objects=has_objects(row.class_name))
        ]
        if not over:
            return
        self.classes -= set(over)  # at once: no object of it may begin here any more
        self._change(lambda rows: [rows.pop(name, None) for name in over])
        for name in over:
            log.info("class %s shares its processes with others again", name)

    def _change(self, change: Callable[[Rows], object]) -> None:
        """Another process may have changed it meanwhile, so it is read again under the lock."""
        with locked(self._root / LOCK):
            file = _newest(self._root)
            rows = _rows(file)
            change(rows)
            file = _File(list(rows.values()), file.sequence + 1)
            inturn.write(LocalFiles(), _paths(self._root), file.sequence, msgspec.json.encode(file))
        self._take(rows)

    def _take(self, rows: Rows) -> None:
        self.rows, self.classes = rows, containment.apart(rows.values()) - frozenset(self._fixed)


def read(root: Path) -> Rows:
    """What is missing has nothing: then objects are looked for where they are. Raises OSError."""
    return _rows(_newest(root))


def _newest(root: Path) -> _File:
    decode, files, paths = msgspec.json.Decoder(_File).decode, LocalFiles(), _paths(root)
    found = [inturn.read(files, path, decode) for path in paths]
    whole = [one for one in found if one is not None]
    if not whole and any(inturn.has_text(files, path) for path in paths):
        raise OSError(f"{paths[0]} cannot be read")
    return max(whole, key=lambda one: one.sequence, default=_File([]))


def _rows(file: _File) -> Rows:
    return {row.class_name: row for row in file.classes}


def _paths(root: Path) -> inturn.Paths:
    return str(root / FILES[0]), str(root / FILES[1])


def _seen(root: Path) -> Seen:
    """What tells whether a file was written since."""
    found = []
    for path in _paths(root):
        with suppress(FileNotFoundError):
            stat = os.stat(path)
            found.append((stat.st_ino, stat.st_mtime_ns))
    return found


def is_used(root: Path) -> bool:
    """Whether the process of these classes has to run. For who starts it."""
    with suppress(OSError):
        return bool(containment.apart(read(root).values()))
    return True
