"""A folder that is taken away, a disk that refuses, a database that lost what was acknowledged: all told."""

import http.client
import json
import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from edgestead.model.counters import private_page
from edgestead.model.refusals import Unavailable
from edgestead.server.control.storage_watch import FLUSH_ROUNDS, StorageWatch
from edgestead.server.folder import DataFolder
from edgestead.server.space import Space, State
from edgestead.server.verifying import verify
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.sqlite.witness import Noted, Witness, WritesLost, path_of, read_file
from edgestead.store.migrations import Migration
from edgestead.tables import schema
from edgestead.testing.server import START_SECONDS_MAX
from tests.server.test_backup import done, edgecli

NAMES = ("control.db", "kv.db")


class Store:
    def __init__(self):
        self.trouble = ""
        self.lost = self.probes = self.flushes = 0
        self.grew = []

    def lose(self):
        self.lost += 1

    def probe(self):
        self.probes += 1

    def let_journal_grow(self, grow):
        self.grew.append(grow)

    def flush_witness(self):
        self.flushes += 1


@contextmanager
def watched(tmp_path):
    folder = DataFolder(tmp_path / "data")
    stores = {name: Store() for name in NAMES}
    for name in NAMES:
        (folder.path / name).touch()
        (folder.path / f"{name}-wal").touch()
    ended = []
    watch = StorageWatch(
        folder.path, folder.lock_fd, stores, Space(folder.path, 0), private_page(), end=ended.append
    )
    watch.look()
    assert (watch.lost, watch.faults, ended) == ("", (), [])
    yield watch, folder.path, stores, ended
    folder.close()


def replace(path):
    path.rename(path.with_suffix(".old"))  # as a server has it open, its number is not given to another
    path.write_bytes(b"")


TAKEN = {
    "the folder is removed": ("lock", shutil.rmtree),
    "the folder is moved": ("lock", lambda folder: folder.rename(folder.with_name("elsewhere"))),
    "control.db is removed": ("control.db", lambda folder: (folder / "control.db").unlink()),
    "the journal of kv.db is removed": ("kv.db-wal", lambda folder: (folder / "kv.db-wal").unlink()),
    "kv.db is another file": ("kv.db", lambda folder: replace(folder / "kv.db")),
}


@pytest.mark.parametrize(("name", "take"), TAKEN.values(), ids=TAKEN)
def test_a_file_that_is_gone_ends_every_write_and_the_server(tmp_path, name, take):
    with watched(tmp_path) as (watch, folder, stores, ended):
        take(folder)
        watch.look()
        watch.look()

        assert [store.lost for store in stores.values()] == [1, 1]
        assert ended == [watch.lost]
        assert ended[0].endswith(f"was removed or replaced: its {name} is another one")


def test_a_store_that_cannot_be_written_is_asked_until_it_can(tmp_path):
    with watched(tmp_path) as (watch, _, stores, _):
        stores["kv.db"].trouble = "IOError('disk I/O error')"
        watch.look()
        assert watch.faults == (("kv.db", "IOError('disk I/O error')"),)
        assert [store.probes for store in stores.values()] == [0, 1]

        stores["kv.db"].trouble = ""
        watch.look()
        assert (watch.faults, stores["kv.db"].probes) == ((), 1)


def test_witnesses_are_brought_to_the_disk_now_and_then(tmp_path):
    with watched(tmp_path) as (watch, _, stores, _):
        for _ in range(2 * FLUSH_ROUNDS - 1):  # the first look was at the begin
            watch.look()
        assert [store.flushes for store in stores.values()] == [2, 2]


def test_journals_are_short_while_the_disk_is_nearly_full(tmp_path):
    states = iter((State.ENOUGH, State.LOW, State.RESERVE, State.LOW, State.ENOUGH, State.ENOUGH))
    with watched(tmp_path) as (watch, _, stores, _):
        watch._space.look = lambda: next(states)
        for _ in range(6):
            watch.look()
        assert [store.grew for store in stores.values()] == [[False, True], [False, True]]


def test_a_store_whose_file_is_lost_acknowledges_nothing_not_even_what_is_under_way(tmp_path):
    store = SqliteControlStore(tmp_path / "control.db")

    def lose_meanwhile(tx):
        store.database.lose()
        tx.emit("z", "name", "k", b"1")

    with pytest.raises(Unavailable):
        store.write(lose_meanwhile).result(60)
    assert store.feed.head() == 0
    with pytest.raises(Unavailable):
        store.write(lambda tx: tx.rows("SELECT 1"))
    store.close()


def removed_for_good(folder):
    """While processes still make files in it."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "take",
    [
        removed_for_good,
        pytest.param(lambda folder: folder.rename(folder.with_name("away")), marks=pytest.mark.long),
    ],
)
def test_a_server_whose_folder_is_gone_ends_and_says_why(new_server, take):
    server = new_server().start()
    take(server.data_dir)

    assert server.wait() == 1
    assert f"data folder {server.data_dir} was removed or replaced" in server.log.splitlines()[-1]
    assert not server.data_dir.exists()


@pytest.mark.long
def test_control_that_begins_in_another_folder_touches_nothing_there(new_server, patience, freeze):
    server = new_server(*patience).start()
    control = server.children()["control"]
    freeze(control)  # it cannot see what comes
    moved = server.data_dir.rename(server.data_dir.with_name("elsewhere"))
    server.data_dir.mkdir()
    os.kill(control, signal.SIGKILL)

    assert server.wait() == 1
    assert f"data folder {server.data_dir} was removed or replaced" in server.log.splitlines()[-1]
    assert os.listdir(server.data_dir) == []
    assert (moved / "control.db").exists()


def emit(store, count=1):
    for number in range(count):
        store.write(lambda tx, number=number: tx.emit("z", "name", f"k{number}", b"1")).result(60)


def test_each_commit_is_noted_before_it_is_acknowledged_and_refusals_are_not(tmp_path):
    database = tmp_path / "control.db"
    notes = (Migration(1, "notes", "CREATE TABLE notes (id integer)"),)
    store = SqliteControlStore(database, notes)

    def refused(tx):
        tx.emit("z", "name", "k", b"1")
        raise ValueError("refused")

    for number in range(1, 4):
        emit(store)
        assert read_file(database) == Noted(number - 1, number), "the feed's sequence counts it"
        store.write(lambda tx, id_=number: tx.run("INSERT INTO notes VALUES (?)", (id_,))).result(60)
        assert read_file(database) == Noted(number, number), "it told the feed nothing"
        store.read(lambda reader: reader.rows("SELECT 1"))
        store.write(lambda tx: tx.rows("SELECT 1")).result(60)
    assert read_file(database) == Noted(3, 3)
    with pytest.raises(ValueError, match="refused"):
        store.write(refused).result(60)
    assert read_file(database) == Noted(3, 3)
    store.close()
    SqliteControlStore(database, notes).close()


OPEN = {
    "control.db": SqliteControlStore,
    "kv.db": lambda path: SqliteKvStore(path.parent),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_database_that_counts_less_than_was_acknowledged_is_not_opened(tmp_path, name):
    path = tmp_path / name
    OPEN[name](path).close()
    witness = Witness(path)
    witness.note(Noted(1_000, 0))
    witness.close()

    with pytest.raises(
        WritesLost, match=rf"commit 0, and 1000 were acknowledged: 1000 are lost.*{name}.witness away"
    ):
        OPEN[name](path)

    path_of(path).unlink()
    OPEN[name](path).close()


def test_one_lost_commit_is_enough_and_none_is_not(tmp_path):
    path = tmp_path / "kv.db"
    for noted in (0, 1):
        SqliteKvStore(tmp_path).close()
        witness = Witness(path)
        witness.note(Noted(noted, 0))
        witness.close()

    with pytest.raises(WritesLost, match="1 is lost"):
        SqliteKvStore(tmp_path)


def damage(path):
    """One octet of the frame in the middle of a write-ahead log."""
    with path.open("r+b") as file:
        frames = (path.stat().st_size - 32) // (24 + 4_096)
        file.seek(32 + frames // 2 * (24 + 4_096) + 100)
        octet = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([octet ^ 0xFF]))


def test_a_damaged_log_is_told_when_the_database_is_opened_and_examined(tmp_path):
    store = SqliteControlStore(tmp_path / "control.db", schema.MIGRATIONS)
    emit(store, 30)
    shutil.copytree(tmp_path, killed := tmp_path / "killed")  # what a kill would leave
    store.close()
    assert lost_writes(killed) == []
    damage(killed / "control.db-wal")

    assert [words for words in lost_writes(killed) if " are lost, " in words] != []
    with pytest.raises(WritesLost):
        SqliteControlStore(killed / "control.db", schema.MIGRATIONS)


def lost_writes(folder):
    found = verify(folder, lambda _: iter(()))
    return [fault.words for fault in found if "acknowledged" in fault.words]


@pytest.mark.long
def test_writes_that_a_damaged_log_lost_are_told_at_the_start_and_by_verify(new_server):
    server = new_server().start()
    zone_id = server.make_zone("example.com")
    for number in range(30):
        assert server.make_record(zone_id, "A", f"r{number}", "192.0.2.1").status == 200
    server.kill()
    done("verify", server.data_dir)
    damage(server.data_dir / "control.db-wal")

    server.launch()
    assert server.wait() == 1
    assert "were acknowledged" in server.log.splitlines()[-1]
    told = edgecli("verify", server.data_dir, "--json")
    assert told.returncode == 1
    assert any(
        fault["where"] == "control.db" and "are lost" in fault["words"] for fault in json.loads(told.stdout)
    )

    (server.data_dir / "control.db.witness").rename(server.data_dir.with_name("witness"))
    server.start()
    left = server.call("GET", f"/zones/{zone_id}/dns_records?per_page=100").result
    assert 0 < len(left) < 30


@pytest.mark.long
def test_control_that_was_killed_under_load_is_accused_of_nothing(new_server):
    """Readiness is not asked: it holds against a process that it died three times within a minute."""
    server = new_server().start()
    zone_id = server.make_zone("example.com")
    ended = threading.Event()
    made = [0] * 4

    def write(worker):
        while not ended.is_set():
            with suppress(OSError, http.client.HTTPException):
                name = f"r{worker}-{made[worker]}"
                made[worker] += server.make_record(zone_id, "A", name, "192.0.2.1").status == 200

    with ThreadPoolExecutor(len(made)) as threads:
        writing = [threads.submit(write, worker) for worker in range(len(made))]
        for _ in range(3):
            before, control = sum(made), server.children()["control"]
            server.wait_until(lambda before=before: sum(made) > before + 20, START_SECONDS_MAX)
            os.kill(control, signal.SIGKILL)
            server.wait_for_life("control", control)
        before = sum(made)
        server.wait_until(lambda: sum(made) > before, START_SECONDS_MAX)
        ended.set()
        assert [writer.exception() for writer in writing] == [None] * 4
    assert "acknowledged" not in server.log
    answer = server.call("GET", f"/zones/{zone_id}/dns_records?per_page=1")
    assert answer.body["result_info"]["total_count"] >= sum(made)
