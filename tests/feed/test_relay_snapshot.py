"""A snapshot whose connection ends: the relay goes on at the octet where it was, or begins again."""

import pytest

from edgestead.feed.protocol import (
    Changes,
    Hello,
    ProtocolError,
    Register,
    Renew,
    Snapshot,
    SnapshotPart,
    frame,
    frame_changes,
)
from edgestead.feed.relay import Relay
from edgestead.store.changes import Change

FEED = "the-feed"
CHANGES = [Change(n, "z", "zone", str(n), bytes(40)) for n in range(1, 9)]
OCTETS = b"".join(frame_changes([change]) for change in CHANGES)
HALF = len(OCTETS) // 2 + 3  # in the middle of a frame


class Machine:
    """Plays the relay's actions; `loaded` is what is in the file aside."""

    def __init__(self):
        self.loaded, self.begun, self.swapped, self.sent = [], 0, None, []
        self.relay = Relay(
            self,
            group="dns",
            name="ams-1",
            kinds=("zone",),
            position=None,
            stops=False,
            stale_ms=1e9,
            now_ms=lambda: 0.0,
        )

    def send(self, message):
        self.sent.append(message)

    def begin(self):
        self.loaded, self.begun = [], self.begun + 1

    def load(self, changes):
        self.loaded += changes

    def swap(self, position):
        self.swapped = position

    def connect(self):
        """Returns the snapshot and the place that it asks to go on with."""
        self.sent.clear()
        self.relay.connected()
        hello, register, renew = self.sent
        assert (type(hello), type(register), type(renew)) == (Hello, Register, Renew)
        return register.snapshot, register.offset

    def hear(self, *messages):
        for message in messages:
            self.relay.received(frame(message)[4:])


@pytest.fixture
def machine():
    made = Machine()
    assert made.connect() == ("", 0)
    made.hear(Snapshot(FEED, 9, "s1"), SnapshotPart(OCTETS[:HALF], False))
    made.relay.disconnected()
    return made


def test_it_goes_on_where_it_was(machine):
    assert machine.connect() == ("s1", HALF)

    machine.hear(Snapshot(FEED, 9, "s1", HALF), SnapshotPart(OCTETS[HALF:], True))

    assert (machine.loaded, machine.begun) == (CHANGES, 1)
    assert machine.swapped == (FEED, 9)


def test_it_goes_on_after_several_ends(machine):
    machine.connect()
    machine.relay.disconnected()  # before control said anything
    assert machine.connect() == ("s1", HALF)
    machine.hear(Snapshot(FEED, 9, "s1", HALF), SnapshotPart(OCTETS[HALF : HALF + 10], False))
    machine.relay.disconnected()
    assert machine.connect() == ("s1", HALF + 10)

    machine.hear(Snapshot(FEED, 9, "s1", HALF + 10), SnapshotPart(OCTETS[HALF + 10 :], True))

    assert machine.loaded == CHANGES


def test_another_snapshot_begins_at_its_beginning(machine):
    machine.connect()

    machine.hear(Snapshot(FEED, 12, "s2"), SnapshotPart(OCTETS, True))

    assert (machine.loaded, machine.begun) == (CHANGES, 2)
    assert machine.swapped == (FEED, 12)


@pytest.mark.parametrize(
    "snapshot",
    [Snapshot(FEED, 9, "s2", HALF), Snapshot(FEED, 9, "s1", HALF - 1), Snapshot(FEED, 8, "s1", HALF)],
)
def test_the_rest_of_something_else_is_refused_and_the_next_time_all_is_asked_for(machine, snapshot):
    machine.connect()

    with pytest.raises(ProtocolError, match="whose beginning is not here"):
        machine.hear(snapshot)

    machine.relay.disconnected()
    assert machine.connect() == ("", 0)
    assert machine.swapped is None


def test_what_could_not_be_read_is_not_gone_on_with(machine):
    machine.connect()
    with pytest.raises(ProtocolError):
        machine.hear(Snapshot(FEED, 9, "s1", HALF), SnapshotPart(b"\x00\x00\x00\x01\xff" * 9, False))
    machine.relay.disconnected()

    assert machine.connect() == ("", 0)


def test_a_control_that_goes_on_from_the_file_ends_it(machine):
    machine.relay._told, machine.relay._feed_id = 3, FEED
    machine.store = lambda changes, position: None
    machine.connect()
    machine.hear(Changes(3, 4, ()))
    machine.relay.disconnected()
    machine.relay.stored(1)

    assert machine.connect() == ("", 0)


def test_a_snapshot_without_a_name_of_an_older_release_begins_again(machine):
    machine.connect()
    machine.hear(Snapshot(FEED, 12), SnapshotPart(OCTETS[:HALF], False))
    machine.relay.disconnected()

    assert machine.connect() == ("", 0)
