"""Leases and signs of life, rule by rule, on invented time."""

import time

import pytest

from edgestead.feed.follower import Follower, Position
from edgestead.feed.lease import BEAT_MS, LEASE_MS, Grant, Lease, now_us
from edgestead.feed.promise import BARRIER_MS, LATE_MS, SILENCE_MS, SILENT_MS, TICK_MS, Leased
from edgestead.feed.protocol import Beat, Beaten, Changes, Frames, Serve, decode, frame
from tests.feed.control import Control, change, changes, hello

LONG_MS = 60_000
LEASES = {"objects": Leased(frozenset({"token"}), silence_ms=LONG_MS)}
KINDS = ("token",)


@pytest.fixture
def control():
    """Its clock stands at one second."""
    made = Control(leases=LEASES)
    made.now_ms = 1_000.0
    return made


def lease_at(now_ms, upto=0):
    return Beat(int((now_ms + LEASE_MS) * 1000), upto)


def join(control, consumer=1):
    control.join(consumer, "objects", KINDS)
    control.promise.beaten(consumer)


def sent(control, consumer):
    return [entry[1] for entry in control.take() if entry[0] == consumer]


# Who has a lease.


def test_who_may_serve_gets_a_lease_at_once(control):
    control.promise.register(1, hello("objects", kinds=KINDS))
    control.promise.snapshot_ready(1, 0)
    control.promise.acked(1, 0)

    assert sent(control, 1)[-2:] == [Serve(0), lease_at(1_000)]
    assert len(control.promise.live("objects")) == 1


def test_who_has_everything_when_it_registers_gets_a_lease_with_the_right_to_serve(control):
    control.promise.register(1, hello("objects", kinds=KINDS, after=0))

    assert sent(control, 1) == [Serve(0), lease_at(1_000)]


def test_a_lease_is_renewed_while_everything_is_applied(control):
    join(control)
    for _ in range(3):
        control.pass_ms(BEAT_MS)
        control.promise.beat()
        control.promise.beaten(1)

    assert sent(control, 1)[-1] == lease_at(1_000 + 3 * BEAT_MS)


def test_who_lags_gets_no_lease_before_it_has_caught_up(control):
    join(control)
    control.commit("", kind="token")
    control.pass_ms(LEASE_MS)
    control.promise.beat()
    assert sent(control, 1) == [changes(0, 1, kind="token")]
    assert len(control.promise.live("objects")) == 0

    control.promise.acked(1, 1)

    assert sent(control, 1) == [lease_at(1_000 + LEASE_MS, 1)]
    assert len(control.promise.live("objects")) == 1


def test_who_has_no_lease_any_more_is_not_live(control):
    join(control)
    control.now_ms += LEASE_MS - 1
    assert len(control.promise.live("objects")) == 1
    control.now_ms += 1

    assert len(control.promise.live("objects")) == 0


# Who waits for whom.


def test_other_changes_never_wait_for_who_has_a_lease(control):
    join(control)
    control.commit("", kind="token")
    control.forget()

    control.commit("")

    assert "applied 2" in control.take()
    assert control.promise.leased_wants(1, 2) == 0


def test_a_change_of_who_may_call_waits_until_it_is_applied(control):
    join(control)
    control.commit("", kind="token")
    assert control.promise.leased_wants(0, 1) == 1
    control.forget()

    control.promise.acked(1, 1)

    assert "leased 1" in control.take()
    assert control.promise.leased_wants(0, 1) == 0


def test_or_until_the_lease_is_over_however_long_the_process_is_stopped(control):
    join(control)
    control.commit("", kind="token")
    control.forget()
    control.pass_ms(LEASE_MS - TICK_MS)
    assert control.take() == []

    control.pass_ms(TICK_MS)

    assert control.take() == ["leased 1"]


def test_each_lease_is_waited_for_by_itself(control):
    join(control, 1)
    join(control, 2)
    control.commit("", kind="token")
    control.promise.acked(2, 1)
    assert control.promise.leased_wants(0, 1) == 1

    control.promise.acked(1, 1)

    assert control.promise.leased_wants(0, 1) == 0


@pytest.mark.parametrize(("end", "held"), [("lost", True), ("died", False)])
def test_a_lease_outlives_a_connection_and_not_a_process(control, end, held):
    join(control)
    getattr(control.promise, end)(1)
    control.commit("", kind="token")

    assert bool(control.promise.leased_wants(0, 1)) is held
    control.pass_ms(LEASE_MS)
    assert control.promise.leased_wants(0, 1) == 0
    assert (1, "kill") not in control.done
    assert (1, "disconnect") in control.done


def restarted(control_ms=5_000.0):
    control = Control(1, [change(1)], leases=LEASES)
    control.now_ms = control_ms
    control.promise.expect(1, "objects")
    control.forget()
    return control


def test_after_a_restart_the_leases_of_before_are_waited_for_and_nothing_else_is():
    control = restarted()
    assert control.promise.recovered
    control.commit("", kind="token")
    assert "applied 2" in control.take()
    assert control.promise.leased_wants(1, 2) == 2

    control.pass_ms(LEASE_MS)

    assert control.promise.leased_wants(1, 2) == 0


def test_one_that_never_comes_back_after_a_restart_is_killed_in_the_end():
    control = restarted()
    control.pass_ms(LONG_MS - TICK_MS)
    assert control.take() == []
    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


def test_one_that_comes_back_after_a_restart_may_still_hold_its_lease():
    control = restarted()
    control.promise.register(11, hello("objects", after=1, serving=True, kinds=KINDS), replaces=1)
    control.commit("", kind="token")

    assert control.promise.leased_wants(1, 2) == 2


def test_one_that_begins_anew_keeps_the_lease_that_it_had(control):
    join(control)
    control.promise.register(1, hello("objects", kinds=KINDS))
    control.commit("", kind="token")

    assert control.promise.leased_wants(0, 1) == 1


def test_a_connection_that_ends_after_the_lease_is_waited_for_no_longer(control):
    join(control)
    control.commit("", kind="token")
    control.forget()
    control.now_ms += LEASE_MS

    control.promise.lost(1)

    assert control.take() == [(1, "disconnect"), "leased 1"]


@pytest.mark.parametrize(("age_ms", "renewed"), [(BEAT_MS, False), (BEAT_MS + 1, True)])
def test_who_has_just_caught_up_gets_a_lease_where_its_own_is_older_than_a_beat(control, age_ms, renewed):
    join(control)
    control.commit("", kind="token")
    control.forget()
    control.now_ms += age_ms

    control.promise.acked(1, 1)

    assert (lease_at(1_000 + age_ms, 1) in sent(control, 1)) is renewed


def test_who_was_asked_and_has_not_answered_gets_no_lease_for_catching_up(control):
    join(control)
    control.promise.beat()
    control.commit("", kind="token")
    control.forget()
    control.now_ms += LEASE_MS

    control.promise.acked(1, 1)

    assert not any(isinstance(message, Beat) for message in sent(control, 1))


def test_only_changes_behind_what_is_known_are_wanted(control):
    join(control)
    for kind in ("token", "name", "token"):
        control.commit("", kind=kind)

    wanted = [
        control.promise.leased_wants(after, upto) for after, upto in ((0, 3), (0, 2), (1, 2), (3, 3), (0, 0))
    ]

    assert wanted == [3, 1, 0, 0, 0]
    control.promise.acked(1, 1)
    assert [control.promise.leased_wants(0, upto) for upto in (1, 3)] == [0, 3]


# Where control shows what it tells.


@pytest.fixture
def told():
    return []


@pytest.fixture
def telling(told):
    made = Control(leases=LEASES, tells=told.append)
    made.now_ms = 1_000.0
    join(made)
    told.clear()
    return made


def test_a_change_is_shown_before_anybody_is_told_of_it_and_not_before_all_have_it(telling, told):
    telling.commit("", kind="token")
    assert (told, telling.promise.leased_wants(0, 1)) == ([], 1)
    order = []
    telling.leased_upto = lambda sequence: order.append((sequence, list(told)))

    telling.promise.acked(1, 1)

    assert order == [(1, [1])]
    assert telling.promise.leased_wants(0, 1) == 0


def test_nobody_waits_for_the_lease_of_a_process_that_does_not_apply_it(telling, told):
    telling.commit("", kind="token")
    telling.pass_ms(LATE_MS - TICK_MS)
    assert (told, telling.promise.leased_wants(0, 1)) == ([], 1)
    telling.pass_ms(TICK_MS)
    assert telling.now_ms < 1_000 + LEASE_MS
    assert (told, telling.promise.leased_wants(0, 1)) == ([1], 0)
    assert telling.promise.live("objects") == []

    telling.commit("", kind="token")

    assert (told, telling.promise.leased_wants(1, 2)) == ([1, 2], 0)


def test_each_change_has_its_own_time(telling, told):
    telling.commit("", kind="token")
    telling.pass_ms(LATE_MS - TICK_MS)
    telling.promise.acked(1, 1)
    telling.commit("", kind="token")
    telling.pass_ms(LATE_MS - TICK_MS)

    assert told == [1]


def test_a_pause_of_control_makes_nobody_late(telling, told):
    telling.commit("", kind="token")
    telling.now_ms += LEASE_MS
    telling.pass_ms(LATE_MS - TICK_MS)

    assert told == []


def test_who_was_late_is_waited_for_again_when_it_has_everything(telling, told):
    for _ in range(2):
        telling.commit("", kind="token")
    telling.pass_ms(LATE_MS)
    telling.promise.acked(1, 1)
    telling.commit("", kind="token")
    assert told == [2, 3]
    telling.promise.acked(1, 2)
    telling.promise.acked(1, 3)

    telling.commit("", kind="token")

    assert (told, telling.promise.leased_wants(3, 4)) == ([2, 3], 4)


def test_who_lost_its_connection_is_not_waited_for(telling, told):
    telling.promise.lost(1)
    telling.commit("", kind="token")

    assert told == [1]


def test_other_changes_are_not_shown(telling, told):
    telling.commit("")
    telling.pass_ms(LATE_MS)

    assert told == []


@pytest.mark.parametrize(
    ("kinds", "shown"), [(("token", "name"), 1), (("name", "token"), 2), (("name", "name"), 0)]
)
def test_a_control_shows_at_its_start_what_may_have_been_told_before_it(told, kinds, shown):
    Control(2, [change(n, kind=kind) for n, kind in enumerate(kinds, 1)], leases=LEASES, tells=told.append)

    assert set(told) == {shown}


def test_after_a_restart_a_process_that_does_not_come_back_is_late_like_any(told):
    control = Control(1, [change(1)], leases=LEASES, tells=told.append)
    control.promise.expect(1, "objects")
    told.clear()
    control.commit("", kind="token")
    control.pass_ms(LATE_MS - TICK_MS)
    assert told == []

    control.pass_ms(TICK_MS)

    assert told == [2]


# Signs of life.


def test_who_gives_no_sign_of_life_is_killed_though_nobody_writes(control):
    control.join(1)
    control.promise.beat()
    assert control.take() == [(1, Beat(0, 0))]
    control.pass_ms(SILENCE_MS - TICK_MS)
    assert control.take() == []

    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


def test_who_gives_signs_of_life_is_left_alone(control):
    control.join(1)
    for _ in range(3):
        control.promise.beat()
        control.pass_ms(SILENCE_MS - TICK_MS)
        control.promise.beaten(1)

    assert (1, "kill") not in control.take()


def test_readiness_hears_of_silence_before_it_kills(control):
    control.join(1)
    control.promise.beat()
    control.pass_ms(SILENT_MS - TICK_MS)
    assert (control.promise.silent, len(control.promise.live("dns"))) == ([], 1)

    control.pass_ms(TICK_MS)

    assert (control.promise.silent, len(control.promise.live("dns"))) == (["dns-1"], 0)


def test_a_sign_of_life_is_no_progress_with_a_change(control):
    control.join(1)
    control.promise.beat()
    control.commit("")
    control.forget()
    control.pass_ms(BARRIER_MS - TICK_MS)
    control.promise.beaten(1)
    control.pass_ms(TICK_MS)

    assert control.take() == [(1, "kill")]


def test_silence_before_a_change_does_not_shorten_the_time_for_it(control):
    control.join(1)
    control.promise.beat()
    control.pass_ms(SILENCE_MS - TICK_MS)
    control.commit("")
    control.pass_ms(BARRIER_MS - TICK_MS)

    assert (1, "kill") not in control.take()


def test_user_code_may_compute_for_longer_but_not_for_ever(control):
    join(control)
    control.commit("", kind="token")
    control.pass_ms(LONG_MS - TICK_MS)
    assert (1, "kill") not in control.take()
    control.pass_ms(TICK_MS)

    assert (1, "kill") in control.take()


def test_a_machine_that_stood_still_blames_nobody(control):
    control.join(1)
    control.promise.beat()
    for _ in range(10):
        control.now_ms += SILENCE_MS
        control.pass_ms(TICK_MS)

    assert (1, "kill") not in control.take()


# A consumer's end.


class Nothing:
    def apply(self, changes): ...


def heard(follower, *messages):
    follower.connected()
    follower.outgoing.clear()
    follower.received(b"".join(frame(message) for message in messages), ())
    list(follower.work())
    return [decode(body) for body in Frames().feed(bytes(follower.outgoing))]


def test_a_beat_is_answered_and_brings_a_lease():
    lease = Lease(lambda: 7_999)
    follower = Follower(Nothing(), group="objects", name="objects-0", lease=lease)

    assert heard(follower, Beat(8_000)) == [Beaten()]
    assert lease.holds(lease.grant)


def test_a_lease_is_over_the_moment_a_stopped_process_wakes():
    now_us = 0
    lease = Lease(lambda: now_us)
    lease.grant = read_before = Grant(8_000, -1)

    now_us = 8_000

    assert not lease.holds(read_before)


def test_a_process_whose_answers_stand_still_gives_no_sign_of_life():
    follower = Follower(Nothing(), group="dns", name="dns-0", goes_on=lambda: False)

    assert heard(follower, Beat(0)) == []


def test_the_clock_of_leases_is_in_microseconds_and_goes_on():
    lease, before = Lease(), time.monotonic()

    assert before * 1e6 - 1 <= now_us() <= time.monotonic() * 1e6
    assert lease.holds(Grant(now_us() + 3_600_000_000, -1))
    assert not lease.holds(Grant(now_us(), -1))


def test_a_gap_in_the_feed_brings_no_lease():
    lease = Lease(lambda: 0)
    follower = Follower(Nothing(), group="objects", name="objects-0", lease=lease)

    heard(follower, Changes(3, 4, (change(4),)), Beat(8_000, 9))

    assert lease.grant == Grant(0, -1)


def test_where_control_shows_what_it_tells_who_has_that_needs_no_lease_and_who_has_not_has_none():
    told = 4
    lease = Lease(lambda: 7_999, told=lambda: told)
    follower = Follower(
        Nothing(), group="objects", name="objects-0", kinds=KINDS, position=Position("feed", 3), lease=lease
    )
    assert not lease.holds(lease.grant)

    heard(follower, Changes(3, 4, (change(4),)))
    assert lease.holds(lease.grant)

    told = 6
    heard(follower, Beat(8_000, 4))
    assert not lease.holds(lease.grant)
    heard(follower, Beat(8_000, 6))  # it wants no change behind 4, and so was sent none
    assert lease.holds(lease.grant)
