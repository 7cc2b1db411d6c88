"""What every `Log` promises, with its leases and the room for it."""

import msgspec
import pytest

from edgestead.store.objectlog import Commit, CommitKind, Fenced, NoSpace, ObjectRef, Target
from tests.store.contract.object_stores import acquired, asked, found, image_of, keys, listed, pages, put, ref

PAGE_A, PAGE_B, PAGE_C = b"a", b"b", b"c"


def restoring(target):
    return Commit(CommitKind.RESTORE, msgspec.msgpack.encode(target))


def test_an_object_that_was_never_written_starts_empty(objects):
    store = objects.open()

    lease = acquired(store, ref())

    assert (lease.head, lease.tail, lease.alarm_us, lease.session, lease.pending) == (0, {}, None, 0, None)
    assert not lease.has_file
    assert found(store, ref()) is None
    assert listed(store) == []


def test_a_commit_is_durable_when_its_group_says_so_and_not_before(objects):
    store, told = objects.open(), []
    lease = acquired(store, ref())

    group = lease.append([keys(a=b"1")], None)
    group.on_done(told.append)

    assert (group.state, told, lease.head) == ("waiting", [], 1)
    store.log.flush()
    store.log.settle()
    assert (group.state, group.error, told) == ("durable", None, [None])
    group.on_done(told.append)
    assert told == [None, None], "known already, so at once"


def test_what_was_not_flushed_is_gone_with_the_process(objects):
    store = objects.open()
    put(store, acquired(store, ref()), keys(a=b"1"))
    acquired(store, ref("other")).append([keys(a=b"1")], None)

    objects.kill()

    store = objects.open()
    assert acquired(store, ref()).tail == {"a": b"1"}
    assert acquired(store, ref("other")).head == 0


def test_objects_share_a_group_and_have_positions_of_their_own(objects):
    store = objects.open()
    leases = [acquired(store, ref(name)) for name in "abc"]

    groups = {id(lease.append([keys(n=b"1"), keys(n=b"2")], None)) for lease in leases}
    store.log.settle()

    assert len(groups) == 1
    assert [lease.head for lease in leases] == [2, 2, 2]


def test_the_tail_has_the_latest_of_each_key_and_its_absence(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1", b=b"1"), keys(a=b"2"))
    put(store, lease, keys(b=None))

    objects.kill()

    lease = acquired(objects.open(), ref())
    assert (lease.head, lease.tail) == (3, {"a": b"2", "b": None})


def test_pages_are_in_the_file_of_whoever_acquires_after_a_kill_and_later_keys_in_the_tail(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, keys(old=b"1"), pages(PAGE_A, PAGE_B))
    put(store, lease, pages(PAGE_C, total=2), keys(new=b"1"))

    objects.kill()

    lease = acquired(objects.open(), ref())
    assert lease.has_file
    assert [image_of(objects, lease)[at] for at in (0, 4_096)] == [ord("c"), ord("b")]
    assert len(image_of(objects, lease)) == 2 * 4_096
    assert lease.tail == {"new": b"1"}


@pytest.mark.parametrize(
    "use",
    [
        lambda lease: lease.append([keys(a=b"1")], None),
        lambda lease: lease.pin(0),
        lambda lease: lease.put_base(0),
        lambda lease: lease.release({}),
    ],
    ids=["append", "pin", "put_base", "release"],
)
@pytest.mark.parametrize("over", ["acquired", "released"])
def test_a_lease_that_is_over_is_fenced(objects, use, over):
    store = objects.open()
    lease = acquired(store, ref())
    if over == "acquired":
        new = acquired(store, ref())
    else:
        lease.release({})
        new = acquired(store, ref())

    with pytest.raises(Fenced):
        use(lease)

    assert put(store, new, keys(a=b"2")).state == "durable"
    assert (new.head, found(store, ref()).head) == (1, 1)


def test_whoever_takes_an_object_from_its_holder_gets_what_was_acknowledged(objects):
    store = objects.open()
    put(store, acquired(store, ref()), keys(a=b"1"))

    lease = acquired(store, ref())

    assert (lease.head, lease.tail) == (1, {"a": b"1"})


def test_the_next_holder_gets_the_tail_that_the_last_one_left(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1", b=b"1"))

    lease.put_base(1)
    lease.release({})

    assert acquired(store, ref()).tail == {}
    assert found(store, ref()).base == 1


def test_a_file_that_may_hold_refused_commits_is_made_again_from_the_log(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, pages(PAGE_A), keys(a=b"1"))
    file = objects.files.open(lease.path, create=True)
    file.write(b"refused", 0)
    file.close()

    lease.release({"a": b"refused"}, rebuild=True)

    lease = acquired(store, ref())
    assert image_of(objects, lease) == b"a" * 4_096
    assert lease.tail == {"a": b"1"}


def test_the_catalogue_is_in_the_order_of_class_and_id(objects):
    store = objects.open()
    wanted = [ref(name, kind) for kind, name in (("B", "a"), ("A", "b"), ("A", "a"))]
    for number, one in enumerate(wanted):
        put(store, acquired(store, one), keys(a=b"1"), alarm=number)

    everything = listed(store)

    assert [(one.ref, one.head, one.alarm_us) for one in everything] == [
        (wanted[2], 1, 2),
        (wanted[1], 1, 1),
        (wanted[0], 1, 0),
    ]
    assert listed(store, (wanted[2].class_name, wanted[2].id)) == everything[1:]
    assert found(store, wanted[1]) == everything[1]


def test_an_object_keeps_the_name_that_it_was_first_written_with(objects):
    store = objects.open()
    put(store, acquired(store, ref()), keys(a=b"1"))

    objects.kill()

    store = objects.open()
    assert acquired(store, ObjectRef("Counter", ref().id)).ref == ref()


def test_what_is_pending_is_known_until_it_is_forgotten(objects):
    store = objects.open()
    lease = acquired(store, ref())
    target = Target(0, 1)

    put(store, lease, keys(a=b"1"), restoring(target))

    assert lease.pending == found(store, ref()).pending == target
    objects.kill()
    store = objects.open()
    lease = acquired(store, ref())
    assert lease.pending == target
    put(store, lease, restoring(None))
    assert (lease.pending, found(store, ref()).pending) == (None, None)


def test_without_room_only_upkeep_is_taken_and_afterwards_everything(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1"))

    objects.fill(store)

    assert store.room.is_full
    with pytest.raises(NoSpace):
        lease.append([keys(a=b"2")], None)
    assert lease.head == 1
    objects.make_room(store)
    assert not store.room.is_full
    assert put(store, lease, keys(a=b"2")).state == "durable"


def test_nothing_of_a_refused_group_remains(objects):
    store = objects.open()
    lease = acquired(store, ref())
    put(store, lease, pages(PAGE_A), keys(a=b"1"), alarm=7)

    objects.refuse_next()
    group = put(store, lease, pages(PAGE_B), keys(a=b"2"), alarm=8)

    assert (group.state, type(group.error)) == ("refused", NoSpace)
    lease.release({"a": b"2"}, rebuild=True)
    objects.make_room(store)
    lease = acquired(store, ref())
    assert (lease.head, lease.tail, lease.alarm_us) == (2, {"a": b"1"}, 7)
    assert image_of(objects, lease) == b"a" * 4_096
    assert put(store, lease, keys(a=b"3")).state == "durable"
    objects.kill()
    assert acquired(objects.open(), ref()).tail == {"a": b"3"}


def test_only_objects_whose_base_lags_are_asked_to_move_it(objects):
    store = objects.open()
    moved, behind = acquired(store, ref("moved")), acquired(store, ref("behind"))
    put(store, behind, keys(a=b"1"))
    for _ in range(40):
        put(store, moved, keys(a=b"x" * 8_000))
    moved.put_base(moved.head)

    assert set(map(str, store.log.lagging(10))) <= {str(ref("behind"))}
    assert len(store.log.lagging(0)) == 0


def test_closing_makes_everything_durable_and_may_be_repeated(objects):
    store = objects.open()
    lease = acquired(store, ref())
    group = lease.append([keys(a=b"1")], None)

    store.log.close()
    store.log.close()

    assert group.state == "durable"
    assert acquired(objects.open(), ref()).tail == {"a": b"1"}


def test_a_flush_from_within_a_callback_is_taken(objects):
    store, states = objects.open(), []
    lease = acquired(store, ref())

    def again(error):
        states.append(error)
        if len(states) < 3:
            lease.append([keys(a=b"1")], None).on_done(again)
            store.log.flush(here=True)

    lease.append([keys(a=b"1")], None).on_done(again)
    store.log.flush(here=True)
    store.log.settle()

    assert states == [None] * 3
    assert asked(store, lambda done: store.past.check([ref()], done)) == [[]]
