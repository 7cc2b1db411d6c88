"""A child's lives, as far as they can be seen without a server around them."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest

from edgestead.config import load
from edgestead.model.counters import PAGE_BYTES, slot
from edgestead.server import process
from edgestead.server.errors import StartError
from edgestead.server.messages import LogStart, Start, WaitingControlStart
from edgestead.server.supervisor.child import BACKOFF_MAX_SECONDS, IDLE_AFTER_SECONDS, STABLE_SECONDS, Child
from edgestead.testing.server import START_SECONDS_MAX, wait_until
from tests.descriptors import left_open, open_now


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def child(clock):
    """A child whose program does not exist: it ends at once with status 1."""
    page = os.memfd_create("page")
    os.ftruncate(page, PAGE_BYTES)

    def make_start(child, status_fd):
        start = Start(name=child.name, supervisor_pid=os.getpid(), status_fd=status_fd, counters_fd=page)
        return start, []

    yield Child("dns-0", "edgestead.no_such_program", make_start, page, clock, 10)
    os.close(page)


def live(child):
    """One whole life; returns the words for its end."""
    child.start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.read_status()
    return child.bury()


def test_a_life_is_counted_and_buried_without_a_trace(child):
    before = open_now()

    assert live(child) == "ended with exit status 1"

    assert not left_open(before)
    assert (child.is_alive, child.pid, child.lives) == (False, -1, 1)
    assert process.page(child.counters_fd).cells[slot("edge_process_starts_total")] == 1


def test_a_message_takes_the_settings_that_it_names_as_plain_values(child, tmp_path):
    config = load({"log-file": str(tmp_path / "log"), "log-files": 7, "log-level": "error"}, None)

    message = child.message(LogStart, 5, config, pipe_fd=3)

    assert (message.name, message.status_fd, message.pipe_fd) == ("dns-0", 5, 3)
    assert (message.log_file, message.log_files) == (str(tmp_path / "log"), 7)
    assert (message.log_level, message.log_form) == (config.log_level, "json")


def test_a_message_without_what_nobody_gives_is_refused(child):
    with pytest.raises(TypeError, match="pipe_fd"):
        child.message(LogStart, 5, load({}, None))


def test_a_place_comes_with_as_many_descriptors_as_it_names(monkeypatch, child):
    """A machine with many cores has more than one message of the kernel takes."""
    monkeypatch.setattr(process, "DESCRIPTORS_MAX", 3)
    monkeypatch.setattr(process.log, "rename", lambda name: None)
    monkeypatch.setattr(process.Path, "write_text", lambda path, text: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(child, "_messages", ours)
    sent = {f"n{number}_fd": os.memfd_create(f"page-{number}") for number in range(7)}
    fields = [(name, int) for name in sent]
    kind = msgspec.defstruct("Placed", fields, bases=(Start,), frozen=True, kw_only=True)
    common = {"name": "a", "supervisor_pid": 1, "status_fd": 2, "counters_fd": child.counters_fd}

    with ours:
        assert child._give_place(lambda child, status_fd: (kind(**common, **sent), sent.values()))
        assert process.has_place(theirs)
        taken = process.take_place(kind, Start(**common | {"status_fd": 77}), theirs)

    got = {name: getattr(taken, name) for name in sent}
    assert taken.status_fd == 77
    assert set(got.values()).isdisjoint(sent.values())
    assert [opened(fd) for fd in got.values()] == [opened(fd) for fd in sent.values()]
    for fd in (*sent.values(), *got.values(), taken.counters_fd):
        os.close(fd)


def test_a_spare_control_has_loaded_everything_before_it_waits_and_ends_with_the_server(clock, tmp_path):
    page = os.memfd_create("page")
    os.ftruncate(page, PAGE_BYTES)

    def make_start(child, status_fd):
        own = {"data_dir": str(tmp_path), "in_cluster": False}
        return child.message(WaitingControlStart, status_fd, load({}, None), **own), []

    spare = Child("control-spare", "edgestead.server.control.waiting", make_start, page, clock, 10)
    spare.start()

    wait_until(lambda: spare.read_status() and spare.is_ready, START_SECONDS_MAX)
    assert "apsw" in Path(f"/proc/{spare.pid}/maps").read_text()
    spare._messages.close()
    os.waitid(os.P_PID, spare.pid, os.WEXITED | os.WNOWAIT)

    spare._messages = None
    assert spare.bury() == "ended with exit status 0"
    os.close(page)


def opened(fd):
    return Path(f"/proc/self/fd/{fd}").readlink()


def runs(monkeypatch, script):
    """Have children run a script; `$status` is the descriptor of their status pipe."""
    popen = subprocess.Popen

    def run(_, *, pass_fds, **more):
        return popen(["sh", "-c", f"status={pass_fds[1]}; {script}"], pass_fds=pass_fds, **more)

    monkeypatch.setattr("subprocess.Popen", run)


@pytest.mark.parametrize(
    ("end", "itself"),
    [
        ("0", False),
        ("1", True),
        ("70", True),
        ("SIGSEGV", True),
        ("SIGABRT", True),
        ("SIGKILL", False),
        ("SIGTERM", False),
    ],
)
def test_whether_a_life_ended_itself_is_told_to_the_next(child, monkeypatch, end, itself):
    how = f"kill -{end.removeprefix('SIG')} $$" if end.startswith("SIG") else f"exit {end}"
    runs(monkeypatch, how)

    assert child.ended_itself is False
    live(child)
    assert child.ended_itself is itself


def test_what_a_process_forked_ends_with_it(child, monkeypatch, tmp_path):
    runs(monkeypatch, f"sleep 600 & echo $! > {tmp_path}/pid; exit 3")

    live(child)

    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid), 300)


def is_running(pid):
    """What nobody reaps in a container counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_only_what_has_ended_can_be_buried(child, monkeypatch):
    runs(monkeypatch, "sleep 600")
    child.start()
    assert not child.can_be_buried
    child.send(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.can_be_buried
    child.bury()


def refuse(*_arguments, **_more):
    raise BlockingIOError(11, "Resource temporarily unavailable")


@pytest.mark.parametrize(
    ("where", "what"),
    [(socket, "socketpair"), (os, "pipe2"), (subprocess, "Popen"), (os, "pidfd_open")],
)
def test_a_start_that_the_system_refuses_leaves_nothing_open_and_nobody_alive(
    child, monkeypatch, where, what
):
    before = open_now()
    monkeypatch.setattr(where, what, refuse)

    with pytest.raises(BlockingIOError):
        child.start()

    assert not left_open(before)
    assert not child.is_alive
    assert child.lives == 0


@pytest.mark.parametrize("has_spare", [True, False])
def test_a_place_that_cannot_be_given_leaves_nothing_open_and_nobody_alive(child, monkeypatch, has_spare):
    runs(monkeypatch, "exec sleep 600")
    spare = Child("spare", "x", child._make_start, child.counters_fd, child._now, 10)
    before = open_now()
    if has_spare:
        spare.start()
        child.spares = [spare]

    def make_place(child, status_fd):
        raise StartError("no credentials")

    child._make_place = make_place
    with pytest.raises(StartError):
        child.start()

    assert not left_open(before)
    assert (child.is_alive, child.lives, spare.is_alive) == (False, 0, False)


def test_short_lives_wait_ever_longer_up_to_a_limit(child):
    live(child)

    delays = [child.next_delay_seconds() for _ in range(12)]

    assert delays[:4] == [0.05, 0.1, 0.2, 0.4]
    assert delays[-1] == BACKOFF_MAX_SECONDS


def test_a_long_life_forgives_the_short_ones_before_it_and_is_followed_at_once(child, clock):
    live(child)
    for _ in range(5):
        child.next_delay_seconds()

    live(child)
    clock.seconds += STABLE_SECONDS

    assert child.next_delay_seconds() == 0.0
    clock.seconds -= STABLE_SECONDS  # the next one is short
    assert child.next_delay_seconds() == 0.05


def test_a_long_life_is_followed_at_once_and_what_cannot_begin_behind_it_ever_later(child, clock):
    live(child)
    clock.seconds += STABLE_SECONDS

    assert [child.next_delay_seconds() for _ in range(4)] == [0.0, 0.05, 0.1, 0.2]


@pytest.mark.parametrize("lines", [1, 500])
def test_a_status_pipe_is_read_to_its_last_line(child, monkeypatch, lines):
    script = f'i=0; while [ $i -lt {lines} ]; do echo "doing step $i of many"; i=$((i+1)); done'
    runs(monkeypatch, f"{{ {script}; echo credentials; }} > /proc/self/fd/$status")
    child.start()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    said = child.read_status()

    assert (len(said), said[-1]) == (lines + 1, process.CREDENTIALS)
    child.bury()


def test_no_line_of_users_code_ends_the_supervisor(child, monkeypatch):
    many = "$(head -c 5000 /dev/zero | tr '\\0' 7)"
    beats = f'echo "beat {many}"; printf "beat \\377\\nbeat -1\\n"'
    others = f'printf "stage /a\\000b\\n"; echo "failed {many}"'
    runs(monkeypatch, f"{{ {beats}; {others}; }} > /proc/self/fd/$status")
    child.start()
    child.idle_still_seconds_max = 0.1
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    said = child.read_status()

    assert [len(line) for line in said] == [5_005, 6, 7, 10, 5_007]
    assert child.end_if_silent(IDLE_AFTER_SECONDS) == ""
    assert child.bury() == process.REASON_OCTETS_MAX * "7"
