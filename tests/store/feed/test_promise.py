"""The promise, rule by rule, on invented time: no process, no socket, no clock."""

import pytest

from edgestead.store.changes import Change
from edgestead.store.feed.promise import (
    BACKLOG_BYTES_MAX,
    BARRIER_MS,
    EXPECTED_MS,
    JOIN_MS,
    NEAR_BYTES_MAX,
    TICK_MS,
    WINDOW_BYTES_MAX,
    Promise,
)
from edgestead.store.feed.protocol import Changes, Register, Serve

FEED = "the-feed"


class Control:
    """A promise and everything that it asked for, in order."""

    def __init__(self, head=0, tail=(), **settings):
        self.done = []
        self.now_ms = 0.0
        self.promise = Promise(FEED, head, tail, self, **settings)
        self.forget()

    def send(self, consumer, message):
        self.done.append((consumer, message))

    def make_snapshot(self, consumer, kinds):
        self.done.append((consumer, "make snapshot"))

    def send_snapshot(self, consumer, sequence):
        self.done.append((consumer, f"snapshot {sequence}"))

    def kill(self, consumer):
        self.done.append((consumer, "kill"))

    def disconnect(self, consumer):
        self.done.append((consumer, "disconnect"))

    def applied_upto(self, sequence):
        self.done.append(f"applied {sequence}")

    def forget(self):
        self.done.clear()

    def take(self):
        done, self.done = self.done, []
        return done

    def commit(self, *firsts, kind="name", size=0):
        """One change per entry: the group that must have it first, or an empty text."""
        head = self.promise.head
        self.promise.committed([change(head + n, first, kind, size) for n, first in enumerate(firsts, 1)])

    def pass_ms(self, milliseconds):
        for _ in range(round(milliseconds / TICK_MS)):
            self.now_ms += TICK_MS
            self.promise.tick(self.now_ms)

    def join(self, consumer, group="dns", kinds=()):
        """Through the whole joining: snapshot, ack, serve."""
        self.promise.register(consumer, hello(group, kinds=kinds))
        self.promise.snapshot_ready(consumer, self.promise.head)
        self.promise.acked(consumer, self.promise.head)
        assert self.promise.live(group)
        self.forget()


def hello(group="dns", *, after=-1, feed_id=FEED, serving=False, kinds=()):
    return Register(group, f"{group}-1", kinds, feed_id, after, serving)


def change(sequence, first="", kind="name", size=0):
    return Change(sequence, "zone", kind, "key", bytes(size), first)


def changes(after, *sequences, upto=None, **kind):
    return Changes(after, upto or sequences[-1], tuple(change(s, **kind) for s in sequences))


@pytest.fixture
def control():
    return Control()


# A write answers when every live consumer has applied it.


def test_with_nobody_alive_a_write_is_applied_at_once(control):
    control.commit("")

    assert control.take() == ["applied 1"]
    assert control.promise.live("dns") == 0


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


def test_a_group_outside_the_promise_is_waited_for_but_not_killed(control):
    control.join(1, "objects")
    control.commit("")
    control.forget()
    control.pass_ms(10 * BARRIER_MS)

    assert control.take() == []


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
    assert control.promise.live("dns") == 1


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
    assert control.promise.live("dns") == 0
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
    assert control.promise.live("dns") == 1


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
