"""A database that owns its next blocks: what commits when the disk has no free one, and what is refused."""

import os
import random
from contextlib import closing, contextmanager

import pytest

from edgestead.model.refusals import DiskFull
from edgestead.sqlite.ahead import CHUNK_BYTES_MAX, DATABASE_AHEAD_BYTES, JOURNAL_AHEAD_BYTES, _chunks
from edgestead.sqlite.connection import PAGE_BYTES
from edgestead.sqlite.control import SqliteControlStore
from tests.server.small_disk import fill, small_disk, why_not

DISK_MIB = 32
SMALL, LARGE, LARGEST = 900, 9_000, 1_000_000
FEW, MANY = 500, 5_000
WITHOUT_DISK = why_not()
needs_disk = pytest.mark.skipif(bool(WITHOUT_DISK), reason=WITHOUT_DISK)


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", DISK_MIB) as folder:
        yield folder


@contextmanager
def opened(folder, *, ahead=True):
    with closing(SqliteControlStore(folder / "control.db", ahead=ahead)) as store:
        yield store


def emit(store, key, length, *, times=1):
    """Returns the error, or None, when the blocks of the next write are allocated."""

    def write(tx):
        for number in range(times):
            tx.emit("zone", "name", f"{key}-{number}", random.Random(key).randbytes(length))

    error = store.write(write).exception(60)
    store.write(lambda tx: None).result(60)  # it begins when the one before has left nothing to do
    return error


def drop(store):
    return store.write(lambda tx: tx.drop_scope("zone")).exception(60)


def allocated(path):
    return path.stat().st_blocks * 512


@needs_disk
@pytest.mark.parametrize("ahead", [True, False])
def test_small_writes_commit_on_a_disk_without_a_free_block(disk, ahead):
    with opened(disk, ahead=ahead) as store:
        assert emit(store, "before", LARGE) is None
        fill(disk)
        errors = []
        for number in range(FEW):
            errors.append(emit(store, f"after{number}", SMALL))
            fill(disk)

        assert (errors.count(None) == FEW) is ahead
        assert {type(error) for error in errors if error} <= {DiskFull}


@needs_disk
def test_what_needs_more_is_refused_whole_and_smaller_writes_go_on(disk):
    with opened(disk) as store:
        fill(disk)
        head = store.feed.head()

        assert isinstance(emit(store, "large", LARGEST, times=3), DiskFull)
        assert store.feed.head() == head
        assert not store.database.is_short
        assert emit(store, "small", SMALL) is None


@needs_disk
def test_what_is_used_up_is_short_until_there_are_blocks_again(disk):
    with opened(disk) as store:
        left = fill(disk)
        assert not store.database.is_short
        for number in range(MANY):
            if error := emit(store, f"small{number}", SMALL):
                break

        assert number > FEW
        assert isinstance(error, DiskFull)
        assert store.database.is_short
        assert drop(store) is None  # it frees pages, which are written over
        left.unlink()
        assert emit(store, "small", SMALL) is None
        assert not store.database.is_short


@needs_disk
@pytest.mark.parametrize("grows", [True, False])
def test_both_files_are_ahead_after_every_commit_and_over_an_opening(disk, grows):
    path, journal = disk / "control.db", disk / "control.db-wal"
    for life in range(2):
        with opened(disk) as store:
            store.database.let_journal_grow(grows)
            for number in range(40):
                assert emit(store, f"{life}-{number}", 90_000) is None
                pages = store.read(lambda reader: reader.row("PRAGMA page_count")[0])
                assert allocated(path) - pages * PAGE_BYTES >= DATABASE_AHEAD_BYTES
                assert allocated(journal) >= JOURNAL_AHEAD_BYTES
        assert allocated(path) - pages * PAGE_BYTES >= DATABASE_AHEAD_BYTES


@needs_disk
def test_what_a_killed_process_had_allocated_is_there_for_the_next(disk):
    if not (pid := os.fork()):
        try:
            store = SqliteControlStore(disk / "control.db", ahead=True)
            os._exit(int(emit(store, "small", SMALL) is not None))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    fill(disk)

    with opened(disk) as store:
        assert not store.database.is_short
        assert emit(store, "another", SMALL) is None


@pytest.mark.parametrize(
    "length", [1, 3 << 20, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX + 1, 7 * CHUNK_BYTES_MAX - 1]
)
def test_chunks_of_a_file_are_whole_pages_and_no_larger_than_sqlite_can_have_them(length):
    chunk, chunks = _chunks(length)

    assert chunk % PAGE_BYTES == 0
    assert chunk <= CHUNK_BYTES_MAX
    assert length <= chunk * chunks < length + chunks * PAGE_BYTES
