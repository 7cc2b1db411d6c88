"""Programs that end with what started them, also when that is killed and can end nothing any more.

Owns  the word with the kernel, for the time between fork and exec.
Not   the server's own processes, which say so themselves (`server.process`).

The kernel sends the signal when the thread ends that started the program, so that has to be one that lasts:
`if_it_lasts` is for whoever may be called on any.
"""

import ctypes
import signal
import threading
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_PRCTL: Final = ctypes.CDLL(None).prctl  # found before a fork, which other threads do not survive


def end_with_parent() -> None:
    """SIGTERM; a server ends in order."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def interrupt_with_parent() -> None:
    """SIGINT, on which PostgreSQL does not wait for its clients."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def if_it_lasts(word: Callable[[], None]) -> Callable[[], None] | None:
    """The word for a program that this thread is about to start; None where others may outlive the thread."""
    return word if threading.current_thread() is threading.main_thread() else None
