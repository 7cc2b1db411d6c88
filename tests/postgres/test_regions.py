"""Regions of classes: all living processes mean the same, and a region's slots are its nodes' alone."""

from contextlib import closing

import pytest

from edgestead.cluster.placement import REGION_SLOTS, SLOTS, slot_of
from edgestead.cluster.slots import Claim, Poll, Register, Renew
from edgestead.objects import ids
from edgestead.postgres import regions
from edgestead.postgres.connection import Link
from edgestead.postgres.regions import RegionsDiffer
from edgestead.postgres.slots import SlotClerk

pytestmark = pytest.mark.usefixtures("patient_leases")

FRA = {"Booking": "fra", "Other": ""}


@pytest.fixture
def dsn(postgres):
    return postgres.emptied()


@pytest.fixture
def link(dsn):
    with closing(Link(dsn)) as made:
        for node, region in (("a", "ams"), ("c", "fra")):
            made.run("INSERT INTO nodes (name, roles, region) VALUES (%s, 'objects', %s)", (node, region))
        yield made


@pytest.fixture
def clerk(dsn):
    with closing(SlotClerk(dsn, "a", 0, "")) as made:
        yield made


def settle(link, classes, node="b", sleep=lambda seconds: None):
    return regions.settle(link, classes, node=node, place=0, sleep=sleep).regions


def test_a_region_has_slots_from_the_first_class_on_that_names_it(link, clerk):
    before = clerk.answer(Poll(-1))

    found = settle(link, FRA)

    assert found.of_class == settle(link, {}, "c").of_class == {"Booking": 1}
    assert settle(link, {"Third": "ams"}).of_class == {"Booking": 1, "Third": 2}
    view = clerk.answer(Poll(before.version))
    assert view.regions == {1: "fra", 2: "ams"}
    assert sorted(view.slots) == list(range(SLOTS, SLOTS + 2 * REGION_SLOTS))


def test_the_map_says_the_region_of_each_worker(link, clerk):
    number = clerk.answer(Register())

    assert clerk.answer(Poll(-1)).workers[number].region == "ams"


def test_a_region_is_not_changed_while_another_process_lives(link, clerk):
    settle(link, FRA)
    number = clerk.answer(Register())

    settled = regions.settle(
        link,
        {"Booking": "", "New": "ams"},
        node="b",
        place=0,
        sleep=lambda seconds: clerk.answer(Renew(number)),
    )

    (words,) = settled.kept
    assert "Booking has no region here, and the region fra in the cluster" in words
    assert settled.classes == {"Booking": "fra", "New": "ams"}
    assert settle(link, FRA, "c").of_class == settled.regions.of_class == {"Booking": 1, "New": 2}
    regions.check(link, settled.classes)


@pytest.mark.parametrize(("before", "after"), [("", "fra"), ("fra", "ams"), ("fra", "")])
def test_a_region_that_changes_takes_the_objects_of_its_class_along_from_processes_that_are_dead(
    link, clerk, before, after
):
    settle(link, {"Booking": before, "Other": ""})
    dead = clerk.answer(Register())
    for number, name in enumerate(("Booking", "Other"), 1):
        ref = ids.from_name(name, "friday")
        link.run(
            "INSERT INTO objects (number, slot, class, id) VALUES (%b, 0, %b, %b)",
            (number, name.encode(), ref.id.encode()),
        )

    found = settle(link, {"Booking": after})

    slot = slot_of(ids.from_name("Booking", "friday").id, found.of_class.get("Booking", 0))
    assert link.rows("SELECT number, slot FROM objects ORDER BY number") == [(1, slot), (2, 0)]
    assert dead not in clerk.answer(Poll(-1)).workers
    assert not clerk.answer(Renew(dead)), "a process that only stood still ends"


def test_a_process_that_knows_an_older_region_does_not_register(dsn, link):
    settle(link, FRA)
    settle(link, {"Booking": "ams"})

    with closing(SlotClerk(dsn, "a", 0, "", registering=lambda at: regions.check(at, FRA))) as late:
        with pytest.raises(RegionsDiffer):
            late.answer(Register())
        assert late.answer(Poll(-1)).workers == {}


def test_the_next_process_of_a_place_inherits_no_slot_of_a_region_that_its_node_has_left(dsn, link):
    settle(link, FRA)
    with closing(SlotClerk(dsn, "c", 0, "")) as clerk:
        first = clerk.answer(Register())
        clerk.answer(Claim(first, {0: None, SLOTS: None}, {}))
        second = clerk.answer(Register())
        assert sorted(s for s, held in clerk.answer(Poll(-1)).slots.items() if held.holder == second) == [
            0,
            SLOTS,
        ]
        link.run("UPDATE nodes SET region = 'nyc' WHERE name = 'c'")

        third = clerk.answer(Register())

        view = clerk.answer(Poll(-1))
        assert [s for s, held in view.slots.items() if held.holder == third] == [0]
        assert view.slots[SLOTS].holder not in view.workers
