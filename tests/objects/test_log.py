"""The object log: what it acknowledges it keeps, what it keeps it can prove, and what it refuses is gone.

Each rule of `docs/explanation/objects.md`, "The rules of the log", has a test here or in `test_log_faults`.
"""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.format import BLOCK_BYTES, pack_entry, pack_record, seed_of
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.store.objectlog import UNCHANGED, Commit, CommitKind, Fenced, LogDamaged, ObjectRef, Unknown
from edgestead.store.pages import FRAME_HEADER_BYTES, PAGE_BYTES
from edgestead.testing.disks import SimulatedDisk
from tests.objects.logs import SEGMENT_BYTES, Logs, answer, kept, keys, put, ref


def pages(total: int, **images: bytes) -> Commit:
    """A PAGES commit: `p3=b"x"` fills page 3 with x."""
    frames = []
    for index, (name, byte) in enumerate(images.items()):
        size = total if index == len(images) - 1 else 0
        header = int(name[1:]).to_bytes(4, "big") + size.to_bytes(4, "big")
        frames.append(header.ljust(FRAME_HEADER_BYTES, b"\0") + byte * PAGE_BYTES)
    return Commit(CommitKind.PAGES, b"".join(frames))


def fill_segments(log: LocalObjectLog, name: str, count: int) -> None:
    """Write with one object until so many more segments are sealed, moving its base at the end."""
    lease = log.lease(ref(name))
    upto = log.sealed_segments + count
    while log.sealed_segments < upto:
        assert put(log, lease, keys(filler=b"x" * 8_000)).state == "durable"
    lease.put_base(lease.head)
    lease.release({})


def contents(disk: SimulatedDisk, path: str) -> bytes:
    return bytes(disk.inodes[path].data)


# commits


def test_a_commit_is_there_after_a_power_cut(logs: Logs) -> None:
    log = logs.open()
    put(log, log.lease(ref()), keys(a=b"1"), keys(b=b"2"), alarm=5_000)

    logs.power_cut()

    lease = logs.open().lease(ref())
    assert (lease.head, lease.tail, lease.alarm_us) == (2, {"a": b"1", "b": b"2"}, 5_000)


def test_a_commit_without_flush_is_not_acknowledged(log: LocalObjectLog) -> None:
    lease = log.lease(ref())

    group = lease.append([keys(a=b"1")], None)

    assert group.state == "waiting"
    log.flush()
    assert group.state == "durable"


def test_progress_counts_what_was_synced_and_what_waits(log: LocalObjectLog) -> None:
    assert log.progress == (0, 0, 0)
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"), keys(b=b"2"))
    assert log.progress == (1, 3, 0), "the object's name, and two commits"

    lease.append([keys(a=b"1")], None)

    assert log.progress == (1, 3, 1)


def test_a_position_that_was_handed_out_is_logged_once(log: LocalObjectLog) -> None:
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))

    group = lease.pin(1)

    assert group is not None
    assert group.state == "waiting"
    log.flush()
    assert group.state == "durable"
    assert lease.pin(1) is None


def test_groups_share_one_sync(logs: Logs) -> None:
    log = logs.open()
    leases = [log.lease(ref(f"o{number}")) for number in range(10)]
    before = logs.disk.operations

    groups = {id(lease.append([keys(a=b"1")], None)) for lease in leases}
    log.flush()

    assert len(groups) == 1
    assert logs.disk.operations - before == 3  # one write, one sync; the mark, which is not synced


def test_pages_contain_every_earlier_key(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"), pages(2, p1=b"A", p2=b"B"), keys(c=b"3"))

    logs.power_cut()

    again = logs.open().lease(ref())
    assert again.tail == {"c": b"3"}
    assert contents(logs.disk, again.path) == b"A" * PAGE_BYTES + b"B" * PAGE_BYTES


def test_the_newest_image_of_a_page_wins_and_the_file_is_cut(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, pages(3, p1=b"A", p2=b"B", p3=b"C"), pages(2, p2=b"D"))
    logs.disk.open(lease.path, create=True).write(b"x" * 3 * PAGE_BYTES, 0)

    logs.killed()

    path = logs.open().lease(ref()).path
    assert contents(logs.disk, path) == b"A" * PAGE_BYTES + b"D" * PAGE_BYTES


def test_a_leftover_wal_is_never_read(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, pages(1, p1=b"A"))
    logs.disk.open(lease.path + "-wal", create=True).write(b"unacknowledged", 0)

    logs.killed()
    logs.open()

    assert not logs.disk.exists(lease.path + "-wal")


def test_recovery_can_be_cut_off_and_repeated(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, pages(2, p1=b"A", p2=b"B"), keys(c=b"3"))
    logs.killed()
    for step in range(1, 100):
        logs.disk.fail_at, logs.disk.operations = step, 0
        logs.fatal.clear()
        with suppress(BaseException):
            again = logs.open()
            if not logs.fatal:  # behind the recovery: the spare segment
                break
        logs.power_cut(step)
    else:
        pytest.fail("recovery never ended")

    lease = again.lease(ref())

    assert lease.tail == {"c": b"3"}
    assert contents(logs.disk, lease.path) == b"A" * PAGE_BYTES + b"B" * PAGE_BYTES
    assert step > 3


# leases


def test_an_earlier_lease_is_fenced(log: LocalObjectLog) -> None:
    old = log.lease(ref())
    new = log.lease(ref())

    with pytest.raises(Fenced):
        old.append([keys(a=b"1")], None)
    put(log, new, keys(a=b"1"))


def test_who_takes_an_object_from_its_holder_gets_what_was_acknowledged(log: LocalObjectLog) -> None:
    old = log.lease(ref())
    put(log, old, keys(a=b"1"))

    new = log.lease(ref())

    assert (new.head, new.tail) == (1, {"a": b"1"})


def test_a_released_lease_is_fenced(log: LocalObjectLog) -> None:
    lease = log.lease(ref())
    lease.release({})

    with pytest.raises(Fenced):
        lease.append([keys(a=b"1")], None)


def test_a_real_lock_keeps_a_second_process_out(tmp_path: Path) -> None:
    held = LocalFiles().lock(str(tmp_path / "lock"))

    with pytest.raises(BlockingIOError):
        LocalFiles().lock(str(tmp_path / "lock"))
    held.close()
    LocalFiles().lock(str(tmp_path / "lock")).close()


def test_a_folder_has_one_log(logs: Logs) -> None:
    logs.open()

    with pytest.raises(BlockingIOError):
        logs.open()


# records and segments


def test_a_torn_tail_is_dropped_and_a_new_segment_begun(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    segment = logs.disk.inodes["/objects/log/segment-0001.log"]
    end = log._writer.segment.offset  # type: ignore[union-attr]
    mark = bytes(logs.disk.inodes["/objects/log/mark"].data)
    put(log, lease, keys(a=b"2"))
    segment.data[end + 40] ^= 1
    logs.disk.inodes["/objects/log/mark"].data[:] = mark  # nobody was told of the last one

    logs.killed()
    again = logs.open()

    lease = again.lease(ref())
    assert lease.tail == {"a": b"1"}
    assert again._upkeep.generation > 1


def test_a_bad_record_before_an_acknowledged_one_stops_the_start(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    put(log, lease, keys(a=b"2"))
    logs.disk.inodes["/objects/log/segment-0001.log"].data[BLOCK_BYTES + 40] ^= 1
    logs.killed()

    def files() -> dict[str, bytes]:  # but those of SQLite, which puts its own in order
        return {path: bytes(node.data) for path, node in logs.disk.inodes.items() if ".db" not in path}

    before = files()
    with pytest.raises(LogDamaged, match=r"segment-0001\.log"):
        logs.open()

    assert before == files()


@pytest.mark.parametrize("damage", ["header", "last record", "all records", "missing"])
def test_a_damaged_earlier_segment_stops_the_start(logs: Logs, damage: str) -> None:
    log = logs.open()
    lease = log.lease(ref())
    while log.sealed_segments < 2:
        put(log, lease, keys(a=b"x" * 8_000))
    path = "/objects/log/segment-0001.log"
    data = logs.disk.inodes[path].data
    if damage == "header":
        data[9] ^= 1
    elif damage == "last record":
        data[-9_000] ^= 1
        data[-1_000:] = bytes(1_000)
    elif damage == "all records":
        data[BLOCK_BYTES:] = bytes(len(data) - BLOCK_BYTES)
    else:
        del logs.disk.inodes[path]
    logs.killed()

    with pytest.raises(LogDamaged, match=r"segment-000[12]\.log"):
        logs.open()


def test_a_recycled_segments_old_records_never_replay(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    slots = set()
    while log._upkeep.generation < 8:
        put(log, lease, keys(a=b"x" * 8_000))
        lease.put_base(lease.head)
        slots.add(log._upkeep.active.row.slot)  # type: ignore[union-attr]
    assert len(slots) <= 3, "segments are recycled"
    put(log, lease, keys(b=b"last"))
    head = lease.head

    logs.killed()

    again = logs.open().lease(ref())
    assert again.head == head
    assert again.tail.keys() <= {"a", "b"}
    assert again.tail["b"] == b"last"


def test_generations_are_never_used_again(logs: Logs) -> None:
    used = []
    for _ in range(3):
        log = logs.open()
        used.append(log._upkeep.generation)
        lease = log.lease(ref())
        put(log, lease, keys(a=b"1"))
        lease.put_base(lease.head)
        lease.release({})
        log.close()

    assert sorted(set(used)) == used


def test_a_record_of_another_folder_is_no_record(logs: Logs) -> None:
    log = logs.open()
    put(log, log.lease(ref()), keys(a=b"1"))
    offset = log._writer.segment.offset  # type: ignore[union-attr]
    forged = keys(a=b"forged")
    entry = pack_entry(1, 2, forged.kind, UNCHANGED, len(forged.body)) + forged.body
    foreign = pack_record(seed_of(b"another folder !", 1), 2, 1, 1, entry)
    logs.disk.inodes["/objects/log/segment-0001.log"].write(foreign, offset)

    logs.killed()

    assert logs.open().lease(ref()).head == 1


def test_a_group_larger_than_a_segment_gets_one_of_its_own(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))

    group = put(log, lease, keys(big=b"x" * 200_000))
    put(log, lease, keys(c=b"3"))

    assert group.state == "durable"
    logs.power_cut()
    assert logs.open().lease(ref()).tail == {"a": b"1", "big": b"x" * 200_000, "c": b"3"}


# retirement


def test_a_segment_goes_only_when_every_base_has_it(logs: Logs) -> None:
    log = logs.open()
    slow = log.lease(ref("slow"))
    put(log, slow, keys(a=b"1"))

    fill_segments(log, "busy", 3)

    assert log.sealed_segments == 3
    assert log.lagging(10) == [ref("slow")]
    slow.put_base(slow.head)
    assert log.sealed_segments == 0


def test_after_a_start_only_objects_with_a_tail_hold_segments_back(logs: Logs) -> None:
    log = logs.open()
    put(log, log.lease(ref("pages")), pages(1, p1=b"A"))
    put(log, log.lease(ref("keys")), keys(a=b"1"))
    logs.killed()

    log = logs.open()

    assert log.sealed_segments == 1
    assert log.lagging(10) == [ref("keys")]


def test_segments_that_cannot_go_cost_no_sync(logs: Logs) -> None:
    log = logs.open()
    slow = log.lease(ref("slow"))
    put(log, slow, keys(a=b"1"))
    fill_segments(log, "busy", 2)
    operations: list[tuple[str, str]] = []
    logs.disk.fails_on = lambda operation, path: operations.append((operation, path)) is not None

    log.tend()

    assert ("sync", "/objects/data") not in operations
    slow.put_base(slow.head)
    assert ("sync", "/objects/data") in operations


def test_what_is_retired_is_synced_and_written_down_first(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, pages(1, p1=b"A"), alarm=7_000)
    logs.disk.open(lease.path, create=True).write(b"A" * PAGE_BYTES, 0)
    lease.put_base(lease.head)

    fill_segments(log, "busy", 2)

    for seed in range(10):
        logs.power_cut(seed)
        log = logs.open()
        again = log.lease(ref())
        assert (again.head, again.alarm_us, again.ref.name) == (1, 7_000, "one")
        assert contents(logs.disk, again.path) == b"A" * PAGE_BYTES


def test_a_base_that_moved_is_written_down_even_if_the_rest_was_before(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    log._catalogue.settle(log._directory.rows(), ())
    log._directory.settled(log._directory.rows())
    lease.put_base(1)
    fill_segments(log, "busy", 2)
    put(log, lease, keys(a=b"2"))

    logs.killed()

    again = logs.open().lease(ref())
    assert (again.head, again.tail) == (2, {"a": b"2"})


def test_after_a_clean_end_there_is_nothing_to_recover(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.put_base(lease.head)
    lease.release({})
    log.close()

    log = logs.open()

    assert log.sealed_segments == 0
    assert log.lease(ref()).head == 1


def test_a_tail_survives_a_clean_end(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.release({"a": b"1"})
    log.close()

    log = logs.open()

    assert log.lagging(1) == [ref()]
    assert log.lease(ref()).tail == {"a": b"1"}


# what the log knows


def test_the_past_has_each_commit_with_what_it_did_to_the_alarm(log: LocalObjectLog) -> None:
    lease = log.lease(ref())
    for number in range(5):
        put(log, lease, keys(n=b"%d" % number), alarm=number + 1)

    commits = kept(log, ref(), 1, 3)

    assert [(c.position, c.kind, c.alarm) for c in commits] == [
        (2, CommitKind.KEYS, 2),
        (3, CommitKind.KEYS, 3),
    ]


def test_a_commit_is_kept_when_its_segment_is_gone(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    lease.put_base(1)
    fill_segments(log, "busy", 2)

    assert not log.sealed_segments
    assert [c.position for c in kept(log, ref(), 0, 1)] == [1]
    with pytest.raises(Unknown):
        kept(log, ref("nobody"), 0, 1)


def test_position_at_finds_by_time_and_survives_a_clock_that_steps_back(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"))
    first = kept(log, ref(), 0, 1)[0].time_us
    logs.clock = iter(range(10, 10_000))  # type: ignore[assignment]
    put(log, lease, keys(a=b"2"))

    times = [commit.time_us for commit in kept(log, ref(), 0, 2)]

    assert times == [first, first], "positions order, never the clock"
    assert answer(lambda done: log.past.position_at(ref(), first, done)).position == 2
    assert answer(lambda done: log.past.position_at(ref(), first - 1, done)).position == 0


def test_the_catalogue_lists_old_and_new_objects_in_order(logs: Logs) -> None:
    log = logs.open()
    for name in ("b", "a"):
        lease = log.lease(ref(name))
        put(log, lease, keys(k=b"v"))
        lease.put_base(1)
        lease.release({})
    log.close()
    log = logs.open()
    put(log, log.lease(ref("c", "Other")), keys(k=b"v"), alarm=9)
    put(log, log.lease(ref("b")), keys(k=b"w"))
    log.lease(ref("never written"))

    entries = [(e.ref.class_name, e.ref.name, e.head, e.alarm_us) for e in log.entries()]

    assert entries == [("Counter", "a", 1, None), ("Counter", "b", 2, None), ("Other", "c", 1, 9)]


def test_alarms_are_found_after_a_restart(logs: Logs) -> None:
    log = logs.open()
    for name, time_us in (("a", 30), ("b", 10), ("c", 20), ("d", 99)):
        put(log, log.lease(ref(name)), keys(), alarm=time_us)
    lease = log.lease(ref("c"))
    put(log, lease, keys(), alarm=None)
    logs.killed()

    log = logs.open()

    assert log.store.alarms.next_us() == 10
    assert log.store.alarms.take(50, 1) == [(10, ref("b"))]
    assert log.store.alarms.take(50, 10) == [(30, ref("a"))], "each only once"
    log.store.alarms.give_back(ref("b"))
    assert log.store.alarms.take(50, 10) == [(10, ref("b"))]


@pytest.mark.parametrize("seed", range(5))
def test_any_history_comes_back_as_it_was_acknowledged(logs: Logs, seed: int) -> None:
    chance = random.Random(seed)
    model: dict[ObjectRef, dict[str, bytes]] = {}
    for _ in range(4):
        log = logs.open()
        for _ in range(chance.randrange(40)):
            which = ref(f"o{chance.randrange(4)}")
            lease = log.lease(which)
            state = model.setdefault(which, {})
            key, value = f"k{chance.randrange(5)}", chance.randbytes(chance.randrange(1, 3_000))
            put(log, lease, keys(**{key: value}))
            state[key] = value
            lease.release({**lease.tail, key: value})
        logs.power_cut(chance.randrange(1_000))
    log = logs.open()

    for which, state in model.items():
        assert log.lease(which).tail == state


def test_a_group_that_is_too_large_for_a_segment_nothing_was_written_to_is_recovered(logs: Logs) -> None:
    log = logs.open()
    lease = log.lease(ref())
    assert put(log, lease, keys(a=b"x" * SEGMENT_BYTES * 2)).state == "durable"
    put(log, lease, keys(b=b"1"))
    logs.killed()

    again = logs.open()
    assert again.lease(ref()).tail == {"a": b"x" * SEGMENT_BYTES * 2, "b": b"1"}
    assert logs.fatal == []
