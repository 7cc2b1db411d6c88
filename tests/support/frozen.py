"""A process that hangs, without having been stopped: each of its threads is halted as by a debugger.

Owns  halting, going on; reaping what is killed meanwhile.
Not   SIGSTOP, which the supervisor sees, and answers with SIGCONT.

Linux alone (ptrace(2)). It works on one's own descendants where `kernel.yama.ptrace_scope` is 1.
"""

import contextlib
import ctypes
import os
import threading
from pathlib import Path

_SEIZE, _INTERRUPT = 0x4206, 0x4207  # <linux/ptrace.h>
_WALL = 0x40000000  # <linux/wait.h>: threads, too
_LOOK_SECONDS = 0.01
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class Frozen:
    """Made, every thread of the process is halted; `thaw` lets them go on. SIGKILL ends it as ever."""

    def __init__(self, pid):
        self._pid, self._thawing = pid, threading.Event()
        self._halted = threading.Event()
        self._refused: int | None = None
        self._thread = threading.Thread(target=self._trace, name=f"frozen-{pid}")
        self._thread.start()
        self._halted.wait()
        if self._refused is not None:
            self.thaw()
            raise OSError(self._refused, os.strerror(self._refused))

    def thaw(self):
        """Also of a process that is dead by now."""
        self._thawing.set()
        self._thread.join()

    close = thaw

    def _trace(self):
        """What a thread traces goes on when it ends, and what it traces it has to reap."""
        traced = set()
        while new := self._threads() - traced:  # a thread may start another one before it is halted
            for one in sorted(new):
                if _LIBC.ptrace(_SEIZE, one, None, None) != 0 and one == self._pid:
                    self._refused = ctypes.get_errno()  # ESRCH: gone
                    self._halted.set()
                    return
                _LIBC.ptrace(_INTERRUPT, one, None, None)
                traced.add(one)
        while not all(map(self._is_halted, traced)):
            self._thawing.wait(_LOOK_SECONDS)
        self._halted.set()
        while traced and not self._thawing.wait(_LOOK_SECONDS):
            traced -= {one for one in traced if _has_ended(one)}

    def _threads(self):
        with contextlib.suppress(OSError):
            return set(map(int, os.listdir(f"/proc/{self._pid}/task")))
        return set()

    def _is_halted(self, one):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{self._pid}/task/{one}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] in "tZX"
        return True


def _has_ended(thread):
    try:
        found, status = os.waitpid(thread, os.WNOHANG | _WALL)
    except ChildProcessError:
        return True
    return bool(found) and (os.WIFEXITED(status) or os.WIFSIGNALED(status))
