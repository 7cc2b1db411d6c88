"""Draining and removing a node, as far as its objects go: rows of a real database, whose processes are none.

The processes' part, with real ones: `test_objects_nodes`.
"""

from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest

from edgestead.cluster import seat
from edgestead.cluster.placement import SLOTS as PLAIN_SLOTS
from edgestead.cluster.slots import Claim, Give, Giving, Poll, Register, Renew
from edgestead.postgres import regions
from edgestead.postgres.connection import Link
from edgestead.postgres.incarnations import Clerk, overview
from edgestead.postgres.slots import SlotClerk, look
from edgestead.server.errors import StartError
from edgestead.server.founding import act
from edgestead.server.founding.node import ControlNode
from edgestead.server.nodes.in_postgres import PostgresRegistry
from edgestead.server.nodes.registry import Node

pytestmark = pytest.mark.usefixtures("patient_leases")

SLOTS = range(20)


@pytest.fixture
def world(postgres):
    """Nodes a and b are listed; a's process has slots."""
    dsn = postgres.emptied()
    with ExitStack() as stack:
        link = stack.enter_context(closing(Link(dsn)))
        registry = PostgresRegistry(link)
        for name in ("a", "b"):
            registry.add(Node(name=name, roles=("control", "objects"), key=name))
        clerks = {
            name: stack.enter_context(closing(SlotClerk(dsn, name, 0, "", key=name))) for name in ("a", "b")
        }
        number = clerks["a"].answer(Register())
        clerks["a"].answer(Claim(number, dict.fromkeys(SLOTS), {}))
        rest = dict.fromkeys(ControlNode._fields)
        node = ControlNode(**rest | {"name": "b", "link": link, "registry": registry})
        yield SimpleNamespace(node=node, clerks=clerks, a=number, said=[])


def held_by(world):
    return {slot: held.holder for slot, held in look(world.node.link).slots.items() if slot in SLOTS}


def test_a_drain_waits_until_the_last_slot_is_given(world):
    b = world.clerks["b"].answer(Register())

    def give_some(seconds):
        view = world.clerks["a"].answer(Poll(-1))
        assert view.workers[world.a].is_draining
        left = [slot for slot in SLOTS if view.slots[slot].holder == world.a][:7]
        world.clerks["a"].answer(Give(world.a, {slot: Giving(b, view.slots[slot].version) for slot in left}))

    drained = act.drain(world.node, "a", world.said.append, sleep=give_some)

    assert drained == act.Drained("", 20)
    assert world.said == [7, 7, 6]
    assert set(held_by(world).values()) == {b}


def test_a_drain_waits_for_nothing_of_a_region_that_no_other_node_is_in(world):
    link, a, b = world.node.link, world.a, world.clerks["b"].answer(Register())
    link.run("UPDATE nodes SET region = 'fra' WHERE name = 'a'")
    regions.settle(link, {"Pinned": "fra"}, node="b", place=0)
    own = dict.fromkeys(range(PLAIN_SLOTS, PLAIN_SLOTS + 5))
    world.clerks["a"].answer(Claim(a, own, {}))

    def give_all(seconds):
        view = look(link)
        gifts = {slot: Giving(b, view.slots[slot].version) for slot in SLOTS}
        world.clerks["a"].answer(Give(a, gifts))

    assert act.drain(world.node, "a", world.said.append, sleep=give_all) == act.Drained("", 20, "fra")
    assert {held.holder for slot, held in look(link).slots.items() if slot in own} == {a}


def test_a_process_that_begins_while_its_node_drains_drains_too(world):
    b = world.clerks["b"].answer(Register())
    seen = []

    def begin_and_give(seconds):
        if not seen:
            seen.append(world.clerks["a"].answer(Register()))  # it has the slots of the one before
            return
        view = world.clerks["a"].answer(Poll(-1))
        assert view.workers[seen[0]].is_draining
        gifts = {slot: Giving(b, view.slots[slot].version) for slot in SLOTS}
        world.clerks["a"].answer(Give(seen[0], gifts))

    assert act.drain(world.node, "a", sleep=begin_and_give).slots == 20


def test_a_drain_without_another_process_says_what_to_do(world):
    with pytest.raises(StartError, match="no other node does: start one"):
        act.drain(world.node, "a", sleep=lambda seconds: None)
    assert not world.clerks["a"].answer(Poll(-1)).workers[world.a].is_draining


def test_a_drain_that_goes_nowhere_ends_and_may_be_taken_back(world, monkeypatch):
    monkeypatch.setattr(act, "STILL_SECONDS_MAX", 1.0)
    world.clerks["b"].answer(Register())

    with pytest.raises(StartError, match="a has 20 slots of objects and gives none away"):
        act.drain(world.node, "a", sleep=lambda seconds: None)

    assert act.end_drain(world.node, "a")
    assert not act.end_drain(world.node, "a")
    assert not world.clerks["a"].answer(Poll(-1)).workers[world.a].is_draining


@pytest.fixture
def controls(world):
    """Control processes of a, b and c, of which a leads; their numbers by name."""
    with ExitStack() as stack:
        made = {}
        for name in "abc":
            clerk = stack.enter_context(closing(Clerk(world.node.link.dsn, name, "")))
            made[name] = (clerk, clerk.answer(seat.Register(None)))
        assert made["a"][0].answer(seat.Claim(made["a"][1], None))
        for name in "bc":
            assert made[name][0].answer(seat.Admit(made[name][1], made["a"][1]))
        yield made


def test_a_drain_is_content_with_whoever_leads_then(world, controls):
    """The one that was asked may be slower than another: the node can be stopped all the same."""
    b = world.clerks["b"].answer(Register())
    (a, number), (c, other) = controls["a"], controls["c"]

    def another_takes_over(seconds):
        if overview(world.node.link).leader == number:
            assert overview(world.node.link).wanted == controls["b"][1]
            a.leave(number)
            assert c.answer(seat.Claim(other, None))
        view = world.clerks["a"].answer(Poll(-1))
        given = {slot: Giving(b, held.version) for slot, held in view.slots.items() if slot in SLOTS}
        world.clerks["a"].answer(Give(world.a, given))

    assert act.drain(world.node, "a", sleep=another_takes_over).leader == "c"


def test_a_process_that_begins_anew_before_it_takes_over_has_taken_over(world, controls):
    (a, number), (b, before) = controls["a"], controls["b"]

    def takes_over(seconds):
        a.leave(number)
        newer = b.answer(seat.Register(before))
        assert b.answer(seat.Claim(newer, None))

    assert act.move_leader(world.node, "b", sleep=takes_over)


def test_who_does_not_take_over_is_named_with_who_leads(world, controls):
    times = iter(range(0, 1_000, 10))
    with pytest.raises(StartError, match=r"b did not take over within 20 s; a leads"):
        act.move_leader(world.node, "b", clock=lambda: next(times), sleep=lambda seconds: None)


def test_a_node_that_is_removed_renews_no_more_and_its_slots_are_others_when_it_is_silent(world):
    """Not before: it may be cut off from the database, and answer until its lease ends."""
    b = world.clerks["b"].answer(Register())
    assert world.clerks["a"].answer(Renew(world.a))

    act.remove(world.node, "a")

    assert not world.clerks["a"].answer(Renew(world.a))
    view = world.clerks["b"].answer(Poll(-1))
    assert set(view.workers) == {world.a, b}
    slots = {slot: view.slots[slot].holder for slot in SLOTS}
    assert world.clerks["b"].answer(Claim(b, slots, {})) == {}
    silent = {world.a: view.workers[world.a].renewed}
    assert set(world.clerks["b"].answer(Claim(b, slots, silent))) == set(SLOTS)
