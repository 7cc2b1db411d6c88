"""A database of tests, or of a benchmark, ends with what started it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from edgestead.testing.server import END_SECONDS_MAX, is_running, wait_until
from tests.support.postgres import own_folder

ROOT = Path(__file__).parents[2]
STARTED = """
import sys
from pathlib import Path
from tests.support.postgres import Owned, find_binaries

server = Owned(find_binaries(), Path(sys.argv[1]), synced=False)
server.create()
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_database_ends_when_the_tests_are_killed(postgres_binaries, number):
    with own_folder() as folder:
        command = [sys.executable, "-c", STARTED, str(folder / "a")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, cwd=ROOT, **pipes) as tests:
            pid = int(tests.stdout.readline())
            server = os.pidfd_open(pid)  # the number may be a stranger's once it has ended
            try:
                assert is_running(pid)

                tests.send_signal(number)

                wait_until(lambda: not is_running(pid), END_SECONDS_MAX)
            finally:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(server, signal.SIGKILL)
                os.close(server)
