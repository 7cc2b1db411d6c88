"""Edge processes die and return, and a long run leaves nothing behind: clients may try again what failed."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.edge.conftest import Site
from tests.edge.talk import connected, read_answer

WORKERS = 2
KILLS = 6
SOAK_SECONDS = 3_600
SOAK_CLIENTS = 24
GROWTH_KIB_MAX = 24 * 1024  # of one process after its first ten minutes, over an hour
UNREACHED_MAX = 1 / 10_000  # of the answers: who is starved for 5 s meets it, on a busy machine


class Visitors:
    """Threads that ask for pages all the time, over connections that they keep, and count what they see."""

    def __init__(self, site, host, count):
        self._site, self._host, self._stop = site, host, threading.Event()
        self.answers, self.retries, self.unreached, self.wrong = 0, 0, 0, []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._visit, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _visit(self, number):
        chance = random.Random(number)
        while not self._stop.is_set():
            try:
                self._session(chance)
            except (ConnectionError, TimeoutError, AssertionError, ValueError):
                with self._lock:
                    self.retries += 1

    def _session(self, chance):
        with connected(self._site.http) as connection, connection.makefile("rb") as stream:
            for _ in range(chance.randrange(1, 50)):
                if self._stop.is_set():
                    return
                body = b"x" * chance.choice((0, 10, 5_000, 300_000))
                head = b"PUT /%d HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n"
                connection.sendall(head % (len(body), self._host.encode(), len(body)) + body)
                answer = read_answer(stream)
                if answer is None:
                    raise ConnectionError
                with self._lock:
                    self.answers += 1
                    if answer.status == 522:  # no connection to the origin in time: nothing reached it
                        self.unreached += 1
                    elif answer.status != 200 or answer.body != b"%d" % len(body):
                        self.wrong.append((answer.status, answer.body[:100]))

    def leave(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(300)


def counts_body(head, body, connection):
    said = b"%d" % len(body)
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(said), said)


@pytest.fixture
def crowded(tmp_path):
    site = Site(tmp_path, "--edge-workers", str(WORKERS))
    yield site
    site.close()


def test_workers_that_are_killed_under_load_cost_connections_and_no_wrong_answer(crowded):
    host, origin = crowded.origin(counts_body)
    origin.keeps = False  # hundreds of MiB
    visitors, chance = Visitors(crowded, host, 8), random.Random(9)
    try:
        for _ in range(KILLS):
            before = visitors.answers
            crowded.server.wait_until(lambda before=before: visitors.answers > before + 50, 180)
            name = f"edge-{chance.randrange(WORKERS)}"
            pid = crowded.server.wait_for_life(name)
            os.kill(pid, signal.SIGKILL)
            crowded.server.wait_for_life(name, pid)
    finally:
        visitors.leave()
    assert visitors.wrong == []
    assert visitors.retries > 0


def test_a_write_is_answered_while_a_worker_dies(crowded):
    host, _ = crowded.origin()
    for number in range(4):
        pid = crowded.server.wait_for_life("edge-0")
        os.kill(pid, signal.SIGKILL)
        assert crowded.server.make_record(
            crowded.zone_id, "A", f"w{number}.{crowded.zone}", crowded.first.host, proxied=True
        ).status == 200  # fmt: skip
        crowded.server.wait_for_life("edge-0", pid)
        crowded.server.wait_until(lambda n=number: _serves(crowded, f"w{n}.{crowded.zone}"), 180)
    assert crowded.get(host).status == 200


def _serves(site, host):
    try:
        answer = site.get(host)
    except (ConnectionError, AssertionError):
        return False
    return answer is not None and answer.status == 200


def test_a_server_that_ends_lets_its_clients_have_their_answers(tmp_path):
    site = Site(tmp_path)
    go = threading.Event()
    host, origin = site.origin(
        lambda head, body, connection: go.wait(300) and counts_body(head, body, connection)
    )
    try:
        with connected(site.http) as connection, connection.makefile("rb") as stream:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
            site.server.wait_until(lambda: origin.requests, 180)
            os.kill(site.server.pid, signal.SIGTERM)
            site.server.wait_until(lambda: "control" not in site.server.children(), 180)
            go.set()
            assert read_answer(stream).status == 200
        assert site.server.wait() == 0
    finally:
        go.set()
        site.close()


def resident_kib(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line)
    return int(line.split()[1])


@pytest.mark.long
def test_an_hour_of_load_leaves_nothing_behind(crowded):
    made = [crowded.origin(counts_body) for _ in range(4)]
    for _, origin in made:
        origin.keeps = False
    hosts = [host for host, _ in made]
    visitors = [Visitors(crowded, host, SOAK_CLIENTS // 4) for host in hosts]
    records = crowded.server.call("GET", f"/zones/{crowded.zone_id}/dns_records?name={hosts[0]}").result
    began, first = time.monotonic(), None
    try:
        while (passed := time.monotonic() - began) < SOAK_SECONDS:
            time.sleep(10)
            ttl = 60 + int(passed) % 1_000
            path = f"/zones/{crowded.zone_id}/dns_records/{records[0]['id']}"
            assert crowded.server.call("PATCH", path, {"comment": str(ttl)}).status == 200
            pids = [crowded.server.children()[f"edge-{number}"] for number in range(WORKERS)]
            sizes = [resident_kib(pid) for pid in pids]
            if first is None and passed > SOAK_SECONDS / 6:
                first = (pids, sizes)
    finally:
        for one in visitors:
            one.leave()
    answers, unreached = sum(one.answers for one in visitors), sum(one.unreached for one in visitors)
    print(f"{answers} answers, {unreached} times 522, KiB {first[1]} -> {sizes}")  # noqa: T201 - for the docs
    assert pids == first[0], "a worker died"
    assert unreached <= answers * UNREACHED_MAX
    assert [one.wrong for one in visitors] == [[]] * 4
    assert max(after - before for before, after in zip(first[1], sizes, strict=True)) < GROWTH_KIB_MAX
    crowded.server.wait_until(lambda: all(len(os.listdir(f"/proc/{pid}/fd")) < 60 for pid in pids), 180)
