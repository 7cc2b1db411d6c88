"""A disk that fails at any step: the caller hears of it, and nothing half-done stays."""

import errno
import os
import time
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import pytest

from edgestead.model.refusals import DiskFull, Unavailable
from edgestead.sqlite import blobs, kv
from edgestead.sqlite.kv import BLOBS_NAME, SqliteKvStore
from edgestead.store.kv import BLOB_GRACE_SECONDS, INLINE_BYTES_MAX, Incoming, Pair

NS, OTHER = "a" * 32, "b" * 32
NOW = 1_800_000_000
OLD, NEW = b"o" * (INLINE_BYTES_MAX + 1), b"n" * (2 * INLINE_BYTES_MAX)


class FailingOs:
    """The os module, whose n-th call of the kind that touches the disk fails."""

    def __init__(self, nth, number):
        self.left = nth
        self.number = number

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("open", "write", "fsync"):
            return real

        def call(*arguments):
            self.left -= 1
            if self.left == 0:
                raise OSError(self.number, os.strerror(self.number))
            return real(*arguments)

        return call


def put(store, content):
    incoming = Incoming(store.blobs)
    try:
        incoming.write(content)
        pair = Pair("k", incoming.finish())
    except BaseException:
        incoming.discard()
        raise
    store.put(NS, [pair]).result(60)


def refusal_of(store):
    try:
        put(store, NEW)
    except Unavailable as refusal:
        return refusal
    return None


def value_of(store):
    with store.get(NS, "k", NOW) as value:
        return value.read()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_whichever_call_fails_the_old_value_stays_and_the_next_write_works(tmp_path, monkeypatch, number):
    store = SqliteKvStore(tmp_path)
    put(store, OLD)

    for nth in count(1):
        monkeypatch.setattr(blobs, "os", FailingOs(nth, number))
        refusal = refusal_of(store)
        if refusal is None:
            break
        assert refusal.__cause__.errno == number
        assert type(refusal) is (DiskFull if number == errno.ENOSPC else Unavailable)
        assert value_of(store) == OLD
        assert len(list((tmp_path / BLOBS_NAME).iterdir())) == 1

    assert nth > 3  # open, write and fsync at the least
    assert value_of(store) == NEW
    store.delete(NS, []).result(60)
    store._sweep_blobs(NOW + 10**6 + BLOB_GRACE_SECONDS)
    assert len(list((tmp_path / BLOBS_NAME).iterdir())) == 1
    store.close()


SLICES = {
    "as many as the bytes allow": ([5, 5, 5], [2, 1]),
    "at least one": ([50, 50], [1, 1]),
    "a value in a file takes no time": ([len(OLD)] * 3, [3]),
    "one that is empty neither": ([10, 0, 0, 1], [3, 1]),
}


@pytest.mark.parametrize(("lengths", "slices"), SLICES.values(), ids=SLICES)
def test_rows_are_swept_in_slices_of_bytes(tmp_path, monkeypatch, lengths, slices):
    monkeypatch.setattr(kv, "SWEEP_BYTES", 10)
    store = SqliteKvStore(tmp_path)
    for number, length in enumerate(lengths):
        incoming = Incoming(store.blobs)
        incoming.write(bytes(length))
        store.put(NS, [Pair(f"{number}", incoming.finish(), NOW)]).result(60)

    assert list(iter(lambda: store.sweep(NOW), 0)) == slices
    store.close()


def test_rows_are_swept_in_slices_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(kv, "SWEEP_ROWS", 2)
    store = SqliteKvStore(tmp_path)
    store.put(NS, [Pair(f"{number}", b"", NOW) for number in range(3)]).result(60)
    store.put(OTHER, [Pair(f"{number}", b"") for number in range(3)]).result(60)
    store.drop(OTHER).result(60)

    assert list(iter(lambda: store.sweep(NOW), 0)) == [2, 1, 2, 1]
    store.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_value_whose_file_cannot_be_opened_now_is_unavailable(tmp_path, monkeypatch, number):
    store = SqliteKvStore(tmp_path)
    put(store, OLD)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "open", Mock(side_effect=OSError(number, os.strerror(number))))
        with pytest.raises(Unavailable):
            store.get(NS, "k", NOW)

    assert value_of(store) == OLD
    store.close()


@pytest.fixture
def sweeping(tmp_path):
    """A store, a value on its way into it, and a sweep by a clock that was set forward meanwhile."""
    store = SqliteKvStore(tmp_path)
    incoming = Incoming(store.blobs)
    incoming.write(NEW)
    yield store, incoming, lambda: store.sweep(int(time.time()) + 2 * BLOB_GRACE_SECONDS)
    incoming.discard()
    store.close()


def test_a_value_that_was_taken_for_a_stray_while_it_came_is_refused(sweeping):
    store, incoming, sweep = sweeping
    put(store, OLD)

    assert sweep() == 1
    with pytest.raises(Unavailable):
        store.put(NS, [Pair("k", incoming.finish())]).result(60)

    assert value_of(store) == OLD


def test_a_value_that_is_put_while_it_is_taken_for_a_stray_stays(sweeping, monkeypatch):
    store, incoming, sweep = sweeping
    blob, look = incoming.finish(), store._row

    def look_and_put(sql, parameters):
        found = look(sql, parameters)
        if sql == kv.HAS_BLOB:
            store.put(NS, [Pair("k", blob)]).result(60)
        return found

    monkeypatch.setattr(store, "_row", look_and_put)
    assert sweep() == 0
    monkeypatch.undo()

    assert value_of(store) == NEW


def test_a_blob_never_takes_the_place_of_another_one(tmp_path):
    store = blobs.FileBlobs(tmp_path, random_id=lambda: "same")
    writer = store.create()
    writer.write(b"first")
    blob = writer.finish()

    with pytest.raises(Unavailable):
        store.create()

    reader = store.open(blob)
    assert b"".join(reader) == b"first"
    reader.close()
