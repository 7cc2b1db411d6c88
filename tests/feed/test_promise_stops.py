"""A control that has a lease itself, and whose machine answers nothing without it."""

import pytest

from edgestead.feed.promise import TICK_MS, Leased, Node
from edgestead.feed.protocol import Register, Serve
from tests.feed.control import FEED, Control, hello


class Leader:
    """Control with a lease of its own, on invented time."""

    def __init__(self, *, stops, **settings):
        self.until_ms = 1_000.0
        self.control = Control(own_until_ms=lambda: self.until_ms, stops=stops, **settings)

    def pass_until(self, now_ms):
        """Returns what consumers got meanwhile."""
        self.control.forget()
        self.control.pass_ms(now_ms - self.control.now_ms)
        return self.told()

    def told(self):
        return [one for one in self.control.take() if isinstance(one, tuple)]


@pytest.mark.parametrize(("stops", "killed"), [(True, [(1, "kill"), (2, "kill")]), (False, [])])
def test_when_its_lease_is_over_who_answers_is_killed_where_it_stops(stops, killed):
    leader = Leader(stops=stops)
    leader.control.join(1)
    leader.control.join(2, "edge")

    assert leader.pass_until(1_000 - TICK_MS) == []
    assert leader.pass_until(1_000) == killed


def test_nobody_begins_to_answer_before_there_is_a_lease_again():
    leader = Leader(stops=True)
    leader.pass_until(2_000)
    leader.control.promise.register(1, hello())
    leader.control.promise.snapshot_ready(1, 0)
    leader.control.promise.acked(1, 0)
    assert Serve not in {type(what) for _, what in leader.pass_until(5_000)}
    leader.control.commit("", "")

    leader.until_ms = 9_000.0

    assert (1, Serve(2)) in leader.pass_until(5_000 + TICK_MS)


def test_one_that_answered_before_control_began_is_killed_at_once():
    leader = Leader(stops=True)
    leader.until_ms = -1.0
    leader.control.promise.expect(7, "dns")
    leader.control.promise.register(1, hello(after=0, serving=True))

    assert leader.pass_until(TICK_MS) == [(7, "kill"), (1, "kill")]


def test_a_lease_that_is_renewed_in_time_kills_nobody():
    leader = Leader(stops=True)
    leader.control.join(1)
    for now_ms in range(0, 10_000, 500):
        leader.until_ms = now_ms + 1_000.0
        assert leader.pass_until(now_ms + 500) == []
    assert leader.control.promise.watching


def test_nodes_and_processes_with_leases_of_their_own_end_by_those():
    leader = Leader(stops=True, leases={"objects": Leased(frozenset({"k"}), 10_000)})
    leader.control.promise.register(1, Register("dns", "ams-1", (), FEED, 0, True), node=Node("ams-1", 5_000))
    leader.control.promise.register(2, hello("objects", after=0, serving=True))

    assert (1, "kill") not in (done := leader.pass_until(1_500))
    assert (2, "kill") not in done
