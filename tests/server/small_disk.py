"""A real file system of a few MiB, seen by the test and by what it starts, and by nobody else."""

import ctypes
import os
import subprocess
from contextlib import contextmanager

_CLONE_NEWNS = 0x0002_0000  # <linux/sched.h>


def _alone():
    """Mounts of this thread, and of what it starts, are its own from now on. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)


def why_not():
    """Why this machine cannot have one; "" when it can."""
    if os.geteuid() != 0:
        return "only root can mount a small disk"
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return f"no disk can be mounted here: {tried.stderr.decode().strip()}" if tried.returncode else ""


@contextmanager
def small_disk(folder, mib):
    folder.mkdir()
    _alone()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=700", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """What another program leaves there: not one free block. Returns its file."""
    path = folder / "of-another-program"
    with path.open("ab", buffering=0) as file:
        for size in (1 << 20, 4_096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return path
