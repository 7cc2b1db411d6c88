"""What hangs is ended and lives again, though nobody writes; the operator hears of it."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import threading
import time
from pathlib import Path

import dns.message
import dns.query
import pytest
import uvloop

from edgestead.model.counters import PAGE_BYTES, slot
from edgestead.server import process
from edgestead.server.dns.udp import Turning
from edgestead.server.messages import Start
from edgestead.server.supervisor.child import Child
from edgestead.server.supervisor.notify import Notify
from edgestead.testing.server import START_SECONDS_MAX

SILENCE_SECONDS = 3  # the least that the setting takes
DIGS = 20  # of which half are the hanging process's, but for one time in a million


@pytest.fixture
def server(new_server, tmp_path):
    settings = tmp_path / "edge.toml"
    settings.write_text(f"silence-seconds = {SILENCE_SECONDS}\nbarrier-ms = 60000\n")
    return new_server("--config", str(settings)).start()


def test_every_process_that_stands_still_lives_again_and_health_names_it(new_server, tmp_path, freeze):
    (tmp_path / "edge.toml").write_text("silence-seconds = 100\nbarrier-ms = 60000\n")  # still for 5 s
    server = new_server("--config", str(tmp_path / "edge.toml")).start()
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "A", "www", "192.0.2.1")
    stopped = {name: server.children()[name] for name in ("dns-0", "dns-tcp", "edge-0")}
    for pid in stopped.values():
        freeze(pid)

    named = set()  # they are ended and live again one by one: not all need to be named at once

    def all_were_named():
        rows = str(server.call("GET", "//health/ready").body)
        named.update(name for name in stopped if f"{name} does not answer" in rows)
        for name in stopped.keys() - named:  # on a busy machine it may have lived again before anybody looked
            if (pid := server.children().get(name, stopped[name])) != stopped[name]:
                stopped[name] = pid
                freeze(pid)
        return named == stopped.keys()

    server.wait_until(all_were_named, START_SECONDS_MAX)
    for name, pid in stopped.items():
        server.wait_for_life(name, pid)

    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, START_SECONDS_MAX)
    assert server.dig("www.example.com") == server.dig("www.example.com", tcp=True) == ["192.0.2.1"]


def test_the_queries_of_a_dns_process_that_hangs_are_answered_by_the_others(new_server, patience, freeze):
    settings = Path(patience[1])
    settings.write_text(f"{settings.read_text()}dns-workers = 2\n")
    server = new_server(*patience).start()
    zone_id = server.make_zone("example.com")
    server.make_record(zone_id, "A", "www", "192.0.2.1")
    hung = server.children()["dns-0"]
    freeze(hung)

    host, _, port = server.ready["dns"].rpartition(":")
    query = dns.message.make_query("www.example.com", "A")
    for _ in range(DIGS):  # each has a port of its own, so that the kernel deals them out
        assert dns.query.udp(query, host, START_SECONDS_MAX, int(port)).answer

    assert server.children()["dns-0"] == hung, "nobody had ended it"


def test_a_control_that_stands_still_is_ended_by_the_supervisor(server, freeze):
    pid = server.children()["control"]
    freeze(pid)

    server.wait_for_life("control", pid)

    server.wait_for_log(f"control (pid {pid}) stood still for 0.2 s: killed")
    assert 'edge_process_silences_total{process="control"} 1' in server.call("GET", "//metrics").body


def test_a_control_that_stands_still_before_it_is_ready_is_ended_too(server, freeze):
    pid = server.children()["control"]
    os.kill(pid, signal.SIGKILL)
    pid = server.wait_for_life("control", pid)
    freeze(pid)

    server.wait_for_life("control", pid)
    server.wait_for_log(f"control (pid {pid}) stood still for ")


def test_a_process_of_objects_that_stands_still_is_ended_at_once_where_no_code_of_users_runs(
    new_server, tmp_path, freeze
):
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "edge.toml").write_text("objects-blocked-seconds = 2\n")
    flags = ("--config", str(tmp_path / "edge.toml"), "--objects-workers", "1")
    server = new_server("--objects", str(tmp_path / "held.py"), *flags).start()
    pid = server.children()["objects-0"]
    freeze(pid)

    server.wait_for_life("objects-0", pid)

    server.wait_for_log(f"objects-0 (pid {pid}) stood still for 0.6 s: killed")


def test_a_process_that_stands_still_in_users_code_has_what_a_class_may_block(new_server, tmp_path, freeze):
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "edge.toml").write_text("objects-blocked-seconds = 4\n")
    flags = ("--config", str(tmp_path / "edge.toml"), "--objects-workers", "1")
    server = new_server("--objects", str(tmp_path / "held.py"), *flags).start()
    pid = server.children()["objects-0"]
    calling = threading.Thread(target=call_in_vain, args=(server, "Held/a/block"))
    calling.start()
    server.wait_until((tmp_path / "blocking").exists, START_SECONDS_MAX)

    freeze(pid)

    server.wait_for_life("objects-0", pid)
    server.wait_for_log(f"objects-0 (pid {pid}) stood still for 3.8 s: killed")  # from the second sign on
    calling.join()


def call_in_vain(server, path):
    with contextlib.suppress(OSError):  # its process ends
        server.call_object(path)


def test_a_process_that_somebody_stops_goes_on_at_once(new_server, tmp_path):
    (tmp_path / "held.py").write_text(HELD)
    server = new_server("--objects", str(tmp_path / "held.py"), "--objects-workers", "1").start()
    before = {name: pid for name, pid in server.children().items() if "spare" not in name}
    for pid in before.values():
        os.kill(pid, signal.SIGSTOP)

    def stops():
        page = server.call("GET", "//metrics").body
        return [name for name in before if f'edge_process_stops_total{{process="{name}"}} 1' in page]

    server.wait_until(lambda: len(stops()) == len(before), START_SECONDS_MAX)

    assert before.items() <= server.children().items()
    assert server.call_object("Held/a/lives").status == 200
    server.wait_for_log("was stopped from outside (1 times since the last line): it goes on")


HELD = """
import asyncio
import time
import pathlib
from edgestead import StatefulObject

class Held(StatefulObject):
    n = 0
    async def on_start(self):
        Held.n += 1
    async def block(self):
        pathlib.Path(__file__).with_name("blocking").touch()
        time.sleep(600)
    async def lives(self):
        return Held.n
    async def hold(self):
        async def closure():
            pathlib.Path(__file__).with_name("holding").touch()
            while not pathlib.Path(__file__).with_name("go").exists():
                await asyncio.sleep(0.05)
        await self.ctx.block_concurrency_while(closure)
"""


# The parts, without a server.


@pytest.fixture
def child():
    page = os.memfd_create("page")
    os.ftruncate(page, PAGE_BYTES)

    def make_start(child, status_fd):
        start = Start(name=child.name, supervisor_pid=os.getpid(), status_fd=status_fd, counters_fd=page)
        return start, []

    made = Child("control", "timeit", make_start, page, lambda: 0.0, SILENCE_SECONDS)
    yield made
    os.close(page)


def hears(child, *lines):
    """What the child's process would have said."""
    read, write = os.pipe2(os.O_NONBLOCK)
    status, child.status_fd = process.Status(write), read
    for line, *words in lines:
        getattr(status, line)(*words)
    child.read_status()
    os.close(read)
    os.close(write)


def test_who_never_gave_a_sign_is_not_waited_for(child):
    assert not any(child.end_if_silent(10) for _ in range(10))


def test_silence_is_counted_from_the_last_sign_and_ends_in_two_signals(child, monkeypatch):
    sent = []
    monkeypatch.setattr(child, "send", sent.append)
    hears(child, ["beat"])
    assert [child.end_if_silent(1) for _ in range(2)] == ["", ""]
    hears(child, ["beat"])
    assert [child.end_if_silent(1) for _ in range(3)] == ["", "", "gave no sign of life for 3 s"]
    assert sent == [signal.SIGABRT], "one that runs says where it stands"

    assert [child.end_if_silent(1) for _ in range(3)] == [""] * 3

    assert sent == [signal.SIGABRT, signal.SIGKILL]
    assert process.page(child.counters_fd).cells[slot("edge_process_silences_total")] == 1


@pytest.mark.parametrize(
    ("mark", "looks", "words"),
    [(0, 5, "stood still for 0.3 s"), (7, 7, "stood still for 0.5 s"), (None, 7, "stood still for 0.5 s")],
)
def test_how_long_a_process_may_stand_still_depends_on_whose_code_runs(
    child, tmp_path, monkeypatch, mark, looks, words
):
    """Looks of a tenth of a second. Without a stage nobody knows, so it may be users' code."""
    stage = tmp_path / "stage"
    monkeypatch.setattr(child, "send", lambda signal: None)
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: 1_000)
    child.still_seconds_max, child.idle_still_seconds_max = 0.5, 0.3
    if mark is not None:
        stage.write_bytes(mark.to_bytes(8, "little") + bytes(8))
        hears(child, ["stage", str(stage)])
    hears(child, ["beat"])

    said = [child.end_if_silent(0.1) for _ in range(looks)]

    assert said == [""] * (looks - 1) + [words]
    assert child.stood_still


def test_who_hangs_in_a_start_that_only_works_is_ended(child, monkeypatch):
    """Looks of a tenth of a second. Who works has as long as its start may take."""
    monkeypatch.setattr(child, "send", lambda signal: None)
    work = itertools.chain(range(100), itertools.repeat(100))
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: next(work))
    child.still_seconds_max, child.works_at_its_start = 0.2, True
    monkeypatch.setattr(child, "_get_process", lambda: None)
    child.start()

    said = [child.end_if_silent(0.1) for _ in range(121)]

    assert said == [""] * 120 + ["stood still for 2 s"]


def test_the_first_sign_ends_what_a_start_may_take(child, monkeypatch):
    monkeypatch.setattr(child, "send", lambda signal: None)
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: None)
    monkeypatch.setattr(child, "_get_process", lambda: None)
    child.works_at_its_start = True
    child.start()
    hears(child, ["beat"])

    said = [child.end_if_silent(1) for _ in range(SILENCE_SECONDS)]

    assert said == ["", "", f"gave no sign of life for {SILENCE_SECONDS} s"]


@pytest.mark.parametrize("line", [b"beat x", b"beat -1", b"beat " + b"9" * 4_000, b"stage \0", b"stage FIFO"])
def test_what_users_code_writes_to_the_pipe_holds_up_nobody(child, tmp_path, line):
    os.mkfifo(tmp_path / "fifo")
    child.still_seconds_max, child.idle_still_seconds_max = 0.5, 0.3
    hears(child, ["beat"], ["_tell", line.replace(b"FIFO", bytes(tmp_path / "fifo"))])

    assert not any(child.end_if_silent(0.1) for _ in range(8))


WORKING = {
    "it may run, or waits for a disk": lambda look: None,
    "it runs for a moment now and then": lambda look: look // 3,
    "it waits for its turn now and then": lambda look: None if look % 3 == 0 else 7,
}


@pytest.mark.parametrize("work", WORKING.values(), ids=WORKING)
def test_a_control_that_is_slow_has_all_of_the_silence_that_is_allowed(child, monkeypatch, work):
    """Looks of a tenth of a second."""
    looks = itertools.count()
    monkeypatch.setattr(child, "send", lambda signal: None)
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: work(next(looks)))
    child.still_seconds_max = 0.3
    hears(child, ["beat"])

    said = [child.end_if_silent(0.1) for _ in range(10 * SILENCE_SECONDS)]

    assert said[:-1] == [""] * (len(said) - 1)


def test_a_control_that_waits_for_a_processor_is_not_silent(child, monkeypatch):
    """Whoever is runnable waits; it has had no turn for ten times the silence that is allowed."""
    waited = itertools.count(step=0.1)
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: None)
    monkeypatch.setattr(process, "waits_of", lambda pid: (next(waited), False))
    child.still_seconds_max = 0.3
    hears(child, ["beat"])

    assert not any(child.end_if_silent(0.1) for _ in range(100 * SILENCE_SECONDS))


def test_who_works_is_not_still_though_no_code_of_users_runs(child, tmp_path, monkeypatch):
    work, stage = itertools.count(), tmp_path / "stage"
    stage.write_bytes(bytes(16))
    monkeypatch.setattr("edgestead.server.supervisor.child.work_of", lambda pid: next(work))
    child.still_seconds_max, child.idle_still_seconds_max = 0.5, 0.3
    hears(child, ["stage", str(stage)], ["beat"])

    assert not any(child.end_if_silent(0.1) for _ in range(20))


@pytest.mark.parametrize(("keeps_others_waiting", "looks"), [(False, 48), (True, 12)])
def test_on_a_busy_machine_who_holds_the_lock_is_ended_by_the_time_that_passes(
    child, monkeypatch, keeps_others_waiting, looks
):
    """Looks of half a second, of each of which it ran for an eighth."""
    sent, waited = [], itertools.count(7 / 16, 7 / 16)
    monkeypatch.setattr(child, "send", sent.append)
    monkeypatch.setattr(process, "waits_of", lambda pid: (next(waited), False))
    child.keeps_others_waiting = keeps_others_waiting
    hears(child, ["beat"])

    count = next(number for number in itertools.count(1) if child.end_if_silent(0.5))

    assert count == looks
    assert sent == [signal.SIGABRT]


@pytest.mark.parametrize(
    ("runs", "is_ended"),
    [(itertools.repeat((5, True)), False), (((n, True) for n in itertools.count()), True)],
    ids=["never", "a little"],
)
def test_who_has_no_turn_to_give_a_sign_is_not_silent(child, monkeypatch, runs, is_ended):
    """On a machine with a load of 120 idle processes of objects were ended: nothing of theirs had run."""
    monkeypatch.setattr(child, "send", lambda signal: None)
    monkeypatch.setattr(process, "run_of", lambda pid, thread: next(runs))
    child.keeps_others_waiting = True
    hears(child, ["beat"])

    assert any(child.end_if_silent(0.5) for _ in range(100)) is is_ended


def test_whether_a_thread_has_run_and_may_run_is_known():
    ran, may_run = process.run_of(os.getpid(), threading.get_native_id())
    assert (ran > 0, may_run) == (True, True)
    assert process.run_of(os.getpid(), 0) == (0, False)


def test_whether_somebody_waits_for_a_loop_is_known_while_it_stands_still():
    """Asked from its own callback: where it does not turn, whoever asks."""

    async def main():
        loop = asyncio.get_running_loop()
        looks_for_work = process.looks_for_work(loop)
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_unix_connection(sock=ours)
        await asyncio.sleep(0)
        before = looks_for_work()
        theirs.send(b"?")
        during = looks_for_work()
        await asyncio.sleep(0.01)
        after = looks_for_work()
        writer.close()
        theirs.close()
        return before, during, after

    assert uvloop.run(main()) == (False, True, False)


def test_of_very_many_steps_a_line_is_said_now_and_then(monkeypatch):
    now_s, said = [100.0], []
    monkeypatch.setattr(process.time, "monotonic", lambda: now_s[0])
    status = process.Status(-1)
    monkeypatch.setattr(status, "doing", said.append)

    for step in range(30):
        status.going_on(f"step {step}")
        now_s[0] += 0.125

    assert said == ["step 0", "step 8", "step 16", "step 24"]


def test_what_a_child_does_before_it_is_ready_is_known(child):
    hears(child, ["doing", "importing\na.py"])

    assert child.doing == "importing a.py"
    assert not child.end_if_silent(100)


def test_a_tree_that_was_frozen_goes_on_with_everybody_in_it(new_server, tmp_path):
    """As by SIGSTOP for all, a suspended machine, a paused container: longer than each limit there is."""
    (tmp_path / "held.py").write_text(HELD)
    settings = tmp_path / "frozen.toml"
    settings.write_text(f"silence-seconds = {SILENCE_SECONDS}\nobjects-blocked-seconds = 2\n")
    server = new_server(
        "--config", str(settings), "--objects", str(tmp_path / "held.py"), "--objects-workers", "2"
    ).start()
    server.make_zone("example.com")
    before = server.children()
    holding = threading.Thread(target=server.call_object, args=("Held/a/hold",))
    holding.start()
    server.wait_until(lambda: (tmp_path / "holding").exists(), START_SECONDS_MAX)

    everybody = [server.pid, *before.values()]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2 * SILENCE_SECONDS)
    for pid in reversed(everybody):
        os.kill(pid, signal.SIGCONT)
    (tmp_path / "go").touch()
    holding.join()
    time.sleep(SILENCE_SECONDS)

    assert before.items() <= server.children().items()
    assert server.call_object("Held/a/lives").result == 1, "it was not reset, either"
    page = server.call("GET", "//metrics").body
    assert 'edge_feed_kills_total{process="control"} 0' in page
    assert server.call_object("Held/b/lives").status == 200


def test_a_supervisor_that_does_not_read_ends_nobody():
    read, write = os.pipe2(os.O_NONBLOCK)
    status = process.Status(write)
    for _ in range(100_000 // len(process.BEAT)):
        status.beat()
    os.close(read)
    os.close(write)


def test_a_thread_that_turns_goes_on_and_one_that_does_not_does_not():
    turning = Turning()
    assert turning.goes_on(), "nobody asked before"
    assert not turning.goes_on()
    assert not turning.is_set()
    assert turning.goes_on()
    turning.set()
    assert turning.is_set()


# The service manager.


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path, monkeypatch):
    """A service manager's socket, and the address as it tells it."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind("notify" if request.param == "path" else f"\0edgestead-test-{os.getpid()}")
        made.setblocking(False)
        yield made, ("notify" if request.param == "path" else f"@edgestead-test-{os.getpid()}")


def test_a_manager_hears_ready_alive_and_ending_and_nobody_else_hears_of_it(manager):
    heard, address = manager
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}
    notify = Notify(environment)
    notify.ready("API here")
    notify.alive()
    notify.ending()

    assert [heard.recv(4096).decode().split("\n")[0] for _ in range(3)] == [
        "READY=1",
        "WATCHDOG=1",
        "STOPPING=1",
    ]
    assert notify.watchdog_seconds == 10
    assert environment == {}


WATCHDOGS = {
    "nobody listens": {"WATCHDOG_USEC": "20000000"},
    "another process is meant": {"NOTIFY_SOCKET": "n", "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"},
    "no number": {"NOTIFY_SOCKET": "n", "WATCHDOG_USEC": "soon"},
    "zero": {"NOTIFY_SOCKET": "n", "WATCHDOG_USEC": "0"},
}


@pytest.mark.parametrize("environment", WATCHDOGS.values(), ids=WATCHDOGS)
def test_no_watchdog_is_told(environment):
    assert Notify(environment).watchdog_seconds is None


def test_a_manager_that_is_gone_stops_nobody(tmp_path):
    Notify({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready("API here")


def test_a_server_under_a_manager_says_when_it_answers_and_when_it_ends(new_server, manager, monkeypatch):
    heard, address = manager
    monkeypatch.setenv("NOTIFY_SOCKET", os.path.abspath(address) if address[0] != "@" else address)
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    server = new_server()
    server.launch()
    said = []

    def has_said(word):  # read from the beginning: a queue that is full would lose what comes last
        try:
            said.append(heard.recv(4096).decode())
        except BlockingIOError:
            pass
        return any(word in one for one in said)

    server.wait_until(lambda: has_said("READY=1"), START_SECONDS_MAX)
    server.wait_until(lambda: has_said("WATCHDOG=1"), START_SECONDS_MAX)
    server.stop()

    assert any(has_said("STOPPING=1") for _ in range(100))


# The start.


@pytest.mark.long
def test_a_start_that_waits_for_an_import_says_for_which(new_server, tmp_path):
    source = tmp_path / "slow.py"
    source.write_text("import time\ntime.sleep(600)\n")
    server = new_server("--objects", str(source), "--objects-workers", "1")
    server.launch()

    server.wait_until(lambda: f"objects-0 is not ready after 5 s: importing {source}" in server.log, 300)

    server.stop()


def test_a_class_that_cannot_be_imported_is_named_with_its_line_and_once(new_server, tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("import json\n\njson.loads('no')\n")
    server = new_server("--objects", str(source), "--objects-workers", "1")
    server.launch()

    assert server.wait() == 1

    assert f"Error: objects-0 could not start: {source}:3: JSONDecodeError: " in server.log
    assert server.log.count("JSONDecodeError") == 1
