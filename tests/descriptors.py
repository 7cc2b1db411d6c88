"""What a test has left open."""

import gc
import os
import time
from collections import Counter
from contextlib import suppress

CLOSING_SECONDS_MAX = 120  # a thread of the code that was tested may still be at it


def open_descriptors(folder):
    """How many files in this folder the process has open, deleted ones too."""
    gc.collect()
    return sum(name.startswith(f"{folder}/") for name in open_now().elements())


def open_now():
    """What the process has open, by the kernel's names: a socket's says its inode."""
    gc.collect()
    names = Counter()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that lists them
            names[os.readlink(f"/proc/self/fd/{number}")] += 1
    return names


def left_open(before):
    """What is open and was not `before`.

    A number would not do: what earlier tests left may be closed at any time, by the collector or by a server
    of theirs.
    """
    give_up = time.monotonic() + CLOSING_SECONDS_MAX
    while left := open_now() - before:
        if time.monotonic() > give_up:
            return list(left)
        time.sleep(0.05)
    return []
