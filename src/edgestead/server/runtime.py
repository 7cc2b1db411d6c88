"""The private folder of a running server's Unix sockets, held for as long as one of its processes lives.

Owns  the hold on it, waiting for the last process of a killed server, sweeping up after such servers.
Not   which folder is whose (`server.folder` writes that down).
"""

import fcntl
import logging
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "edgestead-"
ORPHANS_SECONDS_MAX = 2.0  # for the processes of a killed supervisor to follow it
LOOK_SECONDS = 0.02  # between two looks whether they have
SWEPT_MAX = 1_000  # folders that one start looks at
UNUSED_SECONDS = 3_600  # then a folder without sockets, as a start makes it first, is nobody's

_log = logging.getLogger("edgestead.server")


def hold(path: Path) -> int:
    """A descriptor that keeps a new folder held. Raises OSError."""
    fd = _open(path)
    fcntl.flock(fd, fcntl.LOCK_EX)  # nobody has it for longer than a look of `sweep`
    return fd


def _hold_if_free(path: Path) -> int | None:
    """None when somebody has it. Raises OSError."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def wait_until_left(path: Path) -> bool:
    """Wait for the orphans of a killed server; False when they are still there after ORPHANS_SECONDS_MAX."""
    for _ in range(round(ORPHANS_SECONDS_MAX / LOOK_SECONDS)):
        try:
            fd = _hold_if_free(path)
        except OSError:
            return True
        if fd is not None:
            os.close(fd)
            return True
        time.sleep(LOOK_SECONDS)
    return False


def remove(path: Path) -> None:
    """Remove the sockets and the folder; leave alone whatever is not ours."""
    if not path.name.startswith(PREFIX):
        return
    try:
        for found in path.iterdir():
            if found.is_socket():
                found.unlink()
        path.rmdir()
    except OSError:
        return  # a stranger's file is in it, or the system cleaned up before us


def sweep(base: Path) -> None:
    """Remove what servers of this user left there whose every process is dead."""
    for path in _folders(base):
        try:
            fd = _hold_if_free(path)
        except OSError:
            continue  # another start was faster
        if fd is None:
            continue
        try:
            if _is_left(fd):
                remove(path)
        finally:
            os.close(fd)


def _folders(base: Path) -> Iterator[Path]:
    count = 0
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                    continue
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    count += 1
                    yield Path(entry)
                if count >= SWEPT_MAX:
                    return
    except OSError as error:
        _log.info("%s was not swept: %s", base, error)


def _is_left(fd: int) -> bool:
    """Whether nobody is there though nobody holds it: a server before there were holds, or one just begun."""
    path = Path(f"/proc/self/fd/{fd}")  # short enough for a socket's address, wherever the folder is
    sockets = [found for found in path.iterdir() if found.is_socket()]
    if not sockets:
        return time.time() - path.stat().st_mtime > UNUSED_SECONDS
    return not any(map(_is_listening, sockets))


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
        knocking.setblocking(False)
        try:
            knocking.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # its queue is full, or we may not: not ours to remove
    return True
