"""Stateful objects in a backup that is made while they are called."""

import json
import os
import threading
from collections import Counter

import pytest

from tests.server.test_backup import done, edgecli

CLASS = """
class {name}(StatefulObject):
    storage = "sql"
    durability = "{durability}"

    async def add(self, text):
        self.ctx.storage.sql.exec("create table if not exists texts (text)")
        self.ctx.storage.sql.exec("insert into texts values (?)", text)
        await self.ctx.storage.put("count", await self.ctx.storage.get("count", default=0) + 1)
        return await self.ctx.storage.get("count")

    async def look(self):
        (row,) = self.ctx.storage.sql.exec("select count(*) from texts").raw()
        return [await self.ctx.storage.get("count"), row[0]]

    async def mark(self):
        return await self.ctx.storage.get_current_bookmark()
"""
CLASSES = "from edgestead import StatefulObject\n" + "".join(
    CLASS.format(name=name, durability=durability)
    for name, durability in (("Counted", "log"), ("Alone", "sqlite"))
)
NAMES = tuple(f"{kind}/o{number}" for kind in ("Counted", "Alone") for number in range(6))


@pytest.fixture
def flags(tmp_path, patience):
    (tmp_path / "classes.py").write_text(CLASSES)
    return ("--objects", str(tmp_path / "classes.py"), *patience)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_acknowledged_call_is_in_a_backup_made_under_load(new_server, flags, tmp_path, workers):
    server = new_server(*flags, "--objects-workers", str(workers)).start()
    acknowledged, stop = Counter(), threading.Event()

    def call():
        number = 0
        while not stop.is_set():
            name = NAMES[number % len(NAMES)]
            answer = server.call_object(f"{name}/add", "x" * (number % 5_000))
            assert answer.status == 200, answer
            acknowledged[name] += 1
            number += 1

    caller = threading.Thread(target=call)
    caller.start()
    try:
        server.wait_until(
            lambda: not caller.is_alive() or min(acknowledged[name] for name in NAMES) >= 3, 300
        )
        before = Counter(acknowledged)
        done("backup", tmp_path / "backup", "--data-dir", server.data_dir)
    finally:
        stop.set()
        caller.join()
    assert "is whole" in done("verify", tmp_path / "backup")
    after = Counter(acknowledged)
    server.stop()

    again = new_server(*flags, "--objects-workers", str(workers), name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()
    for name in NAMES:
        count, rows = again.call_object(f"{name}/look").result
        assert count == rows, "a call is there whole or not at all"
        assert before[name] <= count <= after[name] + 1
        assert again.call_object(f"{name}/add", "more").result == count + 1
    assert list((server.data_dir / "objects").rglob("backup-*")) == []


def test_a_backup_of_an_idle_server_takes_little_room_and_is_whole_again(new_server, flags, tmp_path):
    server = new_server(*flags).start()
    assert server.call_object("Counted/o1/add", "x").status == 200
    done("backup", tmp_path / "running", "--data-dir", server.data_dir)
    server.stop()
    done("backup", tmp_path / "resting", "--data-dir", server.data_dir)

    for copy in (tmp_path / "running", tmp_path / "resting"):
        files = [path for path in copy.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) > 64 << 20  # a segment of the log is in it
        assert sum(path.stat().st_blocks for path in files) * 512 < 4 << 20
        assert [str(path) for path in copy.rglob("*") if path.stat().st_mode & 0o077] == []
        done("verify", copy)

    done("restore", tmp_path / "running", "--data-dir", tmp_path / "restored")
    for segment in (tmp_path / "running").rglob("segment-*"):
        restored = tmp_path / "restored" / segment.relative_to(tmp_path / "running")
        assert restored.stat().st_blocks * 512 >= restored.stat().st_size == segment.stat().st_size


def test_a_bookmark_of_a_commit_that_the_backup_does_not_have_is_refused(new_server, flags, tmp_path):
    server = new_server(*flags).start()
    server.call_object("Counted/one/add", "first")
    kept = server.call_object("Counted/one/mark").result
    done("backup", tmp_path / "backup", "--data-dir", server.data_dir)
    server.call_object("Counted/one/add", "second")
    lost = server.call_object("Counted/one/mark").result
    server.stop()

    again = new_server(*flags, name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()
    again.call_object("Counted/one/add", "another second")

    assert _restore(again, lost) == 422
    assert _restore(again, kept) == 200
    assert again.call_object("Counted/one/look").result == [1, 1]


def _restore(server, bookmark):
    path = "/operate/objects/Counted/one/restore"
    return server._ask(server.ready["objects"], "POST", path, {"bookmark": bookmark}, None).status


def test_a_backup_of_a_resting_server_has_its_objects(new_server, flags, tmp_path):
    server = new_server(*flags).start()
    for name in NAMES:
        server.call_object(f"{name}/add", "x")
    server.stop()
    done("backup", tmp_path / "backup", "--data-dir", server.data_dir)

    again = new_server(*flags, name="again")
    done("restore", tmp_path / "backup", "--data-dir", again.data_dir)
    again.start()

    assert [again.call_object(f"{name}/look").result for name in NAMES] == [[1, 1]] * len(NAMES)


def test_a_damaged_log_is_told(new_server, flags, tmp_path):
    server = new_server(*flags).start()
    for _ in range(20):
        server.call_object("Counted/one/add", "x" * 100)
    done("backup", tmp_path / "backup", "--data-dir", server.data_dir)
    (segment,) = (
        path for path in (tmp_path / "backup").rglob("segment-*.log") if b"x" * 100 in path.read_bytes()
    )
    octets = bytearray(segment.read_bytes())
    octets[octets.index(b"x" * 100)] ^= 0xFF
    segment.write_bytes(octets)

    told = edgecli("verify", tmp_path / "backup", "--json")

    assert told.returncode == 1
    assert any(segment.name in fault["words"] for fault in json.loads(told.stdout))


def test_only_operators_may_have_logs_copied(new_server, flags):
    server = new_server(*flags, name="guarded").start()

    refused = server._ask(server.ready["objects"], "POST", "/operate/backup", None, "x" * 40)

    assert refused.status in (401, 403)
    assert os.listdir(server.data_dir / "objects" / "1" / "0" / "spool") == []
