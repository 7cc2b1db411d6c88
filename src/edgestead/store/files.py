"""The file operations that storage needs, as a parameter.

Owns  `Files` and `File`: the interface of simulated and real disks; `Room`: whether the disk is full.
Not   the real ones (`sqlite.objectlog.files`); SQLite's own files, which it opens through its VFS.
"""

from typing import Protocol


class File(Protocol):
    def read(self, length: int, offset: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """Write all of it, or raise OSError."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Make contents and size durable."""
        ...

    def close(self) -> None: ...


class Files(Protocol):
    """Paths are absolute text."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none when it does not exist."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder and the ones above it. Durable after `sync_folder` of each parent, or `sync_tree`."""
        ...

    def sync_folder(self, path: str) -> None:
        """Make creations and removals in a folder durable."""
        ...

    def sync_tree(self, path: str) -> None:
        """Make everything below a folder durable: contents, sizes and names."""
        ...

    def identity(self, path: str) -> tuple[int, int]:
        """What distinguishes a folder from a copy of it: device and inode."""
        ...

    def lock(self, path: str) -> File:
        """Lock a file exclusively until it is closed. Raises BlockingIOError when another process has the
        lock.
        """
        ...


class Room(Protocol):
    """The free space on this machine's disk."""

    @property
    def is_full(self) -> bool:
        """Whether new writes are refused: there is no space, or the disk has failed."""
        ...

    def look(self) -> None:
        """To be called when a write found the disk full. Checks for free space; without any `is_full` becomes
        true.
        """
        ...
