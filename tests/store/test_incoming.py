"""A value that is being received, when whoever receives it is cancelled."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.store.kv import INLINE_BYTES_MAX, Blob, Incoming

SECONDS_MAX = 60  # until something that has to happen counts as a failure


class Slow:
    """A store of blobs whose one writer waits in the middle of a write."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.steps: list[str] = []

    def create(self) -> "Slow":
        return self

    def write(self, chunk: bytes) -> None:
        self.begun.set()
        assert self.may_end.wait(SECONDS_MAX)
        self.steps.append("written")

    def finish(self) -> Blob:
        raise AssertionError("nobody wants it any more")

    def discard(self) -> None:
        self.steps.append("discarded")


def test_what_a_thread_still_writes_is_discarded_behind_it_and_written_no_more():
    """The file's number may be another file's as soon as it is closed."""
    blobs = Slow()
    incoming = Incoming(blobs)
    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(incoming.write, bytes(INLINE_BYTES_MAX + 1))
        assert blobs.begun.wait(SECONDS_MAX)
        discarding = threads.submit(incoming.discard)
        wait([discarding], 0.2)  # the wrong way it would be done by then
        blobs.may_end.set()
        writing.result(SECONDS_MAX)
        discarding.result(SECONDS_MAX)

    assert blobs.steps == ["written", "discarded"]
    for step in (lambda: incoming.write(b"more"), incoming.finish):
        with pytest.raises(Unavailable):
            step()
    assert blobs.steps == ["written", "discarded"]


def test_a_small_value_that_was_discarded_makes_no_blob_later():
    blobs = Slow()
    incoming = Incoming(blobs)
    incoming.write(b"small")
    incoming.discard()

    with pytest.raises(Unavailable):
        incoming.write(bytes(INLINE_BYTES_MAX))

    assert not blobs.begun.is_set()
    assert blobs.steps == []
