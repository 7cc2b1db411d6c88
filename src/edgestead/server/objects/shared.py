"""Files of the objects' folder that all of its processes read and write.

Owns  their lock, and writing one whole.
Not   what is in them (`layout`, `apart`).
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from edgestead.sqlite.objectlog.files import LocalFiles

LOOK_SECONDS = 0.05  # between two tries for a lock that another process has


@contextlib.contextmanager
def locked(path: Path, waits: Callable[[], None] | None = None) -> Iterator[None]:
    """`waits` is called every LOOK_SECONDS as long as another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if waits is None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            while not _lock_at_once(descriptor):
                waits()
                time.sleep(LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _lock_at_once(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_whole(path: Path, content: bytes) -> None:
    """Durable when it returns; never half. The caller holds the lock."""
    files, aside = LocalFiles(), path.with_name(f"{path.name}.new")
    file = files.open(str(aside), create=True)
    try:
        file.truncate(0)
        file.write(content, 0)
        file.sync()
    finally:
        file.close()
    aside.rename(path)
    files.sync_folder(str(path.parent))
