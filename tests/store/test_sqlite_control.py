"""What the SQLite store of control promises beyond the contract: its limits, its tail, lost files."""

from concurrent.futures import wait

import apsw
import pytest

from edgestead.model.refusals import Unavailable
from edgestead.sqlite import outbox, readers, writer
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.witness import path_of
from edgestead.store.changes import LIVES_MAX
from tests.store.contract.conftest import SqliteStores
from tests.store.contract.test_change_feed import emit
from tests.store.contract.test_control_store import Gate, count, note


@pytest.fixture
def stores(tmp_path):
    made = SqliteStores(tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stores) -> SqliteControlStore:
    return stores.open()


def test_a_full_queue_refuses_and_loses_nothing(store, monkeypatch):
    monkeypatch.setattr(writer, "WRITES_QUEUED_MAX", 3)
    gate = Gate(store)
    queued = [store.write(note(str(i))) for i in range(3)]

    with pytest.raises(Unavailable):
        store.write(note("one too many"))
    gate.leave.set()
    wait(queued, 5)

    assert count(store) == 3


def test_a_long_queue_is_cut_into_groups(store, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_WRITES_MAX", 4)
    groups = []
    gate = Gate(store)
    store.on_group(lambda changes: groups.append(len(changes)))
    futures = [store.write(lambda tx, i=i: tx.emit("z", "name", str(i), b"")) for i in range(10)]
    gate.leave.set()
    wait(futures, 5)
    store.close()

    assert groups == [0, 4, 4, 2]


def test_slow_functions_end_their_group_early(store, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_MS_MAX", 0)
    groups = []
    gate = Gate(store)
    store.on_group(lambda changes: groups.append([c.key for c in changes]))
    futures = [store.write(lambda tx, i=i: tx.emit("z", "name", str(i), b"")) for i in range(3)]
    gate.leave.set()
    wait(futures, 5)
    store.close()

    assert groups == [[], ["0"], ["1"], ["2"]]


def test_a_store_that_lost_its_files_acknowledges_nothing_more_nor_what_waits(stores):
    store = stores.open()
    gate = Gate(store)
    waiting = store.write(note("waiting"))

    store.database.lose()
    gate.leave.set()

    assert isinstance(waiting.exception(60), Unavailable)
    with pytest.raises(Unavailable):
        store.write(note("late"))
    store.close()
    assert count(stores.open()) == 0


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("emitted", [outbox.TRIM_ROWS, 200])
def test_a_trimmed_tail_continues_its_numbers_after_reopening(stores, limit, emitted):
    store = stores.open(tail_rows_max=limit, tail_bytes_max=limit)
    emit(store, *[("z", "name", str(i), b"") for i in range(emitted)])
    store.close()
    again = stores.open(tail_rows_max=limit, tail_bytes_max=limit)

    emit(again, ("z", "name", "next", b""))

    assert again.feed.head() == emitted + 1


def test_a_database_put_back_from_a_copy_is_another_history_from_there_on(stores):
    store = stores.open()
    emit(store, ("z", "name", "a", b"1"))
    copied = store.feed.feed_id
    store.close()
    copy = stores.path.read_bytes()
    store = stores.open()
    emit(store, ("z", "name", "a", b"2"))
    abandoned = store.feed.feed_id
    store.close()

    stores.path.write_bytes(copy)
    path_of(stores.path).unlink()  # as the refusal says: to go on without what came after the copy
    store = stores.open()
    emit(store, ("z", "name", "a", b"other"), ("z", "name", "a", b"than before"))

    assert store.feed.includes(copied, 1)
    assert not store.feed.includes(copied, 2)
    assert not store.feed.includes(abandoned, 1)


def test_what_is_remembered_of_openings_does_not_grow(stores):
    for _ in range(LIVES_MAX + 3):
        stores.open().close()

    lives = stores.open().read(lambda reader: reader.rows(outbox.LIST_LIVES))

    assert len(lives) == LIVES_MAX


def test_the_tail_is_cut_in_portions_that_leave_what_was_promised(stores):
    kept_rows = 10
    store, kept = stores.open(tail_rows_max=kept_rows), []
    for number in range(3 * outbox.TRIM_ROWS):
        emit(store, ("z", "name", str(number), b""))
        kept.append(store.read(lambda reader: reader.row("SELECT count(*) FROM outbox"))[0])

    assert max(kept) == kept_rows + outbox.TRIM_ROWS - 1
    assert min(kept[kept_rows:]) == kept_rows


class FailingToRead(apsw.VFS):
    """A disk that reads nothing while it `fails`."""

    def __init__(self, name):
        super().__init__(name, "")
        self.fails = False

    def xOpen(self, name, flags):
        return FileThatFailsToRead(self, name, flags)


class FileThatFailsToRead(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        super().__init__("", name, flags)
        self._disk = disk

    def xRead(self, amount, offset):
        if self._disk.fails:
            raise apsw.IOError
        return super().xRead(amount, offset)


def test_a_read_that_the_disk_fails_is_unavailable_and_the_next_one_is_not(store, monkeypatch, tmp_path):
    disk = FailingToRead(tmp_path.name)
    store.write(note("kept")).result(60)

    def opened(path):
        return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=tmp_path.name)

    monkeypatch.setattr(readers, "open_reader", opened)
    assert count(store) == 1
    store.write(note("not read yet", "x" * 100_000)).result(60)

    disk.fails = True
    with pytest.raises(Unavailable):
        store.read(lambda reader: reader.rows("SELECT * FROM notes"))
    disk.fails = False

    assert count(store) == 2
    store.close()
    disk.unregister()
