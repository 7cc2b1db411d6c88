"""A real folder after a power cut: what nobody made durable is gone.

Owns  noting what is durable (contents by the fsync of a file, names by the fsync of a folder), and the folder
      that a power cut would have left of it.
Not   SQLite's own syncs, which do not pass through Python: of a database only the name is known.

It keeps the least that POSIX promises. A real file system mostly keeps more, and nobody may count on it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

_Inode = tuple[int, int]


class ForgetfulFolder:
    """Everything that is in `top` at the beginning is durable. Use it while `watching`."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._contents: dict[_Inode, bytes] = {}
        self._names: dict[_Inode, dict[str, _Inode]] = {}
        self._held: dict[_Inode, int] = {}  # while a descriptor is open, no other file gets the number
        for folder, _, files in os.walk(top):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                self._keep(path)

    @contextmanager
    def watching(self) -> Iterator[None]:
        real = os.fsync

        def fsync(descriptor: int) -> None:
            real(descriptor)
            self._keep(f"/proc/self/fd/{descriptor}")

        try:
            with patch.object(os, "fsync", fsync), patch.object(os, "fdatasync", fsync):
                yield
        finally:
            for descriptor in self._held.values():
                os.close(descriptor)

    def leave(self, target: Path) -> None:
        """Make `target`: the folder as a power cut now would leave it."""
        self._leave(self._number(self._top), target)

    def _leave(self, folder: _Inode, target: Path) -> None:
        target.mkdir()
        for name, number in self._names[folder].items():
            if number in self._names:
                self._leave(number, target / name)
            else:
                (target / name).write_bytes(self._contents.get(number, b""))

    def _keep(self, path: str) -> None:
        number = self._number(path)
        if stat.S_ISDIR(os.stat(path).st_mode):
            with os.scandir(path) as entries:
                self._names[number] = {entry.name: self._number(entry.path) for entry in entries}
            for name, inside in self._names[number].items():
                if os.path.isdir(os.path.join(path, name)):
                    self._names.setdefault(inside, {})
        elif stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                self._contents[number] = file.read()

    def _number(self, path: str | Path) -> _Inode:
        descriptor = os.open(path, os.O_PATH)
        found = os.fstat(descriptor)
        number = found.st_dev, found.st_ino
        if self._held.setdefault(number, descriptor) != descriptor:
            os.close(descriptor)
        return number
