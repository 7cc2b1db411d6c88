"""The real file system.

Owns  `Files` and `File` on the operating system. Tests use simulated disks instead (`testing.disks`).
Not   SQLite's own files, which SQLite opens through the VFS that it is given.
"""

import contextlib
import ctypes
import fcntl
import os


class LocalFile:
    """A real file."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, length: int, offset: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        while data and len(data) < length:
            more = os.pread(self._fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, data: bytes | memoryview, offset: int) -> None:
        done = os.pwrite(self._fd, data, offset)
        while done < len(data):
            data = memoryview(data)[done:]
            offset += done
            done = os.pwrite(self._fd, data, offset)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class LocalFiles:
    """The real file system."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, 0o600))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_folder(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_tree(self, path: str) -> None:
        # One syncfs covers thousands of databases, and needs no second descriptor of a file that SQLite has
        # locked: closing one would drop SQLite's locks. It reports write-back errors since Linux 5.8.
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self._libc.syncfs(fd) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    def identity(self, path: str) -> tuple[int, int]:
        found = os.stat(path)
        return found.st_dev, found.st_ino

    def lock(self, path: str) -> LocalFile:
        file = self.open(path, create=True)
        try:
            fcntl.flock(file._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        return file
