"""The promise, rule by rule: who is waited for, in which order, and for how long."""

import pytest

from edgestead.feed.promise import BARRIER_MS, NEAR_BYTES_MAX, SILENT_MS, TICK_MS, WINDOW_BYTES_MAX
from edgestead.feed.protocol import Changes, Serve
from edgestead.store.changes import change_bytes
from tests.feed.control import Control, change, changes, hello


@pytest.fixture
def control():
    return Control()


# A write answers when every live consumer has applied it.


def test_with_nobody_alive_a_write_is_applied_at_once(control):
    control.commit("")

    assert control.take() == ["applied 1"]
    assert len(control.promise.live("dns")) == 0


def test_a_write_waits_for_every_live_consumer(control):
    control.join(1, "dns")
    control.join(2, "edge")
    control.commit("")
    assert control.take() == [(1, changes(0, 1)), (2, changes(0, 1))]

    control.promise.acked(1, 1)
    assert control.take() == []
    control.promise.acked(2, 1)
    assert control.take() == ["applied 1"]


def test_acks_are_cumulative(control):
    control.join(1)
    for _ in range(3):
        control.commit("")

    control.promise.acked(1, 3)

    assert control.take()[-1] == "applied 3"


def test_changes_go_out_in_order_and_follow_one_another(control):
    control.join(1)
    control.commit("", "")
    control.commit("")

    assert control.take() == [(1, changes(0, 1, 2)), (1, changes(2, 3))]


@pytest.mark.parametrize("sequence", [0, 2, -1])
def test_an_ack_of_what_was_never_sent_kills(control, sequence):
    control.join(1)
    control.commit("")
    control.forget()

    control.promise.acked(1, sequence)

    assert control.take() == [(1, "kill")]


def test_only_a_window_of_bytes_is_on_the_way(control):
    control.join(1)
    for _ in range(5):
        control.commit("", size=WINDOW_BYTES_MAX // 2)
    sent = [message.upto for _, message in control.take()]
    assert sent == [1, 2]

    control.promise.acked(1, 1)

    assert control.take()[0][1].upto == 3


# Kinds.


def test_unwanted_changes_count_as_applied_without_a_word(control):
    control.join(1, "dns", kinds=("name",))
    control.commit("", kind="rule")

    assert control.take() == ["applied 1"]


def test_the_next_wanted_change_follows_what_the_consumer_was_told(control):
    control.join(1, "dns", kinds=("name",))
    control.commit("", "", kind="rule")
    control.commit("")

    assert control.take() == ["applied 2", (1, changes(0, 3))]


def test_an_ack_covers_unwanted_changes_behind_it(control):
    control.join(1, "dns", kinds=("name",))
    control.commit("")
    control.commit("", kind="rule")
    control.promise.acked(1, 1)

    assert control.take()[-1] == "applied 2"


def test_a_dropped_scope_is_wanted_by_everyone(control):
    control.join(1, "dns", kinds=("rule",))
    control.commit("", kind="")

    assert control.take() == [(1, changes(0, 1, kind=""))]


# Order between the groups.


@pytest.mark.parametrize(("first", "second"), [("edge", "dns"), ("dns", "edge")])
def test_a_change_is_withheld_until_every_consumer_of_the_first_group_has_it(control, first, second):
    control.join(1, second)
    control.join(2, first)
    control.join(3, first)
    control.commit(first, "")
    assert [to for to, _ in control.take()] == [2, 3]

    control.promise.acked(2, 2)
    assert control.take() == []
    control.promise.acked(3, 2)

    assert control.take() == [(1, Changes(0, 2, (change(1, first), change(2))))]


def test_what_comes_before_a_withheld_change_is_sent(control):
    control.join(1, "dns")
    control.join(2, "edge")
    control.commit("", "edge")

    assert (1, changes(0, 1)) in control.take()


def test_nothing_is_withheld_for_a_group_without_members(control):
    control.join(1, "dns")
    control.commit("edge")

    assert control.take() == [(1, changes(0, 1, first="edge"))]


def test_a_withheld_change_goes_out_when_the_first_group_is_dead(control):
    control.join(1, "dns")
    control.join(2, "edge")
    control.commit("edge")
    control.pass_ms(BARRIER_MS)
    assert (2, "kill") in control.take()

    control.promise.died(2)

    assert (1, changes(0, 1, first="edge")) in control.take()


def test_skipping_in_the_first_group_opens_the_gate(control):
    control.join(1, "dns")
    control.join(2, "edge", kinds=("rule",))
    control.commit("edge")

    assert control.take() == [(1, changes(0, 1, first="edge"))]


def test_other_groups_are_never_withheld_from(control):
    control.join(1, "edge")
    control.join(2, "objects")
    control.commit("edge")

    assert [to for to, _ in control.take()] == [1, 2]


def behind_with_a_snapshot_at_hand(*firsts):
    """A dns consumer that serves and has to load, and an edge that serves; the changes as given."""
    control = Control(backlog_bytes_max=1000)
    control.join(1, "edge", kinds=("rule",))
    control.join(2, "dns")
    control.commit("", size=1500)
    control.commit(*firsts, kind="rule")
    control.forget()
    control.promise.snapshot_ready(2, control.promise.head)
    return control


def test_a_snapshot_is_withheld_like_the_changes_in_it():
    control = behind_with_a_snapshot_at_hand("edge")
    assert (2, "snapshot 2") not in control.take()

    control.promise.acked(1, 2)

    assert (2, "snapshot 2") in control.take()


def test_two_groups_that_wait_for_one_another_do_not_wait_for_ever():
    control = behind_with_a_snapshot_at_hand("dns", "edge")
    control.pass_ms(BARRIER_MS - TICK_MS)
    assert (2, "snapshot 3") not in control.take()
    control.pass_ms(TICK_MS)

    assert (2, "snapshot 3") in control.take()


def test_one_that_does_not_serve_yet_loads_at_once_and_serves_in_its_turn(control):
    control.join(1, "edge")
    control.commit("edge")
    control.promise.register(2, hello("dns"))
    control.promise.snapshot_ready(2, 1)
    control.promise.acked(2, 1)
    assert (2, Serve(1)) not in control.take()

    control.promise.acked(1, 1)

    assert (2, Serve(1)) in control.take()


# Deadline.


def test_a_live_consumer_without_progress_is_killed_and_waited_for(control):
    control.join(1)
    control.join(2)
    control.commit("")
    control.promise.acked(1, 1)
    control.forget()

    control.pass_ms(BARRIER_MS - TICK_MS)
    assert control.take() == []
    control.pass_ms(TICK_MS)
    assert control.take() == [(2, "kill")]
    control.pass_ms(10 * BARRIER_MS)
    assert control.take() == [], "it may answer until it is really dead"
    control.promise.died(2)

    assert control.take() == [(2, "disconnect"), "applied 1"]


def test_progress_is_enough(control):
    control.join(1)
    control.commit("", size=WINDOW_BYTES_MAX)
    for sequence in range(1, 10):
        control.commit("", size=WINDOW_BYTES_MAX)
        control.pass_ms(BARRIER_MS - TICK_MS)
        control.promise.acked(1, sequence)

    assert (1, "kill") not in control.take()


def test_an_idle_consumer_is_never_killed(control):
    control.join(1)
    control.pass_ms(100 * BARRIER_MS)
    control.commit("")
    control.pass_ms(BARRIER_MS - TICK_MS)

    assert (1, "kill") not in control.take()
    assert control.promise.watching


def test_nobody_is_watched_when_nothing_is_outstanding(control):
    control.join(1)
    assert not control.promise.watching
    control.commit("")
    assert control.promise.watching
    control.promise.acked(1, 1)
    assert not control.promise.watching


def test_a_change_withheld_from_a_consumer_is_not_held_against_it(control):
    control.join(1, "dns")
    control.join(2, "edge")
    control.commit("edge")
    control.pass_ms(BARRIER_MS)

    assert [entry for entry in control.take() if entry[1] == "kill"] == [(2, "kill")]


def test_time_in_which_control_stood_still_is_held_against_nobody(control):
    control.join(1)
    control.commit("")
    control.pass_ms(TICK_MS)
    control.now_ms += 60_000
    control.pass_ms(TICK_MS)

    assert (1, "kill") not in control.take()


def test_the_time_without_progress_counts_from_the_change(control):
    """To the tick: nothing of the time before is on the account."""
    control = Control(barrier_ms=9 * TICK_MS + 1)
    control.join(1)
    control.commit("")
    control.pass_ms(9 * TICK_MS)
    assert (1, "kill") not in control.take()

    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


# Boundaries. A change here counts for its document and 27 bytes.

BESIDE_BYTES = change_bytes(change(1))


@pytest.mark.parametrize(("spare_bytes", "more"), [(0, 0), (1, 1)])
def test_the_window_is_full_at_its_size(control, spare_bytes, more):
    control.join(1)
    control.commit("", size=WINDOW_BYTES_MAX - BESIDE_BYTES - spare_bytes)
    control.forget()

    control.commit("")

    assert len(control.take()) == more


@pytest.mark.parametrize(("surplus_bytes", "loads"), [(0, False), (1, True)])
def test_who_is_behind_by_more_than_the_backlog_loads(surplus_bytes, loads):
    control = Control(backlog_bytes_max=1_000)
    control.join(1)
    control.commit("", size=1_000 - BESIDE_BYTES + surplus_bytes)

    assert ((1, "make snapshot") in control.take()) is loads


@pytest.mark.parametrize(("surplus_bytes", "serves"), [(0, True), (1, False)])
def test_writes_wait_for_one_that_lacks_so_much_and_no_more(control, surplus_bytes, serves):
    control.promise.register(1, hello())
    control.promise.snapshot_ready(1, 0)
    control.commit("", size=NEAR_BYTES_MAX - BESIDE_BYTES + surplus_bytes)

    control.promise.acked(1, 0)

    assert ((1, Serve(1)) in control.take()) is serves


def test_a_snapshot_that_nobody_waits_for_any_more_is_left(control):
    control.join(1)
    control.promise.snapshot_ready(1, 0)
    control.promise.snapshot_ready(9, 0)
    assert (control.take(), control.promise.watching) == ([], False)
    control.promise.register(1, hello(serving=True))
    control.promise.lost(1)
    control.forget()

    control.promise.snapshot_ready(1, -1)
    control.promise.snapshot_ready(1, 0)

    assert (control.take(), control.promise.watching) == ([], False)


def test_a_snapshot_that_waits_for_its_turn_is_watched():
    control = behind_with_a_snapshot_at_hand("dns", "edge")

    assert control.promise.watching
    control.pass_ms(BARRIER_MS)
    control.promise.acked(2, 3)
    control.promise.acked(1, 3)

    assert not control.promise.watching


def test_changes_that_are_known_already_are_skipped(control):
    control.join(1)
    control.promise.committed([change(1, "edge"), change(2)])
    control.promise.committed([change(1, "edge"), change(2), change(3)])

    assert [one.sequence for _, message in control.take() for one in message.changes] == [1, 2, 3]
    assert control.promise.head == 3


def test_who_is_killed_gives_no_sign_of_life_until_it_is_dead(control):
    control.join(1)
    control.commit("")
    assert control.promise.silent == []
    control.pass_ms(BARRIER_MS)
    assert (control.promise.silent, len(control.promise.live("dns"))) == (["dns-1"], 0)

    control.promise.died(1)

    assert control.promise.silent == []


def test_who_was_behind_and_hangs_is_not_called_silent_while_it_is_waited_for(control):
    control.join(1, kinds=("name",))
    control.promise.register(1, hello(serving=True))
    control.pass_ms(SILENT_MS)

    assert control.promise.silent == []


def test_what_a_consumer_has_applied_counts_although_it_starts_anew(control):
    control.join(1)
    control.commit("")
    control.promise.acked(1, 1)
    control.join(2)
    control.commit("")
    control.promise.acked(2, 2)
    control.forget()

    control.promise.register(1, hello(serving=False))

    assert control.promise.applied == 1, "it goes on answering what it had"
    control.promise.snapshot_ready(1, 2)
    control.promise.acked(1, 2)
    assert control.promise.applied == 2
