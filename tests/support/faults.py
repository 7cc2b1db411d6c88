"""A disk for SQLite that fails when told to, and forgets what was not synced when its power is cut.

Owns  counting and refusing writes and syncs; remembering which bytes a sync has made durable.
Not   what must hold afterwards.

After a power cut a synced byte is there; of the writes since the last sync of their file any may be there, in
any order, or not. Shared memory (the WAL's index) is lost. Deleting a file counts as durable at once.
"""

import os
from collections.abc import Iterable
from random import Random

import apsw

SIZE = "size"  # marks a pending truncation


class FaultyDisk(apsw.VFS):
    """Register under a name of its own for each test; `close` unregisters it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.writes = 0
        self.syncs = 0
        self.failing_writes: Iterable[int] = ()  # numbers, from 1, of the writes that fail
        self.failing_syncs: Iterable[int] = ()
        self.error: type[apsw.Error] = apsw.FullError
        self._until_cut = -1  # for ever
        self._files: dict[str, _Durable] = {}

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        durable = self._files.setdefault(path, _Durable(path)) if path else None
        return _File(self, name, flags, durable)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.do()
        self._files.pop(filename, None)
        super().xDelete(filename, syncdir)

    def heal(self) -> None:
        self.failing_writes = self.failing_syncs = ()

    def cut_power(self, after: int = 0) -> None:
        """After so many more writes and syncs nothing is done; close the connections, then call `restore`.

        Each of them fails then: a machine without power says of nothing that it was done.
        """
        self._until_cut = after

    @property
    def powerless(self) -> bool:
        return self._until_cut == 0

    def do(self) -> None:
        """One more operation. Raises apsw.IOError without power."""
        if self._until_cut == 0:
            raise apsw.IOError("the power is cut")
        self._until_cut -= 1

    def restore(self, random: Random) -> None:
        """Leave in each file what the cut has left there. No connection may be open."""
        for path, durable in self._files.items():
            durable.restore(path, random)
        self._files.clear()
        self._until_cut = -1

    def close(self) -> None:
        self.unregister()


class _Durable:
    """What of one file is safe, and what is still on its way."""

    def __init__(self, path: str) -> None:
        self.content = bytearray()
        self.pending: list[tuple[int, bytes] | tuple[str, int]] = []
        if os.path.exists(path):
            with open(path, "rb") as file:
                self.content += file.read()

    def sync(self) -> None:
        for step in self.pending:
            self._do(step)
        self.pending.clear()

    def restore(self, path: str, random: Random) -> None:
        random.shuffle(self.pending)
        for step in self.pending[: random.randint(0, len(self.pending))]:
            self._do(step)
        with open(path, "wb") as file:
            file.write(self.content)

    def _do(self, step: tuple[int, bytes] | tuple[str, int]) -> None:
        at, data = step
        if isinstance(data, int):
            del self.content[data:]
        elif isinstance(at, int):
            if len(self.content) < at:
                self.content += bytes(at - len(self.content))
            self.content[at : at + len(data)] = data


class _File(apsw.VFSFile):
    def __init__(
        self,
        disk: FaultyDisk,
        name: str | apsw.URIFilename | None,
        flags: list[int],
        durable: _Durable | None,
    ) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._durable = durable

    def xWrite(self, data: bytes, offset: int) -> None:
        disk = self._disk
        disk.writes += 1
        disk.do()
        if disk.writes in disk.failing_writes:
            raise disk.error("the disk fails")
        super().xWrite(data, offset)
        if self._durable is not None:
            self._durable.pending.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        self._disk.do()
        super().xTruncate(newsize)
        if self._durable is not None:
            self._durable.pending.append((SIZE, newsize))

    def xSync(self, flags: int) -> None:
        disk = self._disk
        disk.syncs += 1
        disk.do()
        if disk.syncs in disk.failing_syncs:
            raise disk.error("the disk fails")
        super().xSync(flags)
        if self._durable is not None:
            self._durable.sync()
