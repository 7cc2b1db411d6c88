"""What every `Past` promises."""

import pytest

from edgestead.store.objectlog import CommitKind, Target, TooLarge, Unknown
from edgestead.store.pages import PAGE_BYTES
from edgestead.store.past import END_OF_SESSION
from tests.store.contract.object_stores import acquired, asked, image_of, keys, pages, put, ref

EVER = 2**62


def written(objects, *commits):
    """A store, the lease of its one object, and the time of each commit."""
    store = objects.open()
    lease = acquired(store, ref())
    for commit in commits:
        put(store, lease, commit)
    found = moments(store)
    return store, lease, [one.time_us for one in reversed(found)]


def moments(store, since_us=0, until_us=EVER, limit=100):
    return asked(store, lambda done: store.past.moments(ref(), since_us, until_us, limit, done))


def locate(store, target, generation=0):
    return asked(store, lambda done: store.past.locate(ref(), target, generation, done))


def recall(store, position, session=0):
    found, state = asked(store, lambda done: store.past.recall(ref(), Target(session, position), 0, done))
    assert found.position == state.position
    return state


def restore(store, lease, state):
    return asked(store, lambda done: store.past.restore(lease, state, lambda error: done(None, error)))


def test_moments_are_told_newest_first_within_two_times(objects):
    store, _, times = written(objects, keys(a=b"1"), pages(b"a"), keys(a=b"2"))

    found = moments(store)

    assert [(one.position, one.kind, one.session) for one in found] == [
        (3, CommitKind.KEYS, 0),
        (2, CommitKind.PAGES, 0),
        (1, CommitKind.KEYS, 0),
    ]
    assert times == sorted(times)
    assert [one.position for one in moments(store, times[1], times[1])] == [2]
    assert [one.position for one in moments(store, limit=2)] == [3, 2]


def test_times_never_go_back_though_the_clock_does(objects):
    store, lease, (first,) = written(objects, keys(a=b"1"))
    objects.set_time(10)

    put(store, lease, keys(a=b"2"))

    assert [one.time_us for one in moments(store)] == [first, first]


def test_a_time_finds_the_last_commit_at_or_before_it(objects):
    store, _, times = written(objects, keys(a=b"1"), keys(a=b"2"))

    def at(time_us):
        return asked(store, lambda done: store.past.position_at(ref(), time_us, done)).position

    assert [at(times[0] - 1), at(times[0]), at(times[1] - 1), at(times[1]), at(EVER)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("position", [0, 1, 2, END_OF_SESSION])
def test_a_position_that_was_there_is_located(objects, position):
    store, _, _ = written(objects, keys(a=b"1"), keys(a=b"2"))

    assert locate(store, Target(0, position)).position == min(position, 2)


@pytest.mark.parametrize("target", [Target(0, 3), Target(1, 1), Target(1, END_OF_SESSION)])
def test_what_was_never_there_is_unknown(objects, target):
    store, _, _ = written(objects, keys(a=b"1"), keys(a=b"2"))

    with pytest.raises(Unknown):
        locate(store, target)


def test_a_state_that_is_larger_than_its_reader_can_take_is_refused(objects):
    store, *_ = written(objects, keys(a=b"1"), pages(b"a", b"b", b"c"))

    def within(bytes_max, position):
        target = Target(0, position)
        return asked(store, lambda done: store.past.recall(ref(), target, 0, done, bytes_max=bytes_max))

    assert len(within(3 * PAGE_BYTES, 2)[1].image) == 3 * PAGE_BYTES
    assert within(0, 1)[1].tail == {"a": b"1"}
    with pytest.raises(TooLarge):
        within(3 * PAGE_BYTES - 1, 2)


def test_an_object_that_was_never_written_has_no_past(objects):
    store = objects.open()

    for ask in (
        lambda done: store.past.locate(ref(), Target(0, 0), 0, done),
        lambda done: store.past.position_at(ref(), EVER, done),
        lambda done: store.past.moments(ref(), 0, EVER, 1, done),
        lambda done: store.past.recall(ref(), Target(0, 0), 0, done),
        lambda done: store.past.check([ref()], done),
    ):
        with pytest.raises(Unknown):
            asked(store, ask)


def test_every_state_is_recalled(objects):
    store, lease, _ = written(objects, keys(a=b"1"), pages(b"a", b"b"), keys(b=b"1"), pages(b"c", total=1))
    put(store, lease, keys(b=None), alarm=5)

    states = [recall(store, position) for position in range(6)]

    assert [(bytes(one.image[::4_096]), one.tail, one.alarm_us) for one in states] == [
        (b"", {}, None),
        (b"", {"a": b"1"}, None),
        (b"ab", {}, None),
        (b"ab", {"b": b"1"}, None),
        (b"c", {}, None),
        (b"c", {"b": None}, 5),
    ]


def test_a_restored_object_is_what_it_was_in_a_session_of_its_own(objects):
    store, lease, _ = written(objects, pages(b"a", b"b"), keys(a=b"1"))
    put(store, lease, pages(b"c", total=1), alarm=9)

    restore(store, lease, recall(store, 2))

    assert (lease.session, lease.alarm_us, lease.pending) == (1, None, None)
    assert image_of(objects, lease)[::4_096] == b"ab"
    state = recall(store, END_OF_SESSION, session=1)
    assert (bytes(state.image[::4_096]), state.tail, state.alarm_us) == (b"ab", {"a": b"1"}, None)
    newest, *older = moments(store)
    assert (newest.kind, newest.session, newest.position) == (CommitKind.RESTORED, 1, lease.head)
    assert [one.position for one in older] == [3, 2, 1], "the way there is no moment"
    objects.kill()
    lease = acquired(objects.open(), ref())
    assert (lease.session, lease.tail, lease.alarm_us) == (1, {"a": b"1"}, None)
    assert image_of(objects, lease)[::4_096] == b"ab"


def test_a_restore_is_undone_by_the_end_of_the_session_before(objects):
    store, lease, _ = written(objects, keys(a=b"1"), keys(a=b"2"))
    restore(store, lease, recall(store, 1))

    before = recall(store, END_OF_SESSION)
    restore(store, lease, before)

    assert (before.tail, lease.session) == ({"a": b"2"}, 2)
    assert recall(store, END_OF_SESSION, session=2).tail == {"a": b"2"}


def test_a_pinned_position_says_so_and_is_pinned_once(objects):
    store, lease, _ = written(objects, keys(a=b"1"), keys(a=b"2"))

    group = lease.pin(1)
    again = lease.pin(1)
    store.log.flush()
    store.log.settle()

    assert group.state == "durable"
    assert again is None
    assert [(one.position, one.pinned) for one in moments(store)] == [(2, False), (1, True)]


def test_nothing_is_wrong_with_what_is_kept(objects):
    store, _, _ = written(objects, keys(a=b"1"), pages(b"a"))
    put(store, acquired(store, ref("other")), keys(a=b"1"))

    assert asked(store, lambda done: store.past.check([ref(), ref("other")], done)) == [[], []]
    assert asked(store, store.past.check_all) == []
