"""A disk that fills by 64 KiB at a time, under load.

At each step reads, deletions and revocations go on; additions are answered 200 and kept, or refused with 507.
"""

import os
import threading
from collections import Counter
from contextlib import suppress

import pytest

from edgestead.server import space
from tests.server.small_disk import small_disk, why_not
from tests.server.test_full_disk import WAIT_SECONDS, is_full, narrow_token, readiness

DISK_MIB, RESERVE_MIB = 64, 16
STEP_BYTES = 64 << 10
STEPS_MIN = 20  # the load takes room, too, and so do journals until the disk is seen to be nearly full
FREE_AT_FIRST_BYTES = 8 << 20
SMALL = "x" * 20_000
TURNS_A_STEP = 4  # of the load

WITHOUT_DISK = why_not()
pytestmark = pytest.mark.skipif(bool(WITHOUT_DISK), reason=WITHOUT_DISK)


@pytest.fixture
def server(new_server, tmp_path):
    settings = tmp_path / "small.toml"
    settings.write_text(f"disk-reserve-mib = {RESERVE_MIB}\n")
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        made = new_server("--config", str(settings), "--log-level", "warning")
        made.data_dir, made.disk = disk / "data", disk
        made.start()
        spaces = f"/accounts/{made.ready['account_id']}/storage/kv/namespaces"
        made.space = f"{spaces}/{made.call('POST', spaces, {'title': 'texts'}).result['id']}"
        made.zone_id = made.make_zone("example.com")
        yield made
        made.close()


class Writer:
    """Adds and deletes keys, one after the other, and remembers what was acknowledged.

    Until it has leave it makes a few turns for each step of the disk: beside steps that a busy machine
    makes slow it would fill the disk by itself.
    """

    def __init__(self, server):
        self.kept, self.gone, self.statuses = set(), set(), set()
        self._server, self._ended, self._turns = server, threading.Event(), 0
        self._steps, self.has_leave = threading.Semaphore(0), False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ended.is_set():
            if not self.has_leave and self._turns % TURNS_A_STEP == 0:
                self._steps.acquire()
            key = f"load-{self._turns}"
            self._turns += 1
            self.note(key, self._server.call("PUT", f"{self._server.space}/values/{key}", SMALL))
            if key in self.kept and self._turns % 2:
                answer = self._server.call("DELETE", f"{self._server.space}/values/{key}")
                self.statuses.add(("DELETE", answer.status))
                if answer.status == 200:
                    self.kept.discard(key)
                    self.gone.add(key)

    def step(self):
        self._steps.release()

    def take_leave(self):
        """No step is to come."""
        self.has_leave = True
        self._steps.release()

    def note(self, key, answer):
        self.statuses.add(("PUT", answer.status))
        if answer.status == 200:
            self.kept.add(key)

    def end(self):
        self._ended.set()
        self.take_leave()
        self._thread.join()


def free_bytes(folder):
    found = os.statvfs(folder)
    return found.f_bfree * found.f_frsize


def fill_to(file, folder, free):
    """Leave so much: what another program does."""
    while (left := free_bytes(folder) - free) > 0:
        file.write(bytes(min(left, 1 << 20)))


def take(file):
    """One step; false when the disk has not as much."""
    try:
        return file.write(bytes(STEP_BYTES)) == STEP_BYTES
    except OSError:
        return False


def set_status(server, token, status):
    return server.call("PUT", f"/user/tokens/{token['id']}", {**token, "status": status}).status


def test_at_every_step_of_a_disk_that_fills(server):
    token = narrow_token(server)
    policies = {"name": "narrow", "policies": token["policies"], "id": token["id"]}
    secret = token["value"]
    pairs = [{"key": key, "value": "v"} for key in ("always", *(f"k{number}" for number in range(1_000)))]
    assert server.call("PUT", f"{server.space}/bulk", pairs).status == 200
    writer, steps = Writer(server), 0
    try:
        with (server.disk / "of-another-program").open("ab", buffering=0) as file:
            fill_to(file, server.disk, FREE_AT_FIRST_BYTES)
            while take(file):
                steps += 1
                writer.step()
                key = f"{server.space}/values"
                assert server.call("GET", f"{key}/always").status == 200
                answers = [server.call("DELETE", f"{key}/k{steps}").status]
                answers.append(set_status(server, policies, "disabled"))
                if answers[-1] == 200:
                    assert server.call("GET", f"{server.space}/keys", token=secret).status in (401, 403)
                    answers.append(set_status(server, policies, "active"))
                assert set(answers) == {200}, (steps, answers)
            writer.take_leave()
            server.wait_until(lambda: is_full(server) and ("PUT", 507) in writer.statuses, WAIT_SECONDS)
    finally:
        writer.end()
    assert steps > STEPS_MIN
    assert writer.statuses <= {("PUT", 200), ("PUT", 507), ("DELETE", 200)}
    assert ("PUT", 507) in writer.statuses

    server.kill()
    (server.disk / "of-another-program").unlink()
    server.start()
    server.wait_until(lambda: readiness(server)[0] == 200, WAIT_SECONDS)
    keys = {one["name"] for one in every_key(server)}
    assert writer.kept <= keys
    assert not writer.gone & keys
    assert not {f"k{number}" for number in range(1, 1 + steps)} & keys
    assert "Traceback" not in server.log


def every_key(server):
    cursor = ""
    while True:
        answer = server.call("GET", f"{server.space}/keys?cursor={cursor}")
        yield from answer.result
        cursor = answer.body["result_info"]["cursor"]
        if not cursor:
            return


class Greedy(threading.Thread):
    """Another program that takes each block as soon as it is free."""

    def __init__(self, file):
        super().__init__()
        self.taken, self._file, self._ended = 0, file, threading.Event()
        self.start()

    def run(self):
        while not self._ended.is_set():
            for size in (STEP_BYTES, 4_096):
                with suppress(OSError):
                    self.taken += self._file.write(bytes(size))

    def end(self):
        self._ended.set()
        self.join()


def test_a_program_that_takes_every_block_keeps_no_right_and_no_record_alive(server):
    token = narrow_token(server)
    policies = {"name": "narrow", "policies": token["policies"], "id": token["id"]}
    records = [
        server.make_record(server.zone_id, "A", f"n{number}", "192.0.2.1").result["id"]
        for number in range(100)
    ]
    pairs = [{"key": f"k{number}", "value": SMALL} for number in range(100)]
    assert server.call("PUT", f"{server.space}/bulk", pairs).status == 200
    answers = Counter()

    def note(what, answer):
        answers[what, answer.status] += 1
        return answer

    with (server.disk / "of-another-program").open("ab", buffering=0) as file:
        greedy = Greedy(file)
        try:
            for number, record in enumerate(records):
                note("value", server.call("DELETE", f"{server.space}/values/k{number}"))
                note("record", server.call("DELETE", f"/zones/{server.zone_id}/dns_records/{record}"))
                for status, may_read in (("disabled", False), ("active", True)):
                    changed = {**policies, "status": status}
                    note(status, server.call("PUT", f"/user/tokens/{token['id']}", changed))
                    read = server.call("GET", f"{server.space}/keys", token=token["value"])
                    assert (read.status == 200) is may_read
            server.wait_until(lambda: is_full(server), WAIT_SECONDS)
            server.wait_until(lambda: free_bytes(server.disk) < STEP_BYTES, WAIT_SECONDS)
        finally:
            greedy.end()

    assert answers == {(what, 200): 100 for what in ("value", "record", "disabled", "active")}
    assert greedy.taken > FREE_AT_FIRST_BYTES
    assert (server.data_dir / space.FILE_NAME).stat().st_size == RESERVE_MIB << 20
    assert server.dig("n7.example.com") == ["NXDOMAIN"]
    assert "Traceback" not in server.log


CLASSES = """
from edgestead import StatefulObject

class Counter(StatefulObject):
    async def add(self):
        n = await self.ctx.storage.get("n", default=0) + 1
        await self.ctx.storage.put("n", n)
        return n

    async def count(self):
        return await self.ctx.storage.get("n", default=0)
"""
OBJECTS_DISK_MIB = 512  # their log takes the room of some segments at its start
FREE_BEFORE_LOW = (RESERVE_MIB + 4) << 20  # beside the reserve: from its size on the disk is nearly full
FREE_WHEN_LOW = (RESERVE_MIB - 1) << 20
NEARLY_FULL, FULL = "the disk is nearly full", "the disk is full"


@pytest.fixture
def server_with_objects(new_server, tmp_path):
    settings, classes = tmp_path / "small.toml", tmp_path / "counter.py"
    settings.write_text(f"disk-reserve-mib = {RESERVE_MIB}\nobjects-workers = 1\n")
    classes.write_text(CLASSES)
    with small_disk(tmp_path / "disk", OBJECTS_DISK_MIB) as disk:
        made = new_server("--config", str(settings), "--objects", str(classes), "--log-level", "warning")
        made.data_dir, made.disk = disk / "data", disk
        made.start()
        yield made
        made.close()


def says_full(server):
    """What the metric says of the disk, and what readiness does."""
    lines = server.call("GET", "//metrics").body.splitlines()
    (line,) = [one for one in lines if one.startswith("edge_disk_full")]
    return line.endswith(" 1"), is_full(server)


def test_objects_and_what_health_says_at_every_step(server_with_objects):
    server, steps, count = server_with_objects, 0, 0
    answered = Counter()
    with (server.disk / "of-another-program").open("ab", buffering=0) as file:
        fill_to(file, server.disk, FREE_BEFORE_LOW)
        free_at_first = free_bytes(server.disk)
        while take(file):
            steps += 1
            if free_bytes(server.disk) < FREE_WHEN_LOW:
                server.wait_for_log(NEARLY_FULL)  # control looks now and then: the other steps take no second
            added = server.call_object("Counter/a/add")
            answered[added.status] += 1
            count = added.result if added.status == 200 else count
            assert server.call_object("Counter/a/count").result == count, steps
            server.wait_until(lambda: len(set(says_full(server))) == 1, WAIT_SECONDS)
        server.wait_until(lambda: says_full(server) == (True, True), WAIT_SECONDS)

    assert set(answered) <= {200, 503, 507}
    assert count == answered[200]
    assert steps * STEP_BYTES >= free_at_first // 2  # the server's own files take room, too
    server.wait_for_log(FULL)
    assert server.log.find(NEARLY_FULL) < server.log.find(FULL)
    (server.disk / "of-another-program").unlink()
    server.wait_until(lambda: says_full(server) == (False, False), WAIT_SECONDS)
    server.wait_until(lambda: server.call_object("Counter/a/add").status == 200, WAIT_SECONDS)
    assert server.call_object("Counter/a/count").result == count + 1
