"""What becomes of a process that users' code forked off an objects process.

Owns  the child's end of everything that only one process may have: folder, addresses, storage.
Not   `subprocess` and `multiprocessing`, whose children never come back: they go on as ever.

A child that returned into the loop would answer the parent's callers, and write into its log.
"""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

EXIT_CHILD = 70  # EX_SOFTWARE
in_child = False


def guard(folders: Iterable[Path], sockets: Iterable[int], break_off: Callable[[], None]) -> None:
    """From now on children lose what is open in these folders, and these sockets.

    `break_off` ends their storage.

    Descriptors become /dev/null rather than closed: SQLite would write to whatever got their numbers.
    """
    places = tuple(map(str, folders))
    inside = tuple(f"{place}/" for place in places)
    listening = {os.fstat(fd).st_ino for fd in sockets}

    def lose() -> None:
        global in_child
        in_child = True
        break_off()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):
                path, found = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd)
                is_ours = path in places or path.startswith(inside)
                if is_ours or (stat.S_ISSOCK(found.st_mode) and found.st_ino in listening):
                    os.dup2(nothing, fd, inheritable=False)

    os.register_at_fork(after_in_child=lose)


def end_child() -> None:
    """A forked process came back from users' code: it ends, and the parent goes on alone."""
    os.write(2, b"a process that an object forked came back from the object's code: it ends here\n")
    os._exit(EXIT_CHILD)
