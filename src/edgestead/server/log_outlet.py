"""The descriptor that a process's log goes to, for the thread that writes it.

Owns  which errors of a write end the log.
Not   lines, and how many may wait (`server.log`, `rest.log`).

    EPIPE, EBADF          nobody will read any more     raised
    EAGAIN                nobody reads now              it waits, as for any pipe that is full
    the rest, as ENOSPC   it may work later             what was to be written is lost, and it rests a while
"""

import errno
import os
import time
from typing import Final

REST_SECONDS: Final = 0.2
_ENDS: Final = frozenset({errno.EPIPE, errno.EBADF})


class LogOutlet:
    """Used by one thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._gap = b""  # between a line of which only the beginning was written and the next one

    def write(self, lines: bytes) -> bool:
        """Whether they were written. Raises OSError: no line ever will."""
        octets = self._gap + lines
        rest = memoryview(octets)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                time.sleep(REST_SECONDS)
            except OSError as error:
                if error.errno in _ENDS:
                    raise
                if len(rest) < len(octets):
                    self._gap = b"\n"
                time.sleep(REST_SECONDS)
                return False
        self._gap = b""
        return True
