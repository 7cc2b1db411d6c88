"""SIGKILL for parts of a real server."""

import os
import random
import signal

from edgestead.testing.server import END_SECONDS_MAX, is_running, wait_until


def kill_process(server, name):
    """End one of its processes, and wait for the next one of that name."""
    pid = server.wait_for_life(name)
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life(name, pid)


def kill_everything(server):
    """The supervisor first or last: either way nothing may survive it."""
    children = server.children()
    for pid in random.sample([server.pid, *children.values()], len(children) + 1):
        os.kill(pid, signal.SIGKILL)
    server.wait()
    wait_until(lambda: not any(map(is_running, children.values())), END_SECONDS_MAX)
