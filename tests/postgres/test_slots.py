"""The rows of objects processes: what each statement does, in PostgreSQL and in the model of the simulation.

The random schedules of `tests/cluster` run against the model; both have to answer alike.
"""

import threading
import time
from contextlib import ExitStack, closing

import pytest

from edgestead.cluster.placement import SLOTS, Worker
from edgestead.cluster.slots import Claim, Give, Giving, Held, Poll, Register, Renew
from edgestead.postgres.connection import Link
from edgestead.postgres.slots import NotListed, SlotClerk, drain
from tests.cluster.slots_world import Database

pytestmark = pytest.mark.usefixtures("patient_leases")

NODES = ("a", "b", "c")
ALL = -1  # the map from its beginning


class ModelClerk:
    def __init__(self, database, node):
        self._database, self._node = database, node

    def answer(self, ask):
        return self._database.execute(self._node, ask)


@pytest.fixture
def dsn(postgres):
    return postgres.emptied()


@pytest.fixture(params=["model", "postgres"])
def clerks(request):
    """Of three nodes, each registered as the next number after `base`."""
    with ExitStack() as stack:
        if request.param == "model":
            database = Database()
            made = [ModelClerk(database, node) for node in NODES]
        else:
            dsn = request.getfixturevalue("dsn")
            made = [stack.enter_context(closing(SlotClerk(dsn, node, 0, ""))) for node in NODES]
        numbers = [clerk.answer(Register()) for clerk in made]
        assert numbers == list(range(numbers[0], numbers[0] + 3))
        yield [(clerk, number) for clerk, number in zip(made, numbers, strict=True)]


def claim(clerk, number, slots, silent=None):
    """The slots that it got."""
    return sorted(clerk.answer(Claim(number, slots, silent or {})))


def until(fn):
    end = time.monotonic() + 300
    while not (found := fn()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def holders(clerk):
    return {slot: held.holder for slot, held in clerk.answer(Poll(ALL)).slots.items() if held.holder}


def test_a_free_slot_is_had_by_who_claims_it_first(clerks):
    (a, one), (b, two), _ = clerks

    assert claim(a, one, {0: None, 1: None}) == [0, 1]
    assert claim(b, two, {1: None, 2: None}) == [2]

    assert holders(a) == holders(b) == {0: one, 1: one, 2: two}


def test_a_slot_of_a_living_worker_is_not_taken(clerks):
    (a, one), (b, two), _ = clerks
    claim(a, one, {0: None})

    assert claim(b, two, {0: one}) == []


def test_a_worker_that_was_silent_loses_its_row_and_its_slots_in_one_step(clerks):
    (a, one), (b, two), (c, three) = clerks
    claim(a, one, {0: None, 1: None})

    assert claim(b, two, {0: one}, silent={one: 0}) == [0]

    assert one not in c.answer(Poll(ALL)).workers
    assert not a.answer(Renew(one))
    assert claim(c, three, {0: one, 1: one}) == [1]
    assert claim(a, one, {3: None}) == []


def test_a_worker_that_has_renewed_since_keeps_everything(clerks):
    (a, one), (b, two), _ = clerks
    claim(a, one, {0: None})
    assert a.answer(Renew(one))

    assert claim(b, two, {0: one}, silent={one: 0}) == []

    assert holders(b) == {0: one}


def test_the_next_process_of_a_place_has_what_is_left_of_its_slots(clerks):
    (a, one), (b, two), _ = clerks
    claim(a, one, {0: None, 1: None})
    claim(b, two, {2: None})

    later = a.answer(Register())

    assert later > two
    assert holders(b) == {0: later, 1: later, 2: two}
    assert not a.answer(Renew(one))


def test_a_slot_is_given_once_to_a_living_worker_by_who_has_it_since_then(clerks):
    (a, one), (b, two), (_, three) = clerks
    since = a.answer(Claim(one, {0: None, 1: None}, {}))
    version = since[0].version

    given = a.answer(Give(one, {0: Giving(two, version), 1: Giving(99_999, version)}))

    assert list(given) == [0]
    assert given[0].holder == two
    assert given[0].version > version
    assert a.answer(Give(one, {0: Giving(three, version)})) == {}
    back = b.answer(Give(two, {0: Giving(one, given[0].version)}))
    assert list(back) == [0]
    assert a.answer(Give(one, {0: Giving(three, version)})) == {}, "a statement of before moved it"
    assert holders(a) == {0: one, 1: one}


def test_a_worker_whose_row_is_gone_gives_nothing(clerks):
    (a, one), (b, two), (_, three) = clerks
    version = a.answer(Claim(one, {0: None}, {}))[0].version
    claim(b, two, {}, silent={one: 0})

    assert a.answer(Give(one, {0: Giving(three, version)})) == {}


def test_a_look_at_the_map_has_what_changed_since_the_last_one(clerks):
    (a, one), (b, two), _ = clerks
    before = b.answer(Poll(ALL))
    taken = a.answer(Claim(one, {5: None}, {}))

    after = b.answer(Poll(before.version))

    assert after.slots == {5: Held(one, after.version)} == taken
    assert b.answer(Poll(after.version)).slots == {}
    assert {(worker.number, worker.node) for worker in after.workers.values()} >= {(one, "a"), (two, "b")}


def test_the_map_has_all_slots_at_first_and_an_address_for_each_worker(dsn):
    with closing(SlotClerk(dsn, "a", 3, "10.0.0.1:8790")) as clerk:
        number = clerk.answer(Register())

        found = clerk.answer(Poll(ALL))

        assert sorted(found.slots) == list(range(SLOTS))
        assert found.workers[number] == Worker(number, "a", 3, "10.0.0.1:8790", 0)


def test_a_node_drains_until_its_processes_start_again(dsn):
    with (
        closing(SlotClerk(dsn, "a", 0, "")) as a,
        closing(SlotClerk(dsn, "b", 0, "")) as b,
        closing(Link(dsn)) as link,
    ):
        one, two = a.answer(Register()), b.answer(Register())

        assert drain(link, "a") == 1

        def are_draining():
            return {n: worker.is_draining for n, worker in b.answer(Poll(ALL)).workers.items()}

        assert are_draining() == {one: True, two: False}
        assert a.answer(Renew(one))
        later = a.answer(Register())
        assert are_draining() == {two: False, later: False}
        assert (drain(link, "a"), drain(link, "a", ends=True)) == (1, 1)
        assert are_draining() == {two: False, later: False}


def test_a_row_is_deleted_after_the_append_that_holds_it(dsn):
    """So that what landed is in the log before another worker reads it."""
    with (
        closing(SlotClerk(dsn, "a", 0, "")) as a,
        closing(SlotClerk(dsn, "b", 0, "")) as b,
        closing(Link(dsn)) as append,
        closing(Link(dsn)) as look,
    ):
        one, two = a.answer(Register()), b.answer(Register())
        claim(a, one, {0: None})
        taking = threading.Thread(target=claim, args=(b, two, {0: one}, {one: 0}))
        with append.transaction():
            append.rows("SELECT FROM incarnations WHERE number = %b FOR KEY SHARE", (one,))
            taking.start()
            waits = until(lambda: look.rows("SELECT FROM pg_locks WHERE NOT granted"))
            still = holders(a)
        taking.join(300)

        assert (bool(waits), still, holders(a)) == (True, {0: one}, {0: two})


def test_a_renewal_waits_for_no_append(dsn):
    with closing(SlotClerk(dsn, "a", 0, "")) as a, closing(Link(dsn)) as append:
        one = a.answer(Register())
        with append.transaction():
            append.rows("SELECT FROM incarnations WHERE number = %b FOR KEY SHARE", (one,))

            assert a.answer(Renew(one))


def test_a_process_of_a_node_that_was_removed_gets_no_row(dsn):
    with closing(Link(dsn)) as link, closing(SlotClerk(dsn, "a", 0, "", key="k")) as clerk:
        with pytest.raises(NotListed, match="a was removed"):
            clerk.answer(Register())
        link.run("INSERT INTO nodes (name, roles, fingerprint) VALUES ('a', 'objects', 'other')")
        with pytest.raises(NotListed):
            clerk.answer(Register())
        link.run("UPDATE nodes SET fingerprint = 'k'")

        number = clerk.answer(Register())

        assert set(clerk.answer(Poll(ALL)).workers) == {number}
