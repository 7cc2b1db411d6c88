"""What the API has said, DNS answers: with stopped, dying and joining processes."""

import http.client
import os
import signal
import threading

import pytest

from edgestead.testing.server import START_SECONDS_MAX, is_running, wait_until


@pytest.fixture
def server(new_server):
    """Two UDP workers, so that one of them can be missing while the other answers."""
    return started(new_server("--dns-workers", "2"))


@pytest.fixture
def patient_server(new_server, patience):
    """The same for tests in which nobody may be killed but by the test."""
    return started(new_server("--dns-workers", "2", *patience))


def started(server):
    server.start()
    server.zone_id = server.make_zone("example.com")
    return server


class Load(threading.Thread):
    """Writes one record after the other, and digs each as soon as the API has answered.

    `stale` holds what a process answered although it should have known better.
    """

    def __init__(self, server, *, digs=4):
        super().__init__()
        self.server = server
        self.digs = digs
        self.written = 0
        self.cut = 0
        self.refused = []
        self.stale = []
        self.ended = threading.Event()
        self.error = None

    def run(self):
        try:
            while not self.ended.is_set():
                self.write_one()
        except BaseException as error:
            self.error = error

    def write_one(self):
        name, address = f"r{self.written}.example.com", f"192.0.2.{self.written % 256}"
        try:
            answer = self.server.make_record(self.server.zone_id, "A", name, address)
        except (http.client.HTTPException, OSError):
            self.cut += 1  # it may be written or not: nobody said so
            self.written += 1
            return
        if answer.status != 200:
            self.refused.append(answer)
            return
        self.written += 1
        # Each dig has a port of its own, so that the kernel spreads them over the workers.
        for number in range(self.digs):
            found = self.server.dig(name, tcp=number == 0)
            if found != [address]:
                self.stale.append((name, found))

    def __enter__(self):
        self.start()
        self.wait_for(3)
        return self

    def wait_for(self, more):
        """Until so many more records were written."""
        goal = self.written + more
        wait_until(lambda: self.written >= goal or self.error, START_SECONDS_MAX)

    def __exit__(self, *_):
        self.ended.set()
        self.join(300)
        assert self.error is None
        assert not self.is_alive()


@pytest.mark.parametrize("name", ["dns-0", "dns-tcp"])
def test_a_write_returns_after_a_process_that_stands_still_was_killed(server, freeze, name):
    pid = server.children()[name]
    freeze(pid)

    answer = server.make_record(server.zone_id, "A", "www", "192.0.2.1")

    assert answer.status == 200
    assert not is_running(pid)
    server.wait_for_life(name, pid)
    assert server.dig("www.example.com", tcp=name == "dns-tcp") == ["192.0.2.1"]
    assert 'edge_feed_kills_total{process="control"} 0' not in server.call("GET", "//metrics").body


def test_a_read_ends_no_process_that_stands_still(patient_server, freeze):
    server = patient_server
    pid = server.children()["dns-0"]
    freeze(pid)

    server.call("GET", f"/zones/{server.zone_id}/dns_records")

    assert is_running(pid)


@pytest.mark.parametrize("name", ["dns-0", "dns-1", "dns-tcp"])
def test_a_process_dying_and_joining_under_load_never_answers_what_was_before(patient_server, name):
    with Load(patient_server) as load:
        for _ in range(2):
            pid = patient_server.children()[name]
            os.kill(pid, signal.SIGKILL)
            patient_server.wait_for_life(name, pid)
            load.wait_for(3)

    assert (load.refused, load.stale, load.cut) == ([], [], 0)


def without_control(children):
    """Nor the process that waits for its place."""
    return {name: pid for name, pid in children.items() if not name.startswith("control")}


def test_control_restarting_under_load_loses_nothing_and_dns_never_answers_what_was_before(patient_server):
    before = patient_server.children()
    with Load(patient_server) as load:
        for _ in range(2):
            pid = patient_server.children()["control"]
            os.kill(pid, signal.SIGKILL)
            patient_server.wait_for_life("control", pid)
            load.wait_for(3)

    assert (load.refused, load.stale) == ([], [])
    assert load.cut <= 2
    assert without_control(patient_server.children()) == without_control(before)


def test_a_new_control_waits_for_whoever_served_before_it(server, freeze):
    before = server.children()
    freeze(before["dns-0"])
    os.kill(before["control"], signal.SIGKILL)

    assert server.make_record(server.zone_id, "A", "www", "192.0.2.1").status == 200

    assert not is_running(before["dns-0"])  # it could have woken and answered what was before


def test_no_process_alive_does_not_keep_a_write_from_succeeding_but_is_not_ready(server, freeze):
    stopped = without_control(server.children()).values()
    for pid in stopped:
        freeze(pid)

    answer = server.make_record(server.zone_id, "A", "www", "192.0.2.1", proxied=True)

    assert answer.status == 200
    assert not any(map(is_running, stopped))
    server.wait_until(lambda: server.call("GET", "//health/ready").status == 200, START_SECONDS_MAX)
    assert server.dig("www.example.com") == [server.ready["http"].rpartition(":")[0]]
