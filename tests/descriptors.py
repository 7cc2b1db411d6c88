"""Counting open files."""

import gc
import os
from contextlib import suppress


def open_descriptors(folder=None):
    """How many files this process has open, but for those of earlier tests that wait for the collector.

    With a folder only files in it count, deleted ones too: other threads may open and close others meanwhile.
    """
    gc.collect()
    if folder is None:
        return len(os.listdir("/proc/self/fd"))
    return sum(name.startswith(f"{folder}/") for name in _names())


def open_files():
    """The same of what is no socket: a server in this process closes its ends when it likes."""
    gc.collect()
    return sum(not name.startswith("socket:") for name in _names())


def _names():
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that lists them
            yield os.readlink(f"/proc/self/fd/{number}")
