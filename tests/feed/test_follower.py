"""A consumer's end without its socket: what it loads, applies, acknowledges and asks for."""

import os

import pytest

from edgestead.feed.follower import SLICE_ROWS_MAX, Follower, Position
from edgestead.feed.protocol import (
    Ack,
    Beat,
    Beaten,
    Changes,
    Frames,
    Loading,
    ProtocolError,
    Register,
    Resumed,
    Serve,
    Snapshot,
    decode,
    frame,
    frame_changes,
)
from edgestead.store.changes import Change
from tests.descriptors import left_open, open_now


class Table:
    """A consumer that keeps documents by key, and a log of its calls."""

    def __init__(self):
        self.served, self.aside, self.calls = {}, {}, []

    def begin(self):
        self.aside = {}
        self.calls.append("begin")

    def load(self, changes):
        self.calls.append(len(changes))
        self.aside.update({c.key: c.doc for c in changes})

    def swap(self):
        self.calls.append("swap")
        self.served = self.aside

    def apply(self, changes):
        self.calls.append([c.sequence for c in changes])
        self.served.update({c.key: c.doc for c in changes})


@pytest.fixture
def table():
    return Table()


@pytest.fixture
def follower(table):
    made = Follower(table, group="dns", name="dns-0")
    made.connected()
    assert said(made) == [Register("dns", "dns-0", (), "", -1, False)]
    return made


def said(follower):
    bodies = list(Frames().feed(bytes(follower.outgoing)))
    follower.outgoing.clear()
    return [decode(body) for body in bodies]


def hear(follower, *messages, descriptors=()):
    follower.received(b"".join(frame(message) for message in messages), list(descriptors))
    for _ in follower.work():
        pass


def snapshot_of(*changes, cut=0):
    data = frame_changes(list(changes)) if changes else b""
    descriptor = os.memfd_create("test")
    os.write(descriptor, data[: len(data) - cut])
    return descriptor


def change(sequence, key="a", doc=b"1"):
    return Change(sequence, "zone", "name", key, doc)


def loaded(follower, sequence=5):
    hear(follower, Snapshot("feed", sequence), descriptors=[snapshot_of(change(3))])
    said(follower)


def test_a_snapshot_is_loaded_aside_swapped_in_and_acknowledged(follower, table):
    table.served = {"old": b""}

    hear(follower, Snapshot("feed", 5), descriptors=[snapshot_of(change(3), change(4, "b"))])

    assert table.calls == ["begin", 2, "swap"]
    assert table.served == {"a": b"1", "b": b"1"}
    assert said(follower) == [Ack(5)]
    assert follower.applied == 5


def test_changes_are_applied_before_they_are_acknowledged(follower, table):
    loaded(follower)
    follower.received(frame(Changes(5, 6, (change(6),))), [])

    for _ in follower.work():
        if follower.outgoing:
            assert table.served == {"a": b"1"}
            assert table.calls[-1] == [6]

    assert said(follower) == [Ack(6)]


def test_large_messages_are_applied_in_slices(follower, table):
    loaded(follower)
    many = tuple(change(6 + n, str(n)) for n in range(SLICE_ROWS_MAX + 1))

    hear(follower, Changes(5, many[-1].sequence, many))

    assert [len(call) for call in table.calls[3:]] == [SLICE_ROWS_MAX, 1]
    assert said(follower) == [Ack(many[-1].sequence)]


def test_it_may_serve_when_control_says_so(follower):
    loaded(follower)
    assert not follower.may_serve

    hear(follower, Serve(5))

    assert follower.may_serve


def test_serving_ahead_of_what_is_applied_is_an_error(follower):
    loaded(follower)

    with pytest.raises(ProtocolError, match="serve at 6, we are at 5"):
        hear(follower, Serve(6))


def test_after_a_reconnection_it_resumes_and_goes_on_serving(follower, table):
    loaded(follower)
    hear(follower, Serve(5))
    follower.received(frame(Changes(5, 6, (change(6),)))[:9], [])
    follower.connected()

    assert said(follower) == [Register("dns", "dns-0", (), "feed", 5, True)]
    hear(follower, Changes(5, 6, (change(6),)))
    assert follower.applied == 6


GAPS = {
    "a message is missing": Changes(6, 7, (change(7),)),
    "a message comes twice": Changes(4, 5, (change(5),)),
    "a change is missing inside": Changes(5, 8, (change(6), change(8))),
    "a change is missing at the end": Changes(5, 7, (change(6),)),
    "the order is wrong": Changes(5, 7, (change(7), change(6))),
}


@pytest.mark.parametrize("message", GAPS.values(), ids=GAPS)
def test_a_gap_applies_nothing_and_asks_for_a_snapshot(follower, table, message):
    loaded(follower)
    hear(follower, Serve(5))
    hear(follower, message, Changes(7, 8, (change(8),)))

    assert said(follower) == [Register("dns", "dns-0", (), "feed", -1, True)]
    assert table.calls == ["begin", 1, "swap"]
    hear(follower, Snapshot("feed", 9), descriptors=[snapshot_of()])
    hear(follower, Changes(9, 10, (change(10),)))
    assert said(follower) == [Ack(9), Ack(10)]


def test_a_consumer_of_some_kinds_has_no_gaps_where_it_wants_nothing(table):
    follower = Follower(table, group="dns", name="dns-0", kinds=("name",))
    follower.connected()
    loaded(follower)

    hear(follower, Changes(5, 9, (change(7),)), Changes(9, 12, ()))
    assert said(follower) == [Ack(9), Ack(12)]
    hear(follower, Changes(12, 13, (change(14),)))
    assert said(follower) == [Register("dns", "dns-0", ("name",), "feed", -1, False)]


BROKEN = {
    "a snapshot without a descriptor": (Snapshot("feed", 1), None),
    "a message of the other direction": (Ack(1), None),
}


@pytest.mark.parametrize(("message", "descriptor"), BROKEN.values(), ids=BROKEN)
def test_what_control_never_says_ends_the_connection(follower, message, descriptor):
    with pytest.raises(ProtocolError):
        hear(follower, message)


def test_a_snapshot_that_is_cut_short_is_not_served(follower, table):
    with pytest.raises(ProtocolError, match="cut short"):
        hear(follower, Snapshot("feed", 1), descriptors=[snapshot_of(change(1), cut=1)])

    assert "swap" not in table.calls
    assert follower.applied == -1


def test_no_descriptor_is_left_open(follower):
    before = open_now()
    loaded(follower)
    follower.received(b"", [snapshot_of(), snapshot_of()])

    follower.disconnected()

    assert not left_open(before)


def test_a_consumer_that_stands_somewhere_already_goes_on_from_there_under_the_new_name(table):
    follower = Follower(table, group="dns", name="dns-0", position=Position("earlier", 7))
    follower.connected()
    assert said(follower) == [Register("dns", "dns-0", (), "earlier", 7, False)]

    change = Change(8, "z", "name", "a", b"8")
    follower.received(frame(Resumed("now")) + frame(Changes(7, 8, (change,))) + frame(Serve(8)), ())
    list(follower.work())

    assert table.calls == [[8]]
    assert follower.position == Position("now", 8)
    assert follower.may_serve


def test_a_consumer_that_may_not_go_on_loads_what_there_is(table, tmp_path):
    follower = Follower(table, group="dns", name="dns-0", position=Position("abandoned", 7))
    follower.connected()

    file = tmp_path / "snapshot"
    file.write_bytes(frame_changes([Change(3, "z", "name", "a", b"3")]))
    follower.received(frame(Snapshot("now", 3)), [os.open(file, os.O_RDONLY)])
    list(follower.work())

    assert table.served == {"a": b"3"}
    assert follower.position == Position("now", 3)


def test_a_snapshot_that_takes_its_time_is_seen_to_be_loaded(table):
    shown, seconds = [], [0.0]

    class Slow(Table):
        def load(self, changes):
            seconds[0] += 0.3
            super().load(changes)

    follower = Follower(Slow(), group="dns", name="dns-0", loading=shown.append, now=lambda: seconds[0])
    follower.connected()
    said(follower)
    rows = [change(sequence, f"k{sequence}") for sequence in range(1, 9 * SLICE_ROWS_MAX + 1)]

    hear(follower, Snapshot("feed", 7), descriptors=[snapshot_of(*rows)])

    assert said(follower) == [Loading(), Loading(), Ack(7)]
    assert shown == [4 * SLICE_ROWS_MAX, 8 * SLICE_ROWS_MAX]


def test_a_new_connection_forgets_what_came_over_the_old_one(follower, table):
    loaded(follower)
    follower.received(frame(Changes(5, 6, (change(6),))) + frame(Changes(6, 7, (change(7),))), [])
    next(follower.work())
    follower.connected()
    follower.outgoing.clear()

    for _ in follower.work():
        pass

    assert [call for call in table.calls if isinstance(call, list)] == [[6]]
    assert said(follower) == []


def test_a_sign_of_life_follows_what_was_to_be_said_before(follower):
    loaded(follower)

    hear(follower, Changes(5, 6, (change(6),)), Beat(1))

    assert said(follower) == [Ack(6), Beaten()]


@pytest.mark.parametrize("upto", [5, 4])
def test_a_message_of_nothing_new_is_taken_and_one_that_goes_back_is_not(table, upto):
    follower = Follower(table, group="dns", name="dns-0", kinds=("name",), position=Position("feed", 5))
    follower.connected()
    said(follower)

    hear(follower, Changes(5, upto, ()))

    assert said(follower) == (
        [Ack(5)] if upto == 5 else [Register("dns", "dns-0", ("name",), "feed", -1, False)]
    )
