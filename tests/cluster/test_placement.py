"""Which worker is wanted for each slot: spread evenly, and moved as little as can be."""

from collections import Counter

from edgestead.cluster.placement import (
    ANYWHERE,
    REGION_SLOTS,
    SLOTS,
    Regions,
    Worker,
    region_of,
    slot_of,
    wanted,
)


def worker(number, node, place=0, *, is_draining=False, region=""):
    return Worker(number, node, place, "", 0, is_draining, region)


ABC = [worker(1, "a"), worker(2, "b"), worker(3, "c")]


def test_the_slot_is_in_the_beginning_of_the_id():
    assert slot_of("fff" + "0" * 61) == SLOTS - 1
    assert slot_of("00a" + "f" * 61) == 10


def test_workers_have_about_the_same_number_of_slots():
    counts = Counter(wanted(ABC))

    assert sorted(counts) == [1, 2, 3]
    assert max(counts.values()) < 1.2 * SLOTS / 3


def test_when_a_worker_goes_only_its_slots_move_to_all_others():
    before, after = wanted(ABC), wanted(ABC[:2])

    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert {old for old, _ in moved} == {3}
    assert {new for _, new in moved} == {1, 2}


def test_the_next_process_of_a_place_is_wanted_for_the_same_slots():
    before, after = wanted(ABC), wanted([*ABC[:2], worker(9, "c")])

    assert after == [9 if number == 3 else number for number in before]


def test_a_draining_worker_is_wanted_for_nothing_unless_all_are():
    assert wanted([*ABC[:2], worker(3, "c", is_draining=True)]) == wanted(ABC[:2])
    assert wanted([worker(1, "a", is_draining=True)]) == [1] * SLOTS
    assert wanted([]) is None


AMS_FRA = [worker(1, "a", region="ams"), worker(2, "b", region="ams"), worker(3, "c", region="fra")]
REGIONS = {1: "fra", 2: "ams", 3: "nyc"}


def of_region(found, number):
    return found[SLOTS + (number - 1) * REGION_SLOTS : SLOTS + number * REGION_SLOTS]


def test_a_class_with_a_region_has_the_slots_of_that_region():
    regions = Regions({"Local": 2})
    last = "ff" + "0" * 62

    assert regions.slot_of("Local", last) == SLOTS + 2 * REGION_SLOTS - 1
    assert regions.slot_of("Other", last) == ANYWHERE.slot_of("Local", last) == slot_of(last)
    assert [region_of(slot) for slot in (SLOTS - 1, SLOTS, SLOTS + REGION_SLOTS)] == [0, 1, 2]


def test_only_workers_of_a_region_are_wanted_for_its_slots_and_none_without_any():
    found = wanted(AMS_FRA, regions=REGIONS)

    assert len(found) == SLOTS + 3 * REGION_SLOTS
    assert set(found[:SLOTS]) == {1, 2, 3}
    assert [set(of_region(found, number)) for number in REGIONS] == [{3}, {1, 2}, {None}]
    assert found[:SLOTS] == wanted(AMS_FRA), "a region moves nothing of what has none"


def test_a_draining_worker_keeps_a_region_that_no_other_could_have():
    drains = [*AMS_FRA[:2], AMS_FRA[2]._replace(is_draining=True)]

    found = wanted(drains, regions=REGIONS)

    assert set(found[:SLOTS]) == {1, 2}
    assert set(of_region(found, 1)) == {3}
