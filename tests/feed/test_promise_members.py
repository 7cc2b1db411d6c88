"""The promise, rule by rule: who joins, is lost, comes back."""

import pytest

from edgestead.feed.promise import (
    BACKLOG_BYTES_MAX,
    BARRIER_MS,
    EXPECTED_MS,
    JOIN_MS,
    NEAR_BYTES_MAX,
    TICK_MS,
)
from edgestead.feed.protocol import Changes, Serve
from tests.feed.control import Control, change, changes, hello


@pytest.fixture
def control():
    return Control()


# Losing and dying.


def test_a_serving_consumer_that_lost_its_connection_is_killed(control):
    control.join(1)
    control.promise.lost(1)
    assert control.take() == [(1, "kill")]
    control.commit("")
    assert control.take() == []

    control.promise.died(1)

    assert control.take() == [(1, "disconnect"), "applied 1"]


def test_a_joining_consumer_that_lost_its_connection_is_forgotten(control):
    control.promise.register(1, hello())
    control.forget()
    control.promise.lost(1)
    control.commit("")

    assert control.take() == [(1, "disconnect"), "applied 1"]


def test_a_consumer_that_dies_by_itself_holds_nothing_up(control):
    control.join(1)
    control.commit("")
    control.forget()
    control.promise.died(1)

    assert control.take() == [(1, "disconnect"), "applied 1"]


def test_the_dying_are_not_heard(control):
    control.join(1)
    control.commit("")
    control.promise.lost(1)
    control.forget()
    control.promise.acked(1, 1)
    control.promise.register(1, hello(serving=True))
    control.promise.lost(1)

    assert control.take() == []


# Joining.


def test_a_consumer_joins_by_snapshot_and_serves_from_the_head(control):
    control.commit("", "")
    control.forget()
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 2)
    control.promise.acked(1, 2)

    assert control.take() == [(1, "make snapshot"), (1, "snapshot 2"), (1, Serve(2))]
    assert len(control.promise.live("dns")) == 1


def test_an_empty_feed_has_a_snapshot_too(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.promise.acked(1, 0)

    assert control.take()[-1] == (1, Serve(0))


def test_writes_do_not_wait_for_one_that_loads(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.forget()
    control.commit("")

    assert control.take() == ["applied 1"]


def test_writes_wait_from_the_moment_it_may_serve(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.promise.acked(1, 0)
    control.forget()
    control.commit("")
    assert control.take() == [(1, changes(0, 1))]
    control.promise.acked(1, 1)

    assert control.take() == ["applied 1"]


def test_it_hears_that_it_may_serve_after_everything_up_to_that_head(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.commit("")
    control.forget()
    control.promise.acked(1, 0)

    assert control.take() == [(1, changes(0, 1)), (1, Serve(1)), "applied 0"]


def test_one_that_wants_none_of_the_last_changes_hears_that_it_misses_nothing(control):
    control.promise.register(1, hello(kinds=("name",)))
    control.promise.snapshot_ready(1, 0)
    control.commit("", kind="rule")
    control.forget()
    control.promise.acked(1, 0)

    assert control.take()[:2] == [(1, Changes(0, 1, ())), (1, Serve(1))]


def test_far_behind_it_catches_up_before_writes_wait(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    for _ in range(4):
        control.commit("", size=NEAR_BYTES_MAX)
    control.promise.acked(1, 0)
    control.promise.acked(1, 3)
    assert len(control.promise.live("dns")) == 0
    control.promise.acked(1, 4)

    assert control.take()[-1] == (1, Serve(4))


def test_a_withheld_change_delays_serving(control):
    control.join(1, "edge")
    control.promise.register(2, hello("dns"))
    control.promise.snapshot_ready(2, 0)
    control.commit("edge")
    control.promise.acked(2, 0)
    assert (2, Serve(1)) not in control.take()

    control.promise.acked(1, 1)

    assert control.take()[-2:] == [(2, changes(0, 1, first="edge")), (2, Serve(1))]


def test_joining_has_a_longer_deadline_of_its_own(control):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.pass_ms(JOIN_MS - TICK_MS)
    assert (1, "kill") not in control.take()
    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


def test_only_who_stands_still_while_it_loads_is_killed(control):
    """A snapshot that took longer than JOIN_MS was a restart loop."""
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    for _ in range(5):
        control.pass_ms(JOIN_MS - TICK_MS)
        control.promise.loads(1)
    assert (1, "kill") not in control.take()

    control.pass_ms(JOIN_MS)

    assert control.take() == [(1, "kill")]


def test_loading_is_no_progress_for_who_does_not_load(control):
    control.join(1)
    control.commit("")
    control.pass_ms(BARRIER_MS - TICK_MS)
    control.promise.loads(1)
    control.promise.loads(2)
    control.pass_ms(TICK_MS)

    assert (1, "kill") in control.take()


def test_making_the_snapshot_is_not_held_against_the_consumer(control):
    control.promise.register(1, hello())
    control.pass_ms(2 * JOIN_MS)

    assert (1, "kill") not in control.take()


def test_a_snapshot_newer_than_the_known_head_waits_for_the_news(control):
    control.promise.register(1, hello())
    control.forget()
    control.promise.snapshot_ready(1, 1)
    assert control.take() == []
    control.commit("")

    assert (1, "snapshot 1") in control.take()


# Backlog.


def test_too_far_behind_means_a_snapshot_and_writes_still_wait():
    control = Control(backlog_bytes_max=1000)
    control.join(1)
    control.commit("", size=600)
    control.commit("", size=600)
    assert control.take()[-1] == (1, "make snapshot")
    control.promise.snapshot_ready(1, 2)
    control.pass_ms(2 * BARRIER_MS)
    assert control.take() == [(1, "snapshot 2")]

    for sequence in (1, 2, 2):  # what was on the way, then the snapshot
        control.promise.acked(1, sequence)

    assert control.take() == ["applied 1", "applied 2"], "it serves already: no second Serve"


def test_what_a_consumer_does_not_want_is_no_backlog():
    control = Control(backlog_bytes_max=1000)
    control.join(1, kinds=("rule",))
    control.commit("", size=1500)

    assert control.take() == ["applied 1"]


def test_a_snapshot_older_than_what_is_applied_is_made_again():
    control = Control(backlog_bytes_max=1000)
    control.join(1)
    control.commit("")
    control.promise.acked(1, 1)
    control.commit("", size=1500)
    control.forget()

    control.promise.snapshot_ready(1, 0)

    assert control.take() == [(1, "make snapshot")]


def test_the_backlog_is_what_the_brief_says():
    assert BACKLOG_BYTES_MAX == 8 * 1024 * 1024


# Registering again.


def test_a_second_hello_on_the_same_connection_starts_from_a_snapshot(control):
    control.join(1)
    control.commit("")
    control.forget()
    control.promise.register(1, hello(after=-1, serving=True))
    assert control.take() == [(1, "make snapshot")]
    control.promise.snapshot_ready(1, 1)
    control.promise.acked(1, 1)

    assert control.take() == [(1, "snapshot 1"), "applied 1"]


def test_one_that_starts_anew_before_it_heard_that_it_may_serve_hears_it_later(control):
    control.join(1)
    control.promise.register(1, hello(serving=False))
    control.promise.snapshot_ready(1, 0)
    control.promise.acked(1, 0)

    assert control.take()[-1] == (1, Serve(0))


# Control restarts.


def restarted(*, expected, head=3):
    control = Control(head, [change(sequence) for sequence in range(1, head + 1)])
    for consumer, group in expected.items():
        control.promise.expect(consumer, group)
    control.forget()
    return control


def test_after_a_restart_everyone_expected_is_waited_for():
    control = restarted(expected={1: "dns", 2: "edge"})
    assert not control.promise.recovered

    control.promise.register(11, hello("dns", after=3, serving=True), replaces=1)
    assert not control.promise.recovered
    control.promise.died(2)

    assert control.promise.recovered
    assert len(control.promise.live("dns")) == 1


def test_one_that_comes_back_resumes_where_it_was_and_is_live_at_once():
    control = restarted(expected={1: "dns"})

    control.promise.register(11, hello("dns", after=1, serving=True), replaces=1)

    assert control.take() == [(11, changes(1, 2, 3)), "applied 1"]
    control.promise.acked(11, 3)
    assert control.take() == ["applied 3"]


@pytest.mark.parametrize("late", [{"after": 0, "feed_id": "another"}, {"after": 4}, {"after": -1}])
def test_one_that_cannot_resume_loads_while_writes_wait(late):
    control = restarted(expected={1: "dns"})
    control.promise.register(11, hello("dns", serving=True, **late), replaces=1)
    assert control.take() == [(11, "make snapshot")]
    control.promise.snapshot_ready(11, 3)
    control.promise.acked(11, 3)

    assert control.take() == [(11, "snapshot 3"), "applied 3"]


def test_one_that_does_not_come_back_is_killed_and_waited_for():
    control = restarted(expected={1: "dns"})
    control.pass_ms(EXPECTED_MS - TICK_MS)
    assert control.take() == []
    control.pass_ms(TICK_MS)
    assert control.take() == [(1, "kill")]
    assert not control.promise.recovered

    control.promise.died(1)

    assert control.promise.recovered


def test_an_expected_edge_keeps_dns_from_hearing_first():
    control = Control(1, [change(1, "edge")])
    control.promise.expect(1, "edge")
    control.promise.register(2, hello("dns", after=0, serving=True))
    assert (2, changes(0, 1, first="edge")) not in control.take()

    control.promise.register(11, hello("edge", after=1, serving=True), replaces=1)

    assert (2, changes(0, 1, first="edge")) in control.take()


def test_one_that_was_still_joining_when_control_died_joins_again():
    control = restarted(expected={1: "dns"})

    control.promise.register(11, hello("dns", after=3, serving=False), replaces=1)

    assert control.take() == [(11, Serve(3)), "applied 3"]
