"""The temporary folder of a demo: held while the demo runs, and removed by the next start if it was killed.

Owns  the lock by which a folder is known to be somebody's.
Not   what is in it, and ending the processes that use it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

SWEPT_MAX: Final = 100  # folders that one start looks at
_LOCK: Final = "demo.lock"


@contextmanager
def held(prefix: str) -> Iterator[Path]:
    """A new folder, gone at the end. Before that, what demos of this user left that were killed is removed.

    Raises OSError.
    """
    sweep(prefix)
    while (made := _made(prefix)) is None:
        pass
    folder, lock = made
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made(prefix: str) -> tuple[Path, int] | None:
    """None when another start swept it away before its lock was held."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.fstat(lock).st_nlink:
        return folder, lock
    os.close(lock)
    return None


def sweep(prefix: str) -> None:
    """Remove what demos of this user left whose lock nobody holds."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*"))[:SWEPT_MAX]:
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
