"""What a witness says of the commits that it was told, torn, unsynced or refused by a full disk."""

import errno
import os
import struct
import zlib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.sqlite.witness import Noted, Witness, WritesLost, path_of, read_file
from edgestead.store.kv import Pair
from edgestead.store.migrations import Migration
from tests.descriptors import left_open, open_now
from tests.support.faults import FaultyDisk


def test_a_witness_says_the_newest_of_what_it_was_told_even_when_half_of_it_is_torn(tmp_path):
    database = tmp_path / "x.db"
    assert read_file(database) == Noted(0, 0)
    witness = Witness(database)
    for number in (1, 2, 3):
        witness.note(Noted(number, 10 * number))
    witness.close()
    assert read_file(database) == Noted(3, 30)

    content = bytearray(path_of(database).read_bytes())
    content[2_048 + 9] ^= 1  # where odd counts go
    path_of(database).write_bytes(content)

    assert read_file(database) == Noted(2, 20)
    path_of(database).write_bytes(b"")
    assert read_file(database) == Noted(0, 0)


def test_a_witness_is_synced_once_for_what_was_noted_since(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    witness = Witness(tmp_path / "x.db")
    witness.flush()
    assert synced == []
    for number in (1, 2):
        witness.note(Noted(number, 0))
    witness.flush()
    witness.flush()
    assert len(synced) == 1
    witness.close()


def test_a_store_of_tests_that_is_not_synced_waits_for_no_disk(tmp_path, monkeypatch):
    SqliteControlStore(tmp_path / "control.db", NOTES).close()
    waited = []
    monkeypatch.setattr(os, "fdatasync", waited.append)
    monkeypatch.setattr(os, "fsync", waited.append)
    with closing(SqliteControlStore(tmp_path / "control.db", NOTES, synced=False)) as store:
        store.write(lambda tx: tx.run("INSERT INTO notes VALUES (1)")).result()
        store.database.flush_witness()
    assert waited == []


def test_a_witness_that_cannot_be_told_the_newest_says_nothing_rather_than_something_older(
    tmp_path, monkeypatch
):
    database = tmp_path / "x.db"
    witness = Witness(database)
    witness.note(Noted(1, 10))

    def refuse(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse)
        witness.note(Noted(2, 20))
    assert read_file(database) == Noted(0, 0)

    witness.note(Noted(3, 30))
    witness.close()
    assert read_file(database) == Noted(3, 30)


OWNERS = {"root serves somebody": (0, [(65_534, 65_533)]), "somebody serves himself": (1_000, [])}


@pytest.mark.parametrize(("user", "given"), OWNERS.values(), ids=OWNERS)
def test_a_witness_that_root_makes_belongs_to_the_owner_of_the_folder(tmp_path, monkeypatch, user, given):
    owners = []
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    monkeypatch.setattr(Path, "stat", lambda _: SimpleNamespace(st_uid=65_534, st_gid=65_533))

    Witness(tmp_path / "x.db").close()

    assert owners == given


@pytest.mark.parametrize("magic", [b"witness1", b"witness2"])
def test_a_record_of_another_kind_says_nothing(tmp_path, magic):
    database = tmp_path / "x.db"
    record = struct.pack("<8sQQ", magic, 7, 70)
    path_of(database).write_bytes(record + struct.pack("<I", zlib.crc32(record)))

    assert read_file(database) == (Noted(7, 70) if magic == b"witness1" else Noted(0, 0))


def write_control(folder):
    with closing(SqliteControlStore(folder / "control.db")) as store:
        store.write(lambda tx: tx.emit("z", "name", "a", b"1")).result(60)


def write_control_silently(folder):
    """A commit that tells the feed nothing."""
    with closing(SqliteControlStore(folder / "control.db", NOTES)) as store:
        store.write(lambda tx: tx.run("UPDATE notes SET body = body + 1")).result(60)


def write_values(folder):
    with closing(SqliteKvStore(folder)) as store:
        store.put("a" * 32, [Pair("k", b"v")]).result(60)


NOTES = (Migration(1, "notes", "CREATE TABLE notes (body); INSERT INTO notes VALUES (0);"),)
LOSING = [
    ("control.db", write_control, "change"),
    ("control.db", write_control_silently, "commit"),
    ("kv.db", write_values, "commit"),
]


@pytest.mark.parametrize(("name", "write", "unit"), LOSING)
def test_a_database_that_lost_acknowledged_writes_is_not_opened(tmp_path, name, write, unit):
    write(tmp_path)
    older = (tmp_path / name).read_bytes()
    write(tmp_path)
    (tmp_path / name).write_bytes(older)
    open_before = open_now()

    with pytest.raises(WritesLost, match=f"{name} ends at {unit} 1, and 2 were acknowledged: 1 is lost"):
        write(tmp_path)

    assert not left_open(open_before)
    path_of(tmp_path / name).unlink()
    write(tmp_path)


def test_a_commit_that_the_disk_refused_is_not_counted_as_acknowledged(tmp_path):
    disk = FaultyDisk(tmp_path.name)
    path = tmp_path / "control.db"
    with closing(SqliteControlStore(path, NOTES, vfs=disk.name)) as store:
        disk.failing_writes = range(disk.writes + 1, disk.writes + 1_000)
        with pytest.raises(Unavailable):
            store.write(lambda tx: tx.run("UPDATE notes SET body = body + 1")).result(60)
        disk.heal()
        store.write(lambda tx: tx.emit("z", "name", "a", b"1")).result(60)
    disk.close()

    assert read_file(path) == Noted(0, 1)
    write_control_silently(tmp_path)


def test_a_store_that_cannot_begin_holds_no_file_open(tmp_path):
    before = open_now()

    def refuse():
        raise OSError(errno.EIO, "no random numbers")

    with pytest.raises(OSError, match="random"):
        SqliteControlStore(tmp_path / "control.db", NOTES, new_feed_id=refuse)

    assert not left_open(before)


def test_a_witness_that_cannot_be_made_holds_no_file_open(tmp_path, monkeypatch):
    before = open_now()

    def refuse(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="No space"):
        Witness(tmp_path / "x.db")

    assert not left_open(before)
