"""Which classes went apart, in one file that all objects processes of a server read.

Owns  `apart.json` beside the layout; who may write it, and when others see that.
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
from edgestead.server.objects.shared import locked, write_whole

log = logging.getLogger(__name__)
FILE = "apart.json"


class _File(msgspec.Struct):
    classes: list[Row]


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
        self._seen = (0, 0)
        self.classes: frozenset[str] = frozenset()
        self.rows: Rows = {}
        self.look()

    def look(self) -> bool:
        """Read the file if it is another one now. Raises OSError."""
        try:
            found = os.stat(self._root / FILE)
        except FileNotFoundError:
            return False
        if (found.st_ino, found.st_mtime_ns) == self._seen:
            return False
        self._seen = (found.st_ino, found.st_mtime_ns)
        before = self.classes
        self._take(read(self._root))
        return self.classes != before

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
        with locked(self._root / "lock"):
            rows = read(self._root)
            change(rows)
            write(self._root, rows)
        self._take(rows)

    def _take(self, rows: Rows) -> None:
        self.rows, self.classes = rows, containment.apart(rows.values()) - frozenset(self._fixed)


def read(root: Path) -> Rows:
    """A file that is missing or cannot be read has nothing: then objects are looked for where they are."""
    try:
        found = msgspec.json.decode((root / FILE).read_bytes(), type=_File)
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OSError(f"{root / FILE} cannot be read: {error}") from None
    return {row.class_name: row for row in found.classes}


def write(root: Path, rows: Rows) -> None:
    """Durable when it returns; never half. Raises OSError."""
    write_whole(root / FILE, msgspec.json.encode(_File(list(rows.values()))))


def is_used(root: Path) -> bool:
    """Whether the process of these classes has to run. For who starts it."""
    with suppress(OSError):
        return bool(containment.apart(read(root).values()))
    return True
