"""What every `Alarms` promises."""

import pytest

from edgestead.store.objectlog import UNCHANGED
from tests.store.contract.object_stores import acquired, keys, put, ref

FAR = 10**9


def set_alarms(store, **times):
    """An object for each name, with its lease."""
    leases = {name: acquired(store, ref(name)) for name in times}
    for name, time_us in times.items():
        put(store, leases[name], keys(a=b"1"), alarm=time_us)
    return leases


def test_due_alarms_are_taken_once_the_earliest_first(objects):
    store = objects.open()
    set_alarms(store, a=30, b=10, c=20, d=50)

    assert store.alarms.next_us() == 10
    assert store.alarms.take(40, 2) == [(10, ref("b")), (20, ref("c"))]
    assert store.alarms.take(40, 2) == [(30, ref("a"))]
    assert store.alarms.take(40, 2) == []
    assert store.alarms.next_us() == 50


def test_an_alarm_is_due_at_its_time(objects):
    store = objects.open()
    set_alarms(store, a=30)

    assert store.alarms.take(29, 1) == []
    assert store.alarms.take(30, 1) == [(30, ref("a"))]


def test_one_that_is_given_back_may_be_taken_again(objects):
    store = objects.open()
    set_alarms(store, a=30)
    store.alarms.take(FAR, 1)

    store.alarms.give_back(ref("a"))
    store.alarms.give_back(ref("a"))

    assert store.alarms.next_us() == 30
    assert store.alarms.take(FAR, 2) == [(30, ref("a"))]


def test_giving_back_what_nobody_took_changes_nothing(objects):
    store = objects.open()
    set_alarms(store, a=30, b=None)

    for name in ("a", "b", "never"):
        store.alarms.give_back(ref(name))

    assert store.alarms.take(FAR, 9) == [(30, ref("a"))]


@pytest.mark.parametrize("then", [30, 40])
def test_one_that_is_set_again_may_be_taken_again(objects, then):
    store = objects.open()
    leases = set_alarms(store, a=30)
    store.alarms.take(FAR, 1)

    put(store, leases["a"], keys(a=b"2"), alarm=then)

    assert store.alarms.take(FAR, 2) == [(then, ref("a"))]


@pytest.mark.parametrize("taken", [False, True])
def test_a_deleted_alarm_is_never_due(objects, taken):
    store = objects.open()
    leases = set_alarms(store, a=30)
    if taken:
        store.alarms.take(FAR, 1)

    put(store, leases["a"], keys(a=b"2"), alarm=None)
    store.alarms.give_back(ref("a"))

    assert (store.alarms.next_us(), store.alarms.take(FAR, 1)) == (None, [])


def test_a_commit_that_leaves_the_alarm_leaves_it(objects):
    store = objects.open()
    leases = set_alarms(store, a=30)
    store.alarms.take(FAR, 1)

    put(store, leases["a"], keys(a=b"2"), alarm=UNCHANGED)

    assert store.alarms.take(FAR, 1) == []


def test_each_alarm_that_is_set_is_told(objects):
    store, told = objects.open(), []
    store.alarms.on_set = told.append

    leases = set_alarms(store, a=30, b=None)
    put(store, leases["a"], keys(a=b"2"), alarm=20)

    assert told == [30, 20]


def test_alarms_outlive_the_process_and_being_taken_does_not(objects):
    store = objects.open()
    set_alarms(store, a=30, b=10, c=None)
    store.alarms.take(FAR, 1)

    objects.kill()

    store = objects.open()
    assert store.alarms.take(FAR, 9) == [(10, ref("b")), (30, ref("a"))]
