"""What the server asks of both stores while they run: probes, room, witnesses, and files that are gone."""

import os
import random

import apsw
import pytest

from edgestead.model.refusals import DiskFull, Unavailable
from edgestead.sqlite.connection import PAGE_BYTES, SPARING_PAGES
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.kv import SqliteKvStore
from edgestead.sqlite.witness import path_of, read_file
from edgestead.store.kv import Pair

NS = "a" * 32
NOW = 1_800_000_000


class Control:
    def __init__(self, folder):
        self.path = folder / "control.db"
        self.store = SqliteControlStore(self.path)

    def write(self, doc=b"1"):
        """The future of one write."""
        return self.store.write(lambda tx: tx.emit("z", "name", "a", doc))

    def written(self):
        return self.store.feed.head() > 0


class Values:
    def __init__(self, folder):
        self.path = folder / "kv.db"
        self.store = SqliteKvStore(folder)

    def write(self, value=b"1"):
        return self.store.put(NS, [Pair("k", value)])

    def written(self):
        return self.store.get(NS, "k", NOW) is not None


@pytest.fixture(params=[Control, Values])
def kept(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.store.close()


FAILURES = {
    "a full disk": (apsw.FullError("database or disk is full"), DiskFull),
    "a broken one": (apsw.IOError("disk I/O error"), Unavailable),
}


@pytest.mark.parametrize(("error", "refusal"), FAILURES.values(), ids=FAILURES)
def test_a_trouble_is_told_until_a_probe_finds_it_over(kept, monkeypatch, error, refusal):
    def fail():
        raise error

    assert kept.store.database.trouble == ""
    with monkeypatch.context() as broken:
        broken.setattr(kept.store.database.writer, "_commit", fail)
        assert type(kept.write().exception(60)) is refusal
        trouble = kept.store.database.trouble
        kept.store.database.probe()
        assert kept.store.database.trouble == trouble != ""

    kept.store.database.probe()

    assert kept.store.database.trouble == ""
    assert not kept.written()
    kept.write().result(60)
    assert kept.written()


def test_writes_that_fail_one_after_the_other_have_one_line_in_the_log(kept, monkeypatch, caplog):
    def fail():
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(kept.store.database.writer, "_commit", fail)
    for _ in range(20):
        assert kept.write().exception(60) is not None

    assert caplog.text.count("could not be committed") == 1
    assert "(1 since the last line)" in caplog.text


def test_a_probe_reaches_the_disk_and_changes_nothing(kept):
    before = read_file(kept.path).commits

    kept.store.database.probe()

    assert read_file(kept.path).commits == before + 1
    assert not kept.written()


def test_a_store_that_lost_its_files_refuses_writes_and_goes_on_reading(kept):
    kept.write().result(60)

    kept.store.database.lose()
    kept.store.database.probe()  # never raises

    with pytest.raises(Unavailable):
        kept.write()
    assert kept.written()


def test_a_witness_is_flushed_when_that_is_asked_for(kept, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    kept.write().result(60)
    assert synced == []

    kept.store.database.flush_witness()
    kept.store.database.flush_witness()

    assert synced == [str(path_of(kept.path))]


def test_a_journal_that_may_not_grow_gives_its_room_back(kept):
    journal, chance = kept.path.with_name(f"{kept.path.name}-wal"), random.Random(1)

    def size_after_much():
        for _ in range(20):
            kept.write(chance.randbytes(200_000)).result(60)
        return journal.stat().st_size

    grown = size_after_much()
    kept.store.database.let_journal_grow(False)
    cut = size_after_much()
    kept.store.database.let_journal_grow(True)

    assert cut < 2 * SPARING_PAGES * PAGE_BYTES < grown
    assert size_after_much() > 2 * SPARING_PAGES * PAGE_BYTES
