"""A disk that fails at any step: the caller hears of it, and nothing half-done stays."""

import errno
import os
from itertools import count

import pytest

from edgestead.model.errors import Unavailable
from edgestead.store.kv import BLOB_GRACE_SECONDS, INLINE_BYTES_MAX, Pair
from edgestead.store.sqlite import blobs
from edgestead.store.sqlite.kv import BLOBS_NAME, SqliteKvStore

NS = "a" * 32
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
    incoming = store.incoming()
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
        assert value_of(store) == OLD
        assert len(list((tmp_path / BLOBS_NAME).iterdir())) == 1

    assert nth > 3  # open, write and fsync at the least
    assert value_of(store) == NEW
    store.delete(NS, []).result(60)
    store.sweep_blobs(NOW + 10**6 + BLOB_GRACE_SECONDS)
    assert len(list((tmp_path / BLOBS_NAME).iterdir())) == 1
    store.close()
