"""What the supervisor does to have the log in a file.

Owns  the pipe that every process writes to in the place of stderr.
Not   reading the pipe (`server.log_file`).
"""

import os
from contextlib import ExitStack
from functools import partial

_STDERR = 2


class LogPipe:
    """From now until `undo` is closed, stderr of this process and its children leads into a pipe."""

    def __init__(self, undo: ExitStack) -> None:
        self.read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        undo.callback(os.close, self.read_fd)
        before = os.dup(_STDERR)
        os.set_inheritable(before, False)
        os.dup2(write_fd, _STDERR)
        os.close(write_fd)
        undo.callback(partial(_give_back, before))


def _give_back(before: int) -> None:
    os.dup2(before, _STDERR)
    os.close(before)
