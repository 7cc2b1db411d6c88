"""A copy of the key-value store with its files, and what is found wrong with one."""

from contextlib import closing

import pytest

from edgestead.sqlite import kv_copies
from edgestead.sqlite.copies import copy_file
from edgestead.sqlite.kv import BLOBS_NAME, DATABASE_NAME, SqliteKvStore
from edgestead.sqlite.kv_copies import blob_faults, bytes_of_store, copy_store
from edgestead.store.kv import INLINE_BYTES_MAX, Allowance, Entry, Incoming, Pair

NS = "a" * 32
NOW = 1_800_000_000
LARGE = b"x" * (INLINE_BYTES_MAX + 1)


@pytest.fixture
def source(tmp_path):
    """A store of two values in files and one in its row."""
    (folder := tmp_path / "source").mkdir()
    with closing(SqliteKvStore(folder)) as store:
        for key in ("a", "b"):
            incoming = Incoming(store.blobs)
            incoming.write(LARGE)
            store.put(NS, [Pair(key, incoming.finish())]).result(60)
        store.put(NS, [Pair("small", b"v")]).result(60)
    return folder


@pytest.fixture
def target(tmp_path):
    (folder := tmp_path / "target").mkdir()
    return folder


def files(folder):
    return sorted((folder / BLOBS_NAME).iterdir())


def values(folder):
    with closing(SqliteKvStore(folder)) as store:
        found = {}
        for entry in store.page(NS, now_s=NOW, limit=9).entries:
            with store.get(NS, entry.key, NOW) as value:
                found[entry.key] = value.read()
        return found


def test_a_copy_has_every_value_and_tells_how_far_it_is(source, target):
    copied = []

    copy_store(source, target, copied.append)

    assert values(target) == {"a": LARGE, "b": LARGE, "small": b"v"}
    assert sum(copied) == bytes_of_store(source) == 2 * len(LARGE) + (source / DATABASE_NAME).stat().st_size
    assert (target / BLOBS_NAME).stat().st_mode & 0o777 == 0o700
    assert list(blob_faults(target)) == []


def test_a_value_whose_file_went_is_not_in_the_copy(source, target):
    files(source)[0].unlink()

    copy_store(source, target, lambda _: None)

    assert len(files(target)) == 1
    assert len(values(target)) == 2
    assert list(blob_faults(target)) == []


@pytest.mark.parametrize(
    "content", [b"in its row", b"y" * len(LARGE)], ids=["by a small one", "by a large one"]
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_value_that_is_replaced_meanwhile_is_in_the_copy(source, target, monkeypatch, content, times):
    """Whoever replaces a value again and again had it all the time."""
    turns = iter(range(times))

    with closing(SqliteKvStore(source)) as store:

        def replace_and_copy(*paths):
            if next(turns, None) is not None:
                incoming = Incoming(store.blobs)
                incoming.write(content)
                store.put(NS, [Pair("a", incoming.finish(), NOW + 9, b"{}")]).result(60)
                store.delete(NS, ["b"]).result(60)
                store.delete(NS, []).result(60)  # behind both: their files are gone
            copy_file(*paths)

        monkeypatch.setattr(kv_copies, "copy_file", replace_and_copy)
        copy_store(source, target, lambda _: None)

    assert values(target) == {"a": content, "small": b"v"}
    with closing(SqliteKvStore(target)) as store:
        assert store.entry(NS, "a", NOW) == Entry("a", NOW + 9, b"{}")
    assert list(blob_faults(target)) == []


def test_a_value_that_is_not_in_the_copy_takes_nothing_of_its_quota(source, target):
    quota = Allowance(namespace_bytes=len(LARGE) + 1_000)
    with closing(SqliteKvStore(source, allowance=lambda _: quota)) as store:
        store.delete(NS, ["b"]).result(60)
        store.put(NS, [Pair("small", b"counted")]).result(60)
    for file in files(source):
        file.unlink()

    copy_store(source, target, lambda _: None)

    assert values(target) == {"small": b"counted"}
    with closing(SqliteKvStore(target, allowance=lambda _: quota)) as store:
        store.put(NS, [Pair("more", b"x" * 2_000)]).result(60)


FAULTS = {
    "missing": (lambda file: file.unlink(), "is missing"),
    "other bytes": (lambda file: file.write_bytes(b"y" * len(LARGE)), "does not have the bytes"),
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "cannot be read: Is a directory"),
}


@pytest.mark.parametrize(("harm", "words"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_is_not_what_was_written_is_a_fault(source, harm, words):
    harmed = files(source)[0]
    harm(harmed)

    (fault,) = blob_faults(source)

    assert fault.startswith(f"{BLOBS_NAME}/{harmed.name} {words}")


def test_a_value_that_is_deleted_during_the_examination_is_no_fault(source):
    faults = blob_faults(source)
    for file in files(source):
        file.unlink()
    assert "is missing" in next(faults), "its row is there"
    with closing(SqliteKvStore(source)) as store:
        store.delete(NS, ["a", "b"]).result(60)

    assert list(faults) == []
