"""The states of a slot at one objects process, step by step; `test_slots_random` plays them all together."""

import pytest

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.placement import Worker, wanted
from edgestead.cluster.seat import Failed
from edgestead.cluster.slots import (
    AGAIN_MS,
    GIVE_MS,
    GIVING_MAX,
    HOLD_MS,
    Claim,
    Give,
    Held,
    Poll,
    Register,
    Renew,
    Slots,
    State,
    View,
)

SLOTS = 64
ME, OTHER = Worker(1, "a", 0, "", 0), Worker(2, "b", 0, "", 0)
MINE = [slot for slot, number in enumerate(wanted([ME, OTHER], SLOTS)) if number == 1]
THEIRS = [slot for slot in range(SLOTS) if slot not in MINE]


class Desk:
    """One process, and a database that answers what a test says."""

    def __init__(self):
        self.now_ms, self.busy, self.left, self.came, self.kept = 0.0, set(), [], [], []
        self.slots = Slots(
            lambda: self.now_ms,
            is_quiet=lambda slot: slot not in self.busy,
            left=self.left.extend,
            came=self.came.extend,
            kept=self.kept.extend,
            slots=SLOTS,
        )
        self.run(self.slots.register(), {Register: 1})

    def run(self, generator, answers):
        """The questions of one round; a question without an answer fails."""
        asked, answer = [], None
        try:
            while True:
                ask = generator.send(answer) if answer is not Failed else generator.throw(Failed())
                asked.append(ask)
                answer = answers.get(type(ask), Failed)
                answer = answer(ask) if callable(answer) and answer is not Failed else answer
        except StopIteration as end:
            self.result = end.value
        return asked

    def look(self, workers, held=None, version=1, **answers):
        view = View({worker.number: worker for worker in workers}, held or {}, version)
        taken = {Claim: lambda ask: {slot: Held(1, version) for slot in ask.slots}}
        return self.run(self.slots.round(), {Poll: view} | taken | answers.get("more", {}))

    def states(self, slots):
        return {self.slots.state(slot) for slot in slots}


@pytest.fixture
def desk():
    return Desk()


def test_free_slots_are_claimed_by_the_one_that_is_wanted(desk):
    _, claim = desk.look([ME, OTHER])

    assert sorted(claim.slots) == MINE
    assert desk.states(MINE) == {State.OWNED}
    assert desk.states(THEIRS) == {State.ELSEWHERE}
    assert (desk.left, sorted(desk.came)) == ([], MINE)


def test_slots_whose_worker_is_gone_are_free(desk):
    _, claim = desk.look([ME, OTHER], {slot: Held(77, 1) for slot in range(SLOTS)})

    assert claim.slots == dict.fromkeys(MINE, 77)


def test_a_worker_is_silent_after_a_whole_lease_in_polls_that_all_succeeded(desk):
    theirs = {slot: Held(2, 1) for slot in range(SLOTS)}
    desk.look([ME, OTHER], theirs)
    for _ in range(7):
        desk.now_ms += LEASE_MS / 8
        assert desk.look([ME, OTHER])[1:] == []
    desk.run(desk.slots.round(), {})  # fails: the count begins anew

    for _ in range(8):
        desk.now_ms += LEASE_MS / 8
        assert desk.look([ME, OTHER])[1:] == []
    desk.now_ms += LEASE_MS / 8
    asked = desk.look([ME, OTHER])

    assert asked[1] == Claim(1, dict.fromkeys(range(SLOTS), 2), {2: 0})


def test_slots_for_which_another_is_wanted_are_given_at_a_bounded_rate(desk):
    desk.look([ME])
    desk.look([ME, OTHER], version=2)
    giving = [slot for slot in THEIRS if desk.slots.state(slot) is State.GIVING]

    assert len(giving) == GIVING_MAX
    assert not any(desk.slots.owns(slot) for slot in giving)
    (give,) = desk.run(desk.slots.give(), {Give: lambda ask: {slot: Held(2, 3) for slot in ask.slots}})
    assert sorted(give.slots) == giving
    assert {desk.slots.version_of(slot) for slot in giving} == {3}, "newer than the map of the last look"
    assert desk.slots.version_of(THEIRS[-1]) == desk.slots.version == 2
    assert desk.states(giving) == {State.ELSEWHERE}
    desk.now_ms += GIVE_MS * 2
    desk.look([ME, OTHER], version=3)
    assert len([slot for slot in THEIRS if desk.slots.state(slot) is State.GIVING]) <= 3


def begin_giving(desk):
    desk.look([ME])
    desk.look([ME, OTHER], version=2)
    return next(slot for slot in THEIRS if desk.slots.state(slot) is State.GIVING)


def test_a_busy_slot_holds_calls_for_a_moment_only_and_is_tried_again(desk):
    slot = begin_giving(desk)
    desk.busy = set(range(SLOTS))
    assert desk.run(desk.slots.give(), {}) == []
    assert desk.slots.state(slot) is State.GIVING

    desk.now_ms += HOLD_MS
    assert desk.run(desk.slots.give(), {}) == []

    assert slot in desk.kept
    assert desk.slots.owns(slot)
    desk.look([ME, OTHER], version=2)
    assert desk.slots.owns(slot)
    desk.now_ms += AGAIN_MS
    desk.look([ME, OTHER], version=2)
    assert desk.slots.state(slot) is State.GIVING


def test_a_gift_whose_outcome_is_unknown_is_asked_again_until_it_is_known(desk):
    slot = begin_giving(desk)
    desk.run(desk.slots.give(), {})
    desk.now_ms += 10 * HOLD_MS
    assert desk.run(desk.slots.give(), {})[0].slots[slot].to == 2

    assert desk.slots.state(slot) is State.GIVEN
    desk.look([ME, OTHER], version=2)
    assert desk.slots.state(slot) is State.GIVEN
    desk.look([ME, OTHER], {slot: Held(2, 3)}, version=3)
    assert desk.slots.state(slot) is State.ELSEWHERE
    assert (desk.left, desk.kept) == ([slot], [])


def test_a_slot_that_was_away_between_two_looks_has_nothing_in_memory(desk):
    slot = begin_giving(desk)
    desk.run(desk.slots.give(), {})
    came = len(desk.came)

    desk.look([ME, OTHER], {slot: Held(1, 4)}, version=4)

    assert (desk.left, desk.came[came:]) == ([slot], [slot])
    assert desk.slots.state(slot) in (State.OWNED, State.GIVING)


def test_a_gift_to_a_worker_that_is_gone_comes_back(desk):
    slot = begin_giving(desk)
    desk.run(desk.slots.give(), {})

    desk.look([ME], version=2)

    assert desk.slots.owns(slot)
    assert slot in desk.kept


def test_it_answers_while_its_lease_holds_and_not_after_its_row_is_gone(desk):
    assert desk.slots.may_answer()
    desk.now_ms = LEASE_MS
    assert not desk.slots.may_answer()
    desk.run(desk.slots.renewal(), {Renew: True})
    assert desk.slots.may_answer()
    desk.look([ME])

    desk.run(desk.slots.renewal(), {Renew: False})
    assert desk.result is False
    desk.slots.lost()

    assert not desk.slots.may_answer()
    assert desk.states(range(SLOTS)) == {State.ELSEWHERE}


def test_an_outage_of_the_database_costs_nobody_a_slot(desk):
    desk.look([ME])
    desk.now_ms = 100 * LEASE_MS
    desk.run(desk.slots.renewal(), {})
    desk.run(desk.slots.round(), {})
    assert desk.slots.owns(0)
    assert not desk.slots.may_answer()

    desk.run(desk.slots.renewal(), {Renew: True})

    assert desk.slots.may_answer()
