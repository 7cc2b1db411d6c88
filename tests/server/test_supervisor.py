"""What the supervisor makes of its children's last words, without a server."""

import os
import signal
from types import SimpleNamespace

import pytest

from edgestead.model.counters import PAGE_BYTES
from edgestead.server.messages import Start
from edgestead.server.supervisor.child import Child
from edgestead.server.supervisor.loop import Loop
from edgestead.server.supervisor.main import KEYS_AGAIN_SECONDS, START_LIVES_MAX, Supervisor
from edgestead.server.supervisor.notify import Notify
from tests.server.test_child import Clock, runs


class Estate:
    """Notes what is asked of it."""

    lost = None

    def __init__(self):
        self.children, self.asked = [], []
        self.words = SimpleNamespace(note=lambda name, words: self.asked.append(f"note {name}: {words}"))

    @property
    def control(self):
        return self.children[0]

    def void_keys(self):
        self.asked.append("void_keys")
        return 1.0

    def renew_keys(self):
        self.asked.append("renew_keys")
        return 3_600.0

    def write_ready_file(self):
        self.asked.append("write_ready_file")

    def remove_ready_file(self):
        self.asked.append("remove_ready_file")

    def stages(self):
        return [self.children]

    def ends_with(self, child):
        return []


def fails(*_):
    raise ValueError("nobody foresaw this")


@pytest.fixture
def page():
    made = os.memfd_create("page")
    os.ftruncate(made, PAGE_BYTES)
    yield made
    os.close(made)


@pytest.fixture
def supervisor(page, monkeypatch):
    def make_start(child, status_fd):
        return Start(name=child.name, supervisor_pid=os.getpid(), status_fd=status_fd, counters_fd=page), []

    monkeypatch.setattr(Loop, "on_signals", lambda *_: None)
    estate = Estate()
    made = Supervisor(estate, drain_seconds=1, announce=lambda ready: None, notify=Notify({}))
    made.estate, made.child = estate, Child("control", "x", make_start, page, Clock(), 1)
    estate.children.append(made.child)
    return made


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("credentials", ["void_keys", "write_ready_file", "note control: ended with exit status 1"]),
        ("lost control.db is another one", ["remove_ready_file"]),
    ],
)
def test_what_a_process_said_before_its_end_counts_though_the_end_is_seen_first(
    supervisor, monkeypatch, line, asked
):
    runs(monkeypatch, f"echo '{line}' > /proc/self/fd/$status; exit 1")
    supervisor._is_up = True
    supervisor._start(supervisor.child)
    os.waitid(os.P_PID, supervisor.child.pid, os.WEXITED | os.WNOWAIT)

    supervisor._ended(supervisor.child)

    assert supervisor.estate.asked == asked
    if line.startswith("lost"):
        assert supervisor._failure == "control.db is another one"


@pytest.mark.parametrize(
    ("command", "lives", "starts_again"),
    [
        ("kill -9 $$", 1, True),
        ("kill -9 $$", START_LIVES_MAX - 1, True),
        ("kill -9 $$", START_LIVES_MAX, False),
        ("kill -SEGV $$", 1, False),
        ("exit 1", 1, False),
        ("echo 'failed no such folder' > /proc/self/fd/$status; kill -9 $$", 1, False),
    ],
)
def test_a_server_that_is_not_up_yet_starts_again_who_was_ended_by_others(
    supervisor, monkeypatch, command, lives, starts_again
):
    runs(monkeypatch, command)
    given = []
    monkeypatch.setattr(Loop, "after", lambda loop, seconds, callback: given.append(callback.func))
    for _ in range(lives):
        supervisor._start(supervisor.child)
        os.waitid(os.P_PID, supervisor.child.pid, os.WEXITED | os.WNOWAIT)
        given.clear()
        supervisor._ended(supervisor.child)

    assert (given == [supervisor._start]) == starts_again
    assert bool(supervisor._failure) != starts_again


def test_a_spare_process_begins_as_late_as_it_may_and_again_at_once(supervisor, monkeypatch):
    supervisor.child.first_life_after_seconds = 30
    supervisor.estate.spares = [supervisor.child]
    later, started = [], []
    monkeypatch.setattr(Loop, "after", lambda loop, seconds, callback: later.append(seconds))
    monkeypatch.setattr(supervisor, "_start", started.append)

    supervisor._start_first_spares()
    supervisor._start_spares()  # another process is ready meanwhile
    assert (later, started) == ([30], [])

    supervisor.child.lives = 1
    supervisor._start_spares()
    assert started == [supervisor.child]


def test_a_start_that_goes_on_is_waited_for_and_one_that_stands_still_is_not(supervisor, monkeypatch):
    runs(monkeypatch, "exec sleep 600")
    given = []
    monkeypatch.setattr(Loop, "after_running", lambda loop, seconds, callback: given.append(callback))
    supervisor._start(supervisor.child)
    supervisor.child.steps += 1

    given.pop()()
    assert len(given) == 1, "it has time again"
    given.pop()()

    assert os.waitid(os.P_PID, supervisor.child.pid, os.WEXITED | os.WNOWAIT).si_status == signal.SIGKILL
    assert given == []
    supervisor.child.bury()


def test_keys_that_could_not_be_made_void_are_looked_at_soon_and_by_nobody_twice(supervisor, monkeypatch):
    planned, asked = [], supervisor.estate.asked
    monkeypatch.setattr(
        supervisor._loop, "after", lambda seconds, callback: planned.append((seconds, callback))
    )
    supervisor._renew_keys()
    supervisor._tell_credentials()
    assert asked == ["renew_keys", "void_keys"]

    (later, of_before), (soon, of_now) = planned
    assert (later, soon) == (3_600.0, 1.0)
    of_now()
    of_before()
    assert asked == ["renew_keys", "void_keys", "renew_keys"]
    assert [seconds for seconds, _ in planned] == [3_600.0, 1.0, 3_600.0]


def test_a_look_for_keys_that_fails_is_not_the_last_one(supervisor, monkeypatch):
    planned = []
    monkeypatch.setattr(supervisor._loop, "after", lambda seconds, callback: planned.append(seconds))
    monkeypatch.setattr(supervisor.estate, "renew_keys", fails)

    with pytest.raises(ValueError, match="foresaw"):
        supervisor._renew_keys()

    assert planned == [KEYS_AGAIN_SECONDS]


def test_a_child_whose_start_failed_as_nobody_foresaw_starts_again(supervisor, monkeypatch):
    """With what it makes of every start that fails: the pauses between them become longer."""
    runs(monkeypatch, "exec sleep 600")
    planned = []
    monkeypatch.setattr(supervisor._loop, "after", lambda seconds, callback: planned.append(callback))
    supervisor._is_up = True
    start = supervisor.child.start
    monkeypatch.setattr(supervisor.child, "start", fails)
    with pytest.raises(ValueError, match="foresaw"):
        supervisor._start(supervisor.child)
    monkeypatch.setattr(supervisor.child, "start", start)

    supervisor._look_for_silence()
    again = [one for one in planned if getattr(one, "func", None) == supervisor._start]
    assert len(again) == 1
    supervisor._look_for_silence()
    again[0]()

    assert [one for one in planned if getattr(one, "func", None) == supervisor._start] == again
    assert supervisor.child.is_alive
    supervisor.child.send(signal.SIGKILL)
    supervisor.child.bury()


def test_errors_are_outlived_by_a_server_that_is_up_and_does_not_end(supervisor, monkeypatch):
    ready = SimpleNamespace(api_base="x", dns="y")
    monkeypatch.setattr(supervisor.estate, "open_to_the_world", lambda: ready, raising=False)
    supervisor.estate.spares = []
    supervisor.estate.children.clear()
    lenient = [supervisor._loop.is_lenient]

    supervisor._come_up()
    lenient.append(supervisor._loop.is_lenient)
    supervisor._end()
    lenient.append(supervisor._loop.is_lenient)

    assert lenient == [False, True, False]


def test_a_process_that_was_taken_from_its_grave_is_not_looked_for_there(supervisor, monkeypatch):
    """A debugger held it; another child has its process, and its number, by now."""
    watched = []
    monkeypatch.setattr(supervisor._loop, "watch", lambda fd, callback: watched.append(fd))
    supervisor.child.lives = 1

    supervisor._look_at_grave(supervisor.child, 1)

    assert watched == []
