"""Whatever a module's tests started has ended with them: threads that hold the interpreter up, and processes.

Owns  hooks of pytest that notice, and fail the last test of the module; giving Ctrl-C back after each test.
Not   what fixtures of a session keep; daemon threads, which abandoned objects of simulated crashes have.

Otherwise another module's test fails, later and at random: a thread that still wrote to a pipe once wrote to
another test's file. Who left Ctrl-C to somebody else is told at the end of the run, and nobody fails.
"""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from edgestead.testing.server import is_running

_LASTING_SCOPES = ("session", "package")
_LENDING = ("edge",)  # lent from what another fixture keeps for the session, and started when first needed
ENDING_SECONDS_MAX = 20
_TOOK_CTRL_C = "took_ctrl_c"  # what a worker says of itself at its end
_took_ctrl_c: list[str] = []  # tests, by id
_known: set[object] = set()  # there before, or kept by a fixture that outlives the module


def running() -> set[object]:
    """Threads that are no daemons, and numbers of our child processes that are not over."""
    found: set[object] = {thread for thread in threading.enumerate() if not thread.daemon}
    for task in Path("/proc/self/task").glob("*"):
        with suppress(OSError):  # a thread that has just ended
            found.update(pid for pid in map(int, (task / "children").read_text().split()) if is_running(pid))
    return found


def pytest_collection_finish():
    _known.update(running())


def keep(pids: Iterable[int]) -> None:
    """These outlive the module: a fixture of the session ends them."""
    _known.update(pids)


def words_of(left: object) -> str:
    if isinstance(left, threading.Thread):
        return f"the thread {left.name}"
    with suppress(OSError):
        return f"process {left}: " + Path(f"/proc/{left}/cmdline").read_text().replace("\0", " ")
    return f"process {left}"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope not in _LASTING_SCOPES and fixturedef.argname not in _LENDING:
        return (yield)
    before = running()
    try:
        return (yield)
    finally:
        _known.update(running() - before)


def _staying(left: set[object]) -> set[object]:
    """Of these those that do not end: a thread whose work is over, or a process that was killed, may need a
    moment on a busy machine.
    """
    give_up = time.monotonic() + ENDING_SECONDS_MAX
    while left and time.monotonic() < give_up:
        time.sleep(0.02)
        left = left & running()
    return left


def give_back_ctrl_c(name: str) -> None:
    """Have it raise KeyboardInterrupt, as before all tests, and note who changed that."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _took_ctrl_c.append(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    result = yield
    give_back_ctrl_c(item.nodeid)
    if nextitem is None or nextitem.path != item.path:
        gc.collect()  # closes and releases what lies in cycles
        left = _staying(running() - _known)
        _known.intersection_update(running())
        _known.update(left)  # told once
        if left and os.path.isdir("/proc/self/task"):
            raise AssertionError(f"{item.path.name} left running: " + "; ".join(sorted(map(words_of, left))))
    return result


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_TOOK_CTRL_C] = _took_ctrl_c


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    _took_ctrl_c.extend(getattr(node, "workeroutput", {}).get(_TOOK_CTRL_C, []))


def pytest_terminal_summary(terminalreporter):
    for name in _took_ctrl_c:
        terminalreporter.line(f"{name} left Ctrl-C to another handler", yellow=True)
