"""Frames and messages of the feed's wire, and the tail in memory."""

import msgspec
import pytest

from edgestead.feed.protocol import (
    BATCH_BYTES_MAX,
    FRAME_BYTES_MAX,
    Ack,
    Changes,
    Frames,
    ProtocolError,
    Register,
    Serve,
    Snapshot,
    batches,
    decode,
    frame,
)
from edgestead.feed.tail import Tail
from edgestead.store.changes import DOC_BYTES_MAX, Change, change_bytes

MESSAGES = [
    Register("dns", "dns-0", ("name", "zone"), "feed", -1, False),
    Snapshot("feed", 0),
    Changes(1, 2, (Change(2, "z", "name", "k", b"\x00\xff", "edge"), Change(3, "z", "", "", None))),
    Ack(1 << 60),
    Serve(7),
]
BAD = {
    "no msgpack": b"\xc1",
    "an unknown message": msgspec.msgpack.encode([99]),
    "too few members": msgspec.msgpack.encode([4]),
    "a wrong type": msgspec.msgpack.encode([4, "one"]),
    "a group without a name": msgspec.msgpack.encode([1, "", "n", [], "f", 0, False]),
    "a long name": msgspec.msgpack.encode([1, "dns", "n" * 65, [], "f", 0, False]),
    "many kinds": msgspec.msgpack.encode([1, "dns", "n", ["k"] * 65, "f", 0, False]),
    "a negative sequence": msgspec.msgpack.encode([1, "dns", "n", [], "f", -2, False]),
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_messages_survive_the_wire_however_the_bytes_arrive(size):
    stream = b"".join(frame(message) for message in MESSAGES)
    frames = Frames()

    bodies = [body for at in range(0, len(stream), size) for body in frames.feed(stream[at : at + size])]

    assert [decode(body) for body in bodies] == MESSAGES
    assert frames.empty


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_a_bad_message_is_refused(body):
    with pytest.raises(ProtocolError):
        decode(body)


def test_a_frame_over_the_limit_is_refused_by_its_length_alone():
    with pytest.raises(ProtocolError, match=str(FRAME_BYTES_MAX)):
        list(Frames().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big")))


def test_a_half_frame_is_not_empty():
    frames = Frames()
    assert list(frames.feed(frame(Ack(1))[:-1])) == []
    assert not frames.empty


def change(sequence, size=0):
    return Change(sequence, "zone", "name", "key", bytes(size))


def test_a_batch_of_the_largest_documents_fits_into_a_frame():
    cut = list(batches(change(sequence, DOC_BYTES_MAX) for sequence in (1, 2, 3)))

    assert [len(batch) for batch in cut] == [1, 1, 1]
    assert all(len(frame(Changes(0, 1, tuple(batch)))) < FRAME_BYTES_MAX for batch in cut)


def test_batches_hold_everything_in_order():
    changes = [change(sequence, 1000) for sequence in range(1, 1000)]

    cut = list(batches(changes))

    assert [one for batch in cut for one in batch] == changes
    assert max(sum(map(change_bytes, batch)) for batch in cut) <= BATCH_BYTES_MAX
    assert list(batches([])) == []


def test_a_tail_is_dense():
    tail = Tail(3, 1000)
    tail.extend([change(2), change(3), change(4)])

    with pytest.raises(ValueError, match="6 follows 4"):
        tail.extend([change(6)])
    assert (tail.start, tail.head) == (3, 4)
    assert [tail.holds(after) for after in (2, 3, 4, 5)] == [False, True, True, False]


def test_a_tail_forgets_the_oldest():
    tail = Tail(0, 10_000)
    tail.extend(change(sequence, 973) for sequence in range(1, 101))  # 1000 bytes each
    tail.trim()

    assert (tail.start, tail.head) == (90, 100)
    assert tail.bytes_between(90, 100) == 10_000


@pytest.mark.parametrize(
    ("after", "upto", "bytes_max", "expected"),
    [
        (0, 5, 5000, [1, 2, 3, 4, 5]),
        (0, 5, 2999, [1, 2]),
        (0, 1, 5000, [1]),
        (2, 5, 1, [3]),
        (4, 5, 9999, [5]),
    ],
)
def test_a_slice_of_the_tail_is_never_empty_and_keeps_its_limits(after, upto, bytes_max, expected):
    tail = Tail(0, 10_000)
    tail.extend(change(sequence, 973) for sequence in range(1, 6))

    assert [one.sequence for one in tail.slice(after, upto, bytes_max)] == expected


LONGEST = {
    "names": Register("g" * 64, "n" * 64, ("k" * 64,) * 64, "feed", -1, False),
    "an empty feed": Register("g", "n", (), "", 0, True),
}


@pytest.mark.parametrize("hello", LONGEST.values(), ids=LONGEST)
def test_what_is_just_within_the_limits_is_taken(hello):
    (body,) = Frames().feed(frame(hello))

    assert decode(body) == hello


@pytest.mark.parametrize("surplus", [0, 1])
def test_a_frame_is_at_most_as_large_as_its_limit(surplus):
    def message(length):
        return Changes(0, 1, (Change(1, "z", "name", "k", bytes(length)),))

    around = len(frame(message(1 << 20))) - (1 << 20)
    length = FRAME_BYTES_MAX + 4 - around + surplus

    if surplus:
        with pytest.raises(ProtocolError, match="larger than"):
            frame(message(length))
    else:
        (body,) = Frames().feed(frame(message(length)))
        assert len(body) == FRAME_BYTES_MAX
        assert len(decode(body).changes[0].doc) == length


def test_a_batch_is_full_at_its_limit():
    of_a_quarter = BATCH_BYTES_MAX // 4 - change_bytes(change(1))

    cut = [len(batch) for batch in batches(change(sequence, of_a_quarter) for sequence in range(1, 10))]
    more = [len(batch) for batch in batches(change(sequence, of_a_quarter + 1) for sequence in range(1, 10))]

    assert cut == [4, 4, 1]
    assert more == [3, 3, 3]


def test_a_tail_is_trimmed_when_a_quarter_too_much_is_there():
    tail = Tail(0, 4_000)
    sizes = []
    for sequence in range(1, 20):
        tail.extend([change(sequence, 973)])  # 1000 bytes each
        tail.trim()
        sizes.append(tail.head - tail.start)

    assert sizes[:8] == [1, 2, 3, 4, 5, 4, 5, 4]
    assert tail.bytes_between(tail.start, tail.head) == 1_000 * sizes[-1]
    with pytest.raises(ValueError, match="follows 19"):
        tail.extend([change(21)])
    tail.extend([change(18), change(19), change(20)])
    assert tail.head == 20
