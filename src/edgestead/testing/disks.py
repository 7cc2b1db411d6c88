"""A disk in memory that forgets, tears and fails like a real one.

Owns  `SimulatedDisk`: files, their durable contents, and what a power cut leaves of the rest.
Not   time and order (`simulation`).

Every write is remembered per 512-byte sector until its file is synced. A power cut keeps any subset of the
unsynced sectors, any earlier length and any subset of unsynced names. `kill -9` is simpler: everything that
was written stays, since the kernel lives on.
"""

import errno
import os
import random as random_module
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

SECTOR_BYTES = 512
_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL


class PowerCut(BaseException):
    """The power is gone: nothing more happens on this disk until `restart`."""


class Inode:
    """One file: what a reader sees, what is durable, and the sectors in between."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.lengths: list[int] = []
        self.dirty: set[int] = set()

    def write(self, data: bytes | memoryview, offset: int) -> None:
        end = offset + len(data)
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
            self.lengths.append(end)
        self.data[offset:end] = data
        self.dirty.update(range(offset // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1) if data else ())

    def truncate(self, size: int) -> None:
        if size < len(self.data):
            del self.data[size:]
        else:
            self.data.extend(bytes(size - len(self.data)))
        self.lengths.append(size)

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.lengths.clear()
        self.dirty.clear()

    def survive(self, random: random_module.Random) -> None:
        """What is left after a power cut."""
        length = random.choice([len(self.durable), *self.lengths])
        left = bytearray(self.durable[:length].ljust(length, b"\0"))
        keep = random.choice((0.0, 0.3, 0.7, 1.0))
        for sector in self.dirty:
            start = sector * SECTOR_BYTES
            if start < length and random.random() < keep:
                piece = self.data[start : min(start + SECTOR_BYTES, length)]
                left[start : start + len(piece)] = piece
        self.data = left
        self.sync()


class SimulatedDisk:
    """Files in memory. Implements `Files`; `vfs` makes SQLite use it too.

    `fail_at` counts file operations that change something or make it durable; the N-th raises
    `OSError(fail_errno)`, or `PowerCut` when `fail_errno` is 0, after which every operation does.
    """

    def __init__(self) -> None:
        self.inodes: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.operations = 0
        self.fail_at = 0
        self.fail_errno = 0
        self.fails_on: Callable[[str, str], bool] = lambda operation, path: True
        self.dead = False
        self.frozen = False
        self.locks: set[str] = set()
        self.space_bytes: int | None = None
        self.device = 1  # another number: what is here was copied from another disk

    # faults

    @contextmanager
    def freeze(self) -> Iterator[None]:
        """Ignore every change: for closing what a killed process would have left open."""
        self.frozen = True
        try:
            yield
        finally:
            self.frozen = False

    def count(self, operation: str, path: str) -> None:
        """Called before each operation that changes something."""
        if self.dead:
            raise PowerCut
        if not self.fails_on(operation, path):
            return
        self.operations += 1
        if self.operations == self.fail_at:
            if not self.fail_errno:
                self.dead = True
                raise PowerCut
            raise OSError(self.fail_errno, os.strerror(self.fail_errno), path)

    def raise_if_dead(self) -> None:
        """For a loop's `watch`: a machine without power runs no code."""
        if self.dead:
            raise PowerCut

    def take_space(self, growth: int, path: str) -> None:
        if self.space_bytes is None or growth <= 0:
            return
        if growth > self.space_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.space_bytes -= growth

    def cut_power(self, random: random_module.Random) -> None:
        """Lose what was not durable; the disk is usable again."""
        for path, inode in list(self.inodes.items()):
            if self.durable_names.get(path) is not inode and random.random() < 0.5:
                del self.inodes[path]
        for path, inode in self.durable_names.items():
            if path not in self.inodes and random.random() < 0.5:
                self.inodes[path] = inode  # a removal that was not durable
        for inode in {id(inode): inode for inode in self.inodes.values()}.values():
            inode.survive(random)
        self.durable_names = dict(self.inodes)
        self.restart()

    def restart(self) -> None:
        """A new process on what is there: as after kill -9."""
        self.locks.clear()
        self.dead = False
        self.fail_at = self.operations = 0

    def wipe(self) -> None:
        """Release every byte. A test's disk lies in cycles, and would keep them until the collector comes."""
        for inode in (*self.inodes.values(), *self.durable_names.values()):
            inode.truncate(0)
            inode.sync()
        self.inodes.clear()
        self.durable_names.clear()

    # Files

    def open(self, path: str, *, create: bool = False) -> "SimulatedFile":
        if path not in self.inodes:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            if self.frozen:
                return SimulatedFile(self, path, Inode())
            self.count("create", path)
            self.inodes[path] = Inode()
        return SimulatedFile(self, path, self.inodes[path])

    def exists(self, path: str) -> bool:
        return path in self.inodes

    def names(self, folder: str) -> list[str]:
        prefix = folder.rstrip("/") + "/"
        below = (path[len(prefix) :] for path in self.inodes if path.startswith(prefix))
        return sorted({name.partition("/")[0] for name in below})

    def remove(self, path: str) -> None:
        if path in self.inodes and not self.frozen:
            self.count("remove", path)
            if self.space_bytes is not None:
                self.space_bytes += len(self.inodes[path].data)
            del self.inodes[path]

    def make_folder(self, path: str) -> None:
        pass  # folders exist where files need them

    def sync_folder(self, path: str) -> None:
        if self.frozen:
            return
        self.count("sync", path)
        self._sync_names(path.rstrip("/"), deep=False)

    def sync_tree(self, path: str) -> None:
        if self.frozen:
            return
        self.count("sync", path)
        self._sync_names(path, deep=True)
        for name, inode in self.inodes.items():
            if name.startswith(path + "/"):
                inode.sync()

    def _sync_names(self, folder: str, *, deep: bool) -> None:
        def within(path: str) -> bool:
            return path.startswith(folder + "/") and (deep or "/" not in path[len(folder) + 1 :])

        kept = {path: inode for path, inode in self.durable_names.items() if not within(path)}
        self.durable_names = kept | {path: inode for path, inode in self.inodes.items() if within(path)}

    def identity(self, path: str) -> tuple[int, int]:
        return self.device, 1

    def lock(self, path: str) -> "SimulatedFile":
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        file = self.open(path, create=True)
        self.locks.add(path)
        file.held = path
        return file

    @contextmanager
    def vfs(self, name: str) -> Iterator[str]:
        """Register this disk for SQLite under a name, and take it away again."""
        registered = SimulatedVfs(name, self)
        try:
            yield name
        finally:
            registered.unregister()


class SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode) -> None:
        self.disk, self.path, self.inode = disk, path, inode
        self.held: str | None = None

    def read(self, length: int, offset: int) -> bytes:
        return bytes(self.inode.data[offset : offset + length])

    def write(self, data: bytes | memoryview, offset: int) -> None:
        if self.disk.frozen:
            return
        self.disk.count("write", self.path)
        self.disk.take_space(offset + len(data) - len(self.inode.data), self.path)
        self.inode.write(data, offset)

    def size(self) -> int:
        return len(self.inode.data)

    def truncate(self, size: int) -> None:
        if self.disk.frozen:
            return
        self.disk.count("truncate", self.path)
        self.inode.truncate(size)

    def sync(self) -> None:
        if self.disk.frozen:
            return
        self.disk.count("sync", self.path)
        self.inode.sync()

    def close(self) -> None:
        if self.held is not None:
            self.disk.locks.discard(self.held)
            self.held = None


class SimulatedVfs(apsw.VFS):
    """A SQLite VFS on a simulated disk. Only for databases in exclusive locking mode: no shared memory."""

    def __init__(self, name: str, disk: SimulatedDisk) -> None:
        super().__init__(name, base="", iVersion=1)
        self.disk = disk
        self.temporary = 0

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        if name is None:
            self.temporary += 1
            path = f"/temporary/{self.temporary}"
        else:
            path = name.filename() if hasattr(name, "filename") else str(name)
        flags[1] = flags[0]
        fresh = path not in self.disk.inodes
        with _as_sqlite_errors():
            file = self.disk.open(path, create=bool(flags[0] & apsw.SQLITE_OPEN_CREATE))
        return SimulatedVfsFile(file, names_too=fresh and bool(flags[0] & _JOURNALS))

    def xDelete(self, name: str, sync_folder: bool) -> None:
        with _as_sqlite_errors():
            self.disk.remove(name)
            if sync_folder:
                self.disk.sync_folder(name.rpartition("/")[0])

    def xAccess(self, name: str, flags: int) -> bool:
        return self.disk.exists(name)

    def xFullPathname(self, name: str) -> str:
        return name


class SimulatedVfsFile:
    """The calls that SQLite makes on an open file.

    `names_too`: as on a real system, the first sync of a new journal makes its name durable as well.
    """

    def __init__(self, file: SimulatedFile, *, names_too: bool) -> None:
        self.file = file
        self.names_too = names_too

    def xRead(self, amount: int, offset: int) -> bytes:
        return self.file.read(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        try:  # not the context manager: this is half of what a simulated commit costs
            self.file.write(data, offset)
        except (OSError, PowerCut) as error:
            raise _sqlite_error(error) from error

    def xTruncate(self, size: int) -> None:
        with _as_sqlite_errors():
            self.file.truncate(size)

    def xSync(self, flags: int) -> None:
        with _as_sqlite_errors():
            self.file.sync()
            if self.names_too:
                self.file.disk.sync_folder(self.file.path.rpartition("/")[0])
                self.names_too = False

    def xFileSize(self) -> int:
        return self.file.size()

    def xClose(self) -> None:
        self.file.close()

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:
        return 0


@contextmanager
def _as_sqlite_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, PowerCut) as error:
        raise _sqlite_error(error) from error


def _sqlite_error(error: OSError | PowerCut) -> apsw.Error:
    if isinstance(error, PowerCut):
        return apsw.IOError("power cut")
    return (apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError)(str(error))
