"""Servers of tests end with what started them."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from edgestead.testing import platforms
from edgestead.testing.platforms import Platforms
from edgestead.testing.server import END_SECONDS_MAX, environment, is_running, wait_until

STARTED = """
import sys
from pathlib import Path
from edgestead.testing.server import EdgeServer

server = EdgeServer(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_a_server_ends_when_the_tests_are_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as tests:
        pid = int(tests.stdout.readline())
        server = os.pidfd_open(pid)  # the number may be a stranger's once it has ended
        try:
            assert is_running(pid)

            tests.kill()

            wait_until(lambda: not is_running(pid), END_SECONDS_MAX)
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(server, signal.SIGKILL)
            os.close(server)


def test_a_server_outlives_a_thread_that_started_it(new_server):
    server = new_server()
    starting = threading.Thread(target=server.launch)
    starting.start()
    starting.join()

    server.wait_ready()

    assert server.call("GET", "/zones").status == 200


class Stubborn:
    """A platform whose end fails."""

    closed = 0

    def __init__(self, *_):
        pass

    def close(self):
        Stubborn.closed += 1
        raise OSError("it does not end")


def test_a_platform_that_cannot_be_ended_keeps_no_other_from_its_end(monkeypatch, tmp_path):
    monkeypatch.setattr(platforms, "Platform", Stubborn)
    made = Platforms(lambda: tmp_path)
    for flag in ("a", "b", "c"):
        made.get(None, [flag], print)

    with pytest.raises(OSError, match="does not end"):
        made.close()

    assert Stubborn.closed == 3
