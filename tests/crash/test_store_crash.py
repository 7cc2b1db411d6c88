"""A control store whose process, disk or power goes away in the middle of writing."""

import os
import subprocess
import sys
import threading
from concurrent.futures import wait
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import apsw
import pytest

from edgestead.model.refusals import Unavailable
from edgestead.sqlite.connection import open_writer
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.migrate import migrate
from edgestead.sqlite.witness import read_file
from edgestead.store.migrations import Migration, MigrationFailed
from tests.crash.store_state import MIGRATIONS, check_agreement, put, remove
from tests.descriptors import left_open, open_now
from tests.support.faults import FaultyDisk

WRITER = Path(__file__).with_name("store_writer.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
ROUNDS = [
    pytest.param(10, id="short"),
    pytest.param(100, id="long", marks=[pytest.mark.long, pytest.mark.timeout(600)]),
]


def write_until_killed(path, round_, seconds):
    """Returns the acknowledged writes, in the order in which they were said."""
    command = [sys.executable, WRITER, path, str(round_)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        first = process.stdout.readline()
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        said = first + process.stdout.read()
    whole_lines = said[: said.rfind(b"\n") + 1].decode().splitlines()
    return [(key, int(value), int(sequence)) for key, value, sequence in map(str.split, whole_lines)]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_no_acknowledged_write_is_lost_when_the_process_is_killed(tmp_path, rounds):
    path, random = tmp_path / "control.db", Random(1)
    acknowledged = {}
    for round_ in range(1, rounds + 1):
        said = write_until_killed(path, round_, random.uniform(0, 0.4))
        acknowledged.update((key, (value, sequence)) for key, value, sequence in said)
        store = SqliteControlStore(path, MIGRATIONS)
        try:
            rows = check_agreement(store)
            newest = max(sequence for _, sequence in acknowledged.values())
            assert newest <= store.feed.head()
            assert "refused" not in rows
            for key, (value, sequence) in acknowledged.items():
                check_key(store, key, value, sequence, rows)
        finally:
            store.close()


def check_key(store, key, value, sequence, rows):
    """The acknowledged value, or what the same thread wrote after it without hearing of it any more."""
    if rows.get(key, 0) != value:
        later = store.feed.tail(sequence, 1 << 30)
        assert later is not None
        assert any(change.key == key for change in later), f"{key} lost {value}"


def open_on(disk, path):
    return SqliteControlStore(path, MIGRATIONS, vfs=disk.name)


@pytest.fixture
def disk(tmp_path):
    disk = FaultyDisk(tmp_path.name)
    yield disk
    disk.close()


FAULTS = {
    "the disk is full": ("failing_writes", apsw.FullError),
    "a write fails": ("failing_writes", apsw.IOError),
    "a sync fails": ("failing_syncs", apsw.IOError),
}


@pytest.mark.parametrize(("operation", "error"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for some time"])
def test_each_write_that_the_disk_refuses_is_unavailable_and_leaves_nothing(
    tmp_path, disk, operation, error, lasting
):
    disk.error = error
    for fault in count(1):
        store = open_on(disk, tmp_path / f"{fault}.db")
        start = disk.writes if operation == "failing_writes" else disk.syncs
        setattr(disk, operation, range(start + fault, start + fault + (1000 if lasting else 1)))
        outcomes = {}
        for number in range(4):
            pair = [store.write(lambda tx, k=k: put(tx, k, 7)) for k in (f"{number}a", f"{number}b")]
            wait(pair, 300)
            outcomes.update(zip((f"{number}a", f"{number}b"), pair, strict=True))
        disk.heal()
        store.write(lambda tx: put(tx, "after", 7)).result(60)
        kept = {key for key, future in outcomes.items() if future.exception() is None}
        assert all(isinstance(f.exception(), Unavailable) for k, f in outcomes.items() if k not in kept)
        assert set(check_agreement(store)) == {*kept, "after"}
        assert store.feed.head() == len(kept) + 1
        store.close()
        again = SqliteControlStore(tmp_path / f"{fault}.db", MIGRATIONS)
        assert set(check_agreement(again)) == {*kept, "after"}
        again.close()
        if len(kept) == 8:
            break
    assert fault > 4, "the faults have met the writes"


@pytest.mark.parametrize("seed", range(30))
def test_no_acknowledged_write_is_lost_when_the_power_is_cut(tmp_path, disk, seed):
    """The witness has come to the disk, whatever of the database has not: it accuses nobody."""
    path, random, descriptors = tmp_path / "control.db", Random(seed), open_now()
    acknowledged = {}
    for round_ in range(3):
        store = open_on(disk, path)
        disk.cut_power(random.randrange(1, 600))
        with suppress(Unavailable):
            for step in count(1):
                key, value = f"{random.randrange(9)}", round_ * 1000 + step
                store.write(lambda tx, k=key, v=value: put(tx, k, v) if v % 5 else remove(tx, k)).result(60)
                acknowledged[key] = value
        with suppress(apsw.IOError):  # its last checkpoint may have met the cut
            store.close()
        disk.restore(random)
        (tmp_path / "control.db-shm").unlink(missing_ok=True)

        store = SqliteControlStore(path, MIGRATIONS)
        rows = check_agreement(store)
        store.close()
        lost = {k: v for k, v in acknowledged.items() if k != key and rows.get(k, 0) != (v if v % 5 else 0)}
        assert lost == {}
        assert read_file(path).sequence > round_
        acknowledged.pop(key, None)
    assert not left_open(descriptors), "a store that could not be closed well has closed all the same"


STEPS = (
    "CREATE TABLE a (id text PRIMARY KEY); INSERT INTO a VALUES ('1');",
    "ALTER TABLE a ADD COLUMN more text; UPDATE a SET more = 'x'; CREATE TABLE b (id text);",
    "CREATE TABLE c (id text PRIMARY KEY, more text); INSERT INTO c SELECT id, more FROM a; DROP TABLE a;",
)


def upgrade(path, upto, vfs=None):
    db = open_writer(path, vfs=vfs)
    try:
        migrate(db, path, {"tables": [Migration(n, f"step {n}", STEPS[n - 1]) for n in range(1, upto + 1)]})
        return db.execute("SELECT * FROM c").fetchall()
    except apsw.SQLError:
        return None
    finally:
        db.close()


def test_an_upgrade_that_loses_power_at_any_write_goes_on_at_the_next_start(tmp_path, disk):
    for fault in count(1):
        path = tmp_path / str(fault) / "control.db"
        path.parent.mkdir()
        upgrade(path, 1)
        start = disk.writes
        disk.failing_writes = range(start + fault, start + fault + 10_000)
        with suppress(apsw.FullError, MigrationFailed):
            upgrade(path, 3, vfs=disk.name)
        failed = disk.writes >= start + fault
        disk.cut_power()
        disk.restore(Random(fault))
        disk.heal()
        (path.parent / "control.db-shm").unlink(missing_ok=True)

        assert upgrade(path, 3) == [("1", "x")]
        if not failed:
            break
    assert fault > 10, "the faults have met the upgrade"


@pytest.mark.parametrize(("operation", "error"), FAULTS.values(), ids=FAULTS)
def test_a_store_in_trouble_says_so_until_a_probe_succeeds(tmp_path, disk, operation, error):
    store = open_on(disk, tmp_path / "control.db")
    assert store.database.trouble == ""
    disk.error = error
    setattr(disk, operation, range(10**6))

    with pytest.raises(Unavailable):
        store.write(lambda tx: put(tx, "a", 1)).result(60)
    assert store.database.trouble != ""
    store.database.probe()
    assert store.database.trouble != ""
    disk.heal()
    store.database.probe()
    assert store.database.trouble == ""
    store.close()
