"""Objects in a cluster's database: take-overs, lost answers, bases, and what a stopped process leaves."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, ClassVar

import msgspec
import psycopg
import pytest

from edgestead.cluster.placement import SLOTS, slot_of
from edgestead.postgres.connection import CONNECT_SECONDS_MAX, Away, Link, Unknown
from edgestead.postgres.incarnations import IDLE_MS_MAX
from edgestead.postgres.objectlog import bases, opening
from edgestead.postgres.objectlog import log as log_module
from edgestead.postgres.objectlog.book import PostgresBook
from edgestead.postgres.objectlog.committer import GROUP_ROWS_MAX, HOLD_SECONDS
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.store.objectlog import (
    UNCHANGED,
    Commit,
    CommitKind,
    Fenced,
    LogAway,
    LogBroken,
    LogDamaged,
    LogError,
    NoSpace,
    Target,
    WrongOwner,
)
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.store.runner import Done, InlineRunner, Job
from edgestead.testing.disks import SimulatedDisk
from tests.store.contract.object_stores import acquired, asked, keys, pages, put, ref
from tests.support.postgres import Postgres


class Losing(Link):
    """A connection whose next appends end as `ends` says, each with an outcome of its own."""

    ends: ClassVar[list[str]] = []
    before: ClassVar[
        dict[str, Callable[[], Any]]
    ] = {}  # done once, before the first statement that begins so

    def _execute(self, statement: str, parameters: Any, **options: Any) -> Any:  # type: ignore[override]
        for beginning in [one for one in Losing.before if statement.startswith(one)]:
            Losing.before.pop(beginning)()
        if "INTO object_log" not in statement or not Losing.ends:
            return super()._execute(statement, parameters, **options)
        end = Losing.ends.pop(0)
        if end == "away":
            raise Away("refused")
        if end == "full":
            raise Away("no space") from psycopg.errors.DiskFull("no space")
        if end == "lost after COMMIT":
            super()._execute(statement, parameters, **options)
        raise Unknown("the connection was lost")


class Owner:
    def __init__(self, number: int) -> None:
        self.number, self.slots, self.answers = number, set(range(SLOTS)), True

    def owns(self, slot: int) -> bool:
        return slot in self.slots

    def may_answer(self) -> bool:
        return self.answers


class LaterRunner(InlineRunner):
    """Runs its jobs when it is drained."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Job, Done]] = []

    def run(self, job: Job, done: Done) -> None:
        self.jobs.append((job, done))

    def drain(self) -> None:
        while self.jobs:
            super().run(*self.jobs.pop(0))


class Cluster:
    """Processes that take one another's place."""

    def __init__(self, dsn: str) -> None:
        self.dsn, self.link = dsn, Link(dsn)
        self.logs: list[PostgresObjectLog] = []
        self.fatal: list[BaseException] = []
        self.now_us = 10_000_000
        self.paused: list[float] = []
        Losing.ends, Losing.before = [], {}

    def begin(self, writer: InlineRunner | None = None, **options: Any) -> PostgresObjectLog:
        """Another process, beside those that live."""
        owner = Owner(len(self.logs) + 1)
        self.link.run(
            "INSERT INTO incarnations (number, node, kind, address, renewed) "
            "VALUES (%b, 'a', 'objects', '', 0)",
            (owner.number,),
        )
        log = PostgresObjectLog(
            self.dsn,
            f"/objects/{owner.number}",
            owner=owner,
            writer=writer or InlineRunner(),
            now_us=self._now_us,
            fatal=self.fatal.append,
            link=Losing,
            **({"files": SimulatedDisk(), "reader": InlineRunner(), "upkeep": InlineRunner()} | options),
        )
        log._committer._pause = self.paused.append
        log.gained(range(SLOTS))
        self.logs.append(log)
        return log

    def take_over(self, **options: Any) -> PostgresObjectLog:
        """The row of every other process is gone; a new one begins."""
        self.link.run("DELETE FROM incarnations")
        return self.begin(**options)

    def _now_us(self) -> int:
        self.now_us += 1_000
        return self.now_us

    def close(self) -> None:
        for log in self.logs:
            log.abandon()
        self.link.close()


@pytest.fixture
def cluster(postgres: Postgres) -> Iterator[Cluster]:
    with closing(Cluster(postgres.emptied())) as made:
        yield made


def test_an_append_behind_a_take_over_is_fenced_and_nothing_of_it_lands(cluster: Cluster) -> None:
    zombie = cluster.begin().store
    lease = acquired(zombie, ref())
    put(zombie, lease, keys(a=b"1"), alarm=5)

    successor = cluster.take_over().store
    group = put(zombie, lease, keys(a=b"2"), alarm=9)

    assert (group.state, type(group.error)) == ("refused", Fenced)
    assert isinstance(cluster.fatal[0], Fenced)
    with pytest.raises(LogBroken):
        lease.append([keys(a=b"3")], UNCHANGED)
    new = acquired(successor, ref())
    assert (new.head, new.tail, new.alarm_us) == (1, {"a": b"1"}, 5)
    assert put(successor, new, keys(a=b"4")).state == "durable"


def test_a_second_writer_with_a_row_of_its_own_meets_the_first_ones_rows(cluster: Cluster) -> None:
    one, other = cluster.begin().store, cluster.begin().store
    leases = acquired(one, ref()), acquired(other, ref())
    put(one, leases[0], keys(a=b"1"))

    group = put(other, leases[1], keys(a=b"2"))

    assert isinstance(group.error, Fenced)


def test_another_process_may_not_make_bases_or_thin_any_more(cluster: Cluster) -> None:
    zombie = cluster.begin(base_bytes=-1)
    lease = acquired(zombie.store, ref())
    cluster.link.run("DELETE FROM incarnations")
    group = put(zombie.store, lease, keys(a=b"1"))
    assert isinstance(group.error, Fenced)
    zombie.past.tend(list(range(SLOTS)), 2**60)
    assert cluster.link.rows("SELECT * FROM object_bases") == []


@pytest.mark.parametrize("end", ["lost before COMMIT", "lost after COMMIT"])
def test_what_became_of_a_lost_append_is_read_by_the_next_process(cluster: Cluster, end: str) -> None:
    store = cluster.begin().store
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1"))

    Losing.ends = [end]
    group = put(store, lease, keys(a=b"2"))

    assert isinstance(group.error, LogBroken)
    assert len(cluster.fatal) == 1
    again = acquired(cluster.take_over().store, ref())
    assert again.tail == {"a": b"2" if end == "lost after COMMIT" else b"1"}


def test_a_database_that_is_away_for_a_moment_delays_a_group(cluster: Cluster) -> None:
    store = cluster.begin().store
    Losing.ends = ["away"] * 3

    assert put(store, acquired(store, ref()), keys(a=b"1")).state == "durable"
    assert len(cluster.paused) == 3


def test_a_database_that_stays_away_refuses_and_later_takes_the_object_up_again(cluster: Cluster) -> None:
    store = cluster.begin().store
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1"), alarm=7)
    Losing.ends = ["away"] * 50

    group = put(store, lease, keys(a=b"2"), alarm=8)

    assert (type(group.error), cluster.fatal) == (LogAway, [])
    lease.release({}, rebuild=True)
    again = acquired(store, ref())
    assert (again.head, again.tail, again.alarm_us, store.alarms.next_us()) == (1, {"a": b"1"}, 7, 7)
    assert put(store, again, keys(a=b"3")).state == "durable"


def test_a_group_waits_no_longer_for_a_machine_that_does_not_answer_than_for_one_that_refuses(
    cluster: Cluster,
) -> None:
    log, seconds = cluster.begin(), [0.0]
    lease, committer = acquired(log.store, ref()), log._committer
    committer._clock = lambda: seconds[0]

    def no_answer(seconds_of_pause: float) -> None:
        seconds[0] += seconds_of_pause + CONNECT_SECONDS_MAX

    committer._pause = no_answer
    Losing.ends = ["away"] * 50

    assert type(put(log.store, lease, keys(a=b"1")).error) is LogAway
    assert seconds[0] < HOLD_SECONDS + 2 * CONNECT_SECONDS_MAX


def test_a_past_that_cannot_be_asked_is_not_said_to_be_gone(cluster: Cluster) -> None:
    store = cluster.begin().store
    lease = acquired(store, ref())
    put(store, lease, keys(a=b"1"))

    def away() -> None:
        raise Away("refused")

    Losing.before = {"BEGIN": away}
    with pytest.raises(LogAway):
        asked(store, lambda done: store.past.recall(ref(), Target(0, 1), lease.life, done))
    _, state = asked(store, lambda done: store.past.recall(ref(), Target(0, 1), lease.life, done))
    assert state.tail == {"a": b"1"}


def test_a_full_database_refuses_until_a_probe_finds_room(cluster: Cluster) -> None:
    log = cluster.begin()
    lease = acquired(log.store, ref())
    Losing.ends = ["full"]

    group = put(log.store, lease, keys(a=b"1"))

    assert (type(group.error), log.room.is_full, cluster.fatal) == (NoSpace, True, [])
    log.tend()
    assert not log.room.is_full
    lease.release({}, rebuild=True)
    assert put(log.store, acquired(log.store, ref()), keys(a=b"1")).state == "durable"


def test_what_waits_behind_a_refused_group_is_refused_with_it(cluster: Cluster) -> None:
    store = cluster.begin(LaterRunner()).store
    one, other = acquired(store, ref("one")), acquired(store, ref("other"))
    Losing.ends = ["full"]

    first = one.append([keys(a=b"1")], UNCHANGED)
    store.log.flush()
    groups = [first, one.append([keys(a=b"2")], UNCHANGED), other.append([keys(a=b"1")], UNCHANGED)]
    store.log.settle()

    assert [group.state for group in groups] == ["refused"] * 3
    for lease in (one, other):
        lease.release({}, rebuild=True)
        assert acquired(store, lease.ref).head == 0


def test_what_waits_behind_a_refused_group_is_not_written_by_who_hears_of_it(cluster: Cluster) -> None:
    """A reset object has the log flushed, while what it appended behind the refused commit still waits."""
    store = cluster.begin(LaterRunner()).store
    one, other = acquired(store, ref("one")), acquired(store, ref("other"))
    refused: list[Any] = []

    def flush(error: LogError | None) -> None:
        store.log.flush()
        with pytest.raises(LogError):
            other.append([keys(a=b"2")], UNCHANGED)
        refused.append(error)

    Losing.ends = ["away"] * 50
    first = one.append([keys(a=b"1")], UNCHANGED)
    first.on_done(flush)
    store.log.flush()
    groups = [first, one.append([keys(b=b"2")], UNCHANGED), other.append([keys(a=b"1")], UNCHANGED)]
    store.log.settle()

    assert len(refused) == 1
    assert [group.state for group in groups] == ["refused"] * 3
    assert cluster.link.rows("SELECT position FROM object_log") == []


def test_an_object_is_not_read_before_a_full_group_that_waits(cluster: Cluster) -> None:
    """Behind it an empty group has begun, for a commit that was too large after all."""
    log = cluster.begin(LaterRunner())
    acquired(log.store, ref()).append([keys(a=b"1")] * GROUP_ROWS_MAX, UNCHANGED)
    log.check_room()
    told: list[Any] = []

    log.acquire(ref(), lambda lease, error: told.append(lease))
    log.settle()

    assert [lease.head for lease in told] == [GROUP_ROWS_MAX]


def test_commits_of_several_groups_are_written_in_order(cluster: Cluster) -> None:
    log = cluster.begin(LaterRunner())
    lease = acquired(log.store, ref())
    groups = {id(lease.append([keys(n=b"%d" % number)], UNCHANGED)) for number in range(2_500)}

    log.flush()
    log.settle()

    assert len(groups) == 3
    assert log.progress == (3, 2_500, 0)
    assert acquired(cluster.take_over().store, ref()).tail == {"n": b"2499"}


def test_an_object_that_is_taken_from_its_holder_waits_for_what_is_in_flight(cluster: Cluster) -> None:
    log = cluster.begin(LaterRunner())
    lease = acquired(log.store, ref())
    group = lease.append([keys(a=b"1")], UNCHANGED)
    told: list[Any] = []

    log.acquire(ref(), lambda new, error: told.append(new))

    assert (group.state, told) == ("waiting", [])
    with pytest.raises(Fenced):
        lease.append([keys(a=b"2")], UNCHANGED)
    log.settle()
    assert (group.state, told[0].head, told[0].tail) == ("durable", 1, {"a": b"1"})


def test_who_acquires_while_an_object_is_opened_has_its_keys(cluster: Cluster) -> None:
    lease = acquired(cluster.begin().store, ref())
    put(cluster.logs[0].store, lease, keys(a=b"1"))
    reader = LaterRunner()
    log, told = cluster.take_over(reader=reader), list[Any]()
    reader.drain()

    log.acquire(ref(), lambda lease, error: told.append(lease))  # and its caller goes away
    log.acquire(ref(), lambda lease, error: told.append(lease))
    reader.drain()

    gone, counts = told
    assert counts.tail == {"a": b"1"}
    with pytest.raises(Fenced):
        gone.release(gone.tail)
    counts.release(counts.tail)
    assert acquired(log.store, ref()).tail == {"a": b"1"}


def test_a_cached_file_that_is_gone_is_made_again(cluster: Cluster) -> None:
    log = cluster.begin()
    lease = acquired(log.store, ref())
    put(log.store, lease, pages(b"a"))
    lease.release({})
    log._files.remove(lease.path)

    again = acquired(log.store, ref())

    assert again.head == 1
    assert _file(log, again.path) == b"a" * PAGE_BYTES


def test_the_keys_that_stay_in_memory_of_objects_without_a_life_are_bounded(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "TAILS_BYTES_MAX", 2_500)
    log = cluster.begin()
    for turn in range(3):
        for number in range(4):
            lease = acquired(log.store, ref(str(number)))
            assert len(lease.tail) == turn
            put(log.store, lease, keys(**{f"k{turn}": bytes(1_000)}))
            lease.release({**lease.tail, f"k{turn}": bytes(1_000)})
            kept = [sum(map(len, filter(None, known.tail.values()))) for known in log._known.values()]
            assert sum(kept) <= 2_500
            assert log._tail_bytes == sum(log._tails.values())
    assert acquired(log.store, ref("3")).head == 3


def test_the_rows_of_one_object_are_in_memory_while_many_are_checked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, together = cluster.begin(), list[int]()
    refs = [ref(str(number)) for number in range(3)]
    for one in refs:
        put(log.store, acquired(log.store, one), keys(a=b"1"))
    read = PostgresBook._log_blocks

    def noted(book: PostgresBook, number: int) -> Any:
        found = read(book, number)
        together.append(len(book._logged))
        return found

    monkeypatch.setattr(PostgresBook, "_log_blocks", noted)

    assert asked(log.store, lambda done: log.past.check(refs, done)) == [[], [], []]
    assert max(together) == 1
    assert not log.past._book._logged


def test_no_file_is_thrown_away_that_is_just_being_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = LaterRunner()
    log, told = cluster.begin(reader=reader), list[Any]()
    lease = acquired(log.store, ref())
    put(log.store, lease, pages(b"a"))
    lease.release({}, rebuild=True)
    monkeypatch.setattr(log_module, "CACHED_MAX", 1)
    for one in (ref("another"), ref()):
        log.acquire(one, lambda lease, error: told.append(lease))

    read = [job() for job, _ in reader.jobs]  # both, before the first answer is told
    for (_, done), result in zip(reader.jobs, read, strict=True):
        done(result, None)
    reader.jobs.clear()

    assert _file(log, told[-1].path) == b"a" * PAGE_BYTES


def test_an_object_of_another_process_is_refused(cluster: Cluster) -> None:
    log = cluster.begin()
    log._owner.slots.discard(slot_of(ref().id))  # type: ignore[attr-defined]

    with pytest.raises(WrongOwner):
        acquired(log.store, ref())


def test_a_slot_that_was_given_away_is_read_anew_when_it_comes_back(cluster: Cluster) -> None:
    one, other = cluster.begin(), cluster.begin()
    slot = slot_of(ref().id)
    lease = acquired(one.store, ref())
    put(one.store, lease, pages(b"a"), keys(a=b"1"), alarm=5)
    assert one.holds(slot)
    lease.release({"a": b"1"})
    assert not one.holds(slot)

    one.gone([slot])
    assert one.store.alarms.next_us() is None
    theirs = acquired(other.store, ref())
    put(other.store, theirs, pages(b"b"), alarm=6)
    theirs.release({})
    other.gone([slot])
    one.gained([slot])

    assert one.store.alarms.next_us() == 6
    back = acquired(one.store, ref())
    assert (back.head, back.tail, back.alarm_us) == (3, {}, 6)
    assert _file(one, back.path) == b"b" * PAGE_BYTES


def test_a_lease_that_is_left_when_its_slot_went_writes_nothing(cluster: Cluster) -> None:
    log = cluster.begin()
    slot = slot_of(ref().id)
    lease = acquired(log.store, ref())
    put(log.store, lease, keys(a=b"1"))

    log.gone([slot])

    for use in (lambda: lease.append([keys(a=b"2")], UNCHANGED), lambda: lease.release({})):
        with pytest.raises(Fenced):
            use()
    assert not log.holds(slot)
    log.gained([slot])
    assert acquired(log.store, ref()).tail == {"a": b"1"}


def test_an_object_of_many_chunks_comes_back_from_bases_and_rows(cluster: Cluster) -> None:
    """Against an image that is kept beside it, with a base after some groups and take-overs between."""
    chance, image, state = random.Random(3), bytearray(), {}
    store = None
    for _ in range(4):
        log = cluster.take_over()
        store = log.store
        lease = acquired(store, ref())
        assert (_file(log, lease.path), lease.tail) == (bytes(image), state)
        for _ in range(12):
            if chance.random() < 0.3:
                bases.make(log._tending, log._owner.number, log._known["Counter", ref().id].number)
            if chance.random() < 0.3:
                state["k"] = chance.randbytes(5)
                put(store, lease, keys(**state))
                continue
            total = chance.choice([700, 600, 520, 130])
            touched = sorted({chance.randrange(1, total + 1) for _ in range(chance.choice([1, 30]))})
            image += bytes(max(0, total * PAGE_BYTES - len(image)))
            for page in touched:
                image[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = chance.randbytes(PAGE_BYTES)
            del image[total * PAGE_BYTES :]
            put(store, lease, _frames(image, touched, total))
            state.clear()
    assert store is not None
    assert len(cluster.link.rows("SELECT * FROM object_bases")) >= 1
    assert cluster.link.row("SELECT count(DISTINCT chunk) FROM object_chunks") == (3,)
    recalled = asked(store, lambda done: store.past.recall(ref(), Target(0, lease.head), 0, done))[1]
    assert (bytes(recalled.image), recalled.tail) == (bytes(image), state)
    assert asked(store, lambda done: store.past.check([ref()], done)) == [[]]


def test_a_file_that_grows_again_has_nothing_of_what_it_had_lost(cluster: Cluster) -> None:
    store = cluster.begin(base_bytes=-1)
    lease = acquired(store.store, ref())
    whole, page = bytearray(b"x" * 600 * PAGE_BYTES), b"y" * PAGE_BYTES
    put(store.store, lease, _frames(whole, list(range(1, 601)), 600))
    for total in (100, 600):
        image = bytearray(page.ljust(600 * PAGE_BYTES, b"x"))
        put(store.store, lease, _frames(image, [1], total))
        bases.make(store._tending, 1, store._known["Counter", ref().id].number)

    log = cluster.take_over()

    assert _file(log, acquired(log.store, ref()).path) == (
        page + b"x" * 99 * PAGE_BYTES + bytes(500 * PAGE_BYTES)
    )


def test_a_slot_is_held_as_long_as_anything_of_it_goes_on(cluster: Cluster) -> None:
    log = cluster.begin(LaterRunner())
    slot = slot_of(ref().id)
    for end in ("", "full", ""):
        lease = acquired(log.store, ref())
        assert log.holds(slot)
        Losing.ends = [end] if end else []
        for number in range(3):
            lease.append([keys(n=b"%d" % number)], UNCHANGED)
        log.flush()
        lease.append([keys(n=b"9")], UNCHANGED)
        lease.release({"n": b"9"}, rebuild=bool(end))
        assert log.holds(slot)
        log.settle()
        assert not log.holds(slot)
        log.tend()
    log.acquire(ref("another"), lambda lease, error: None)
    assert acquired(log.store, ref("another")).head == 0
    assert log._held[slot_of(ref("another").id)] == 1


def test_alarms_that_met_a_slot_on_its_way_are_due_again_when_it_stays(cluster: Cluster) -> None:
    log = cluster.begin()
    put(log.store, acquired(log.store, ref()), keys(a=b"1"), alarm=5)
    assert log.store.alarms.take(10, 1) == [(5, ref())]

    log.kept([slot_of(ref().id)])

    assert log.store.alarms.take(10, 1) == [(5, ref())]


def test_nothing_that_was_acknowledged_is_lost_by_take_overs_and_lost_answers(cluster: Cluster) -> None:
    """Lists of unique numbers: each acknowledged one is there once, an unknown one at most once."""
    chance, number = random.Random(11), 0
    acked: dict[str, list[int]] = {name: [] for name in "abc"}
    unknown: set[int] = set()
    lists: dict[str, list[int]] = {}
    for _ in range(30):
        log = cluster.take_over(base_bytes=chance.choice([-1, 200]))
        leases = {name: acquired(log.store, ref(name)) for name in acked}
        lists = {name: _list(lease.tail) for name, lease in leases.items()}
        for name in acked:
            assert [one for one in lists[name] if one not in unknown] == acked[name]
            assert len(set(lists[name])) == len(lists[name])
        Losing.ends = ["away"] * chance.randrange(3)
        if chance.random() < 0.7:
            Losing.ends += ["lost after COMMIT" if chance.random() < 0.5 else "lost before COMMIT"]
        for _ in range(chance.randrange(1, 8)):
            name, number = chance.choice("abc"), number + 1
            lists[name].append(number)
            try:
                group = leases[name].append([keys(list=msgspec.msgpack.encode(lists[name]))], UNCHANGED)
            except LogError:
                break
            log.flush()
            log.settle()
            if group.state == "durable":
                acked[name].append(number)
            else:
                unknown.add(number)
    assert sum(map(len, acked.values())) > 40
    assert unknown


def test_alarms_that_are_due_much_later_are_loaded_when_they_are_soon(cluster: Cluster) -> None:
    log = cluster.begin()
    hour_us = 3_600_000_000
    put(log.store, acquired(log.store, ref()), keys(a=b"1"), alarm=cluster.now_us + 3 * hour_us)
    log.tend()
    assert log.store.alarms.next_us() is None

    cluster.now_us += 2 * hour_us
    log.tend()

    assert log.store.alarms.next_us() is not None


def test_alarms_are_loaded_in_time_when_the_clock_was_set_back(cluster: Cluster) -> None:
    hour_us = 3_600_000_000
    cluster.now_us += 24 * hour_us  # as of a machine that has not heard of the time yet
    log = cluster.begin()
    log.tend()
    cluster.now_us -= 24 * hour_us
    put(log.store, acquired(log.store, ref()), keys(a=b"1"), alarm=cluster.now_us + 3 * hour_us)
    cluster.now_us += 3 * hour_us - 1_000_000

    log.tend()

    assert log.store.alarms.next_us() is not None


def test_alarms_that_were_read_of_a_slot_that_has_gone_do_not_count(cluster: Cluster) -> None:
    other, slot = cluster.begin(), slot_of(ref().id)
    lease = acquired(other.store, ref())
    put(other.store, lease, keys(a=b"1"), alarm=5)
    reader = LaterRunner()
    log = cluster.begin(reader=reader)

    (load,) = reader.jobs  # of the slots that it has got just now
    reader.jobs.clear()
    log.gone([slot])
    read = load[0]()
    put(other.store, lease, keys(a=b"2"), alarm=6)
    load[1](read, None)

    assert log.store.alarms.next_us() is None
    log.gained([slot])
    reader.drain()
    assert log.store.alarms.take(10, 1) == [(6, ref())]


def test_old_rows_become_history_and_are_thinned(cluster: Cluster) -> None:
    log = cluster.begin()
    store = log.store
    lease = acquired(store, ref())
    for number in range(40):
        put(store, lease, keys(n=b"%d" % number))
    lease.pin(7)
    store.log.flush()

    cluster.now_us += 25 * 3_600_000_000
    log.tend()
    log.tend()

    assert cluster.link.rows("SELECT * FROM object_log") == []
    moments = asked(store, lambda done: store.past.moments(ref(), 0, 2**62, 100, done))
    assert [one.position for one in moments] == [40, 7]
    assert put(store, lease, keys(n=b"41")).state == "durable"
    assert acquired(cluster.take_over().store, ref()).head == 41


def test_an_object_that_is_damaged_does_not_keep_the_others_from_upkeep(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    log = cluster.begin()
    for name in ("whole", "damaged"):  # which is looked at first
        lease = acquired(log.store, ref(name))
        put(log.store, lease, keys(n=b"1"))
    number = log._known["Counter", ref("damaged").id].number
    bases.make(log._tending, 1, number)
    put(log.store, lease, keys(n=b"2"))
    cluster.link.run("DELETE FROM object_bases")
    assert number < log._known["Counter", ref("whole").id].number

    log.past.tend(list(range(SLOTS)), cluster.now_us + 25 * 3_600_000_000)

    assert cluster.link.rows("SELECT number FROM object_log") == [(number,)]
    assert "is not in the database" in caplog.text


def test_the_past_is_thinned_by_one_of_two_processes(cluster: Cluster) -> None:
    """As with bases: one gave the object's slot away while it was at it."""
    one, other = cluster.begin(), cluster.begin()
    lease = acquired(one.store, ref())
    hour_us, begin_us = 3_600_000_000, cluster.now_us
    for _ in range(2):
        for value in range(20):
            put(one.store, lease, keys(n=b"%d" % value))
        bases.make(cluster.link, 1, one._known["Counter", ref().id].number)
        cluster.now_us += 2 * hour_us

    everywhere = list(range(SLOTS))
    Losing.before["DELETE FROM object_past WHERE number = %b AND last = %b"] = lambda: other.past.tend(
        everywhere, begin_us + 28 * hour_us
    )
    one.past.tend(everywhere, begin_us + 25 * hour_us)

    assert not Losing.before
    assert cluster.link.rows("SELECT first, last FROM object_past") == [(1, 40)]
    moments = asked(one.store, lambda done: one.past.moments(ref(), 0, 2**62, 100, done))
    assert [one.position for one in moments] == [40, 20]


def test_the_base_that_an_object_opens_from_outlives_its_past(cluster: Cluster) -> None:
    log = cluster.begin()
    lease = acquired(log.store, ref())
    put(log.store, lease, keys(n=b"1"))
    number = log._known["Counter", ref().id].number
    bases.make(log._tending, 1, number)
    for value in (b"2", b"3"):
        put(log.store, lease, keys(n=value))

    PostgresBook(cluster.link, 0).remove_snapshots(number, 3)

    assert cluster.link.rows("SELECT position FROM object_bases WHERE number = %b", (number,)) == [(1,)]
    assert acquired(cluster.take_over().store, ref()).head == 3


@pytest.mark.parametrize(
    ("has_base", "step"),
    [
        pytest.param(False, opening.ROWS, id="the first one, before the rows are read"),
        pytest.param(True, opening.BASE, id="before the base is read"),
        pytest.param(True, opening.CHUNKS, id="before its pages are read"),
        pytest.param(True, opening.ROWS, id="before the rows behind it are read"),
    ],
)
def test_an_object_is_opened_whole_while_upkeep_makes_a_base(
    cluster: Cluster, has_base: bool, step: str
) -> None:
    log = cluster.begin()
    lease = acquired(log.store, ref())
    put(log.store, lease, pages(b"1", b"2"))
    number = log._known["Counter", ref().id].number
    if has_base:
        bases.make(cluster.link, 1, number)
    for value in (b"2", b"3"):
        put(log.store, lease, keys(n=value))
    log = cluster.take_over()
    Losing.before[step] = lambda: bases.make(cluster.link, 2, number)

    opened = acquired(log.store, ref())

    assert not Losing.before
    assert (opened.head, opened.tail, opened.has_file) == (3, {"n": b"3"}, True)


@pytest.mark.parametrize("has_base", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, id=name)
        for name, step in (
            ("before it is read where the object is", bases.SELECT_BASE),
            ("before the rows are read", bases.ROWS),
            ("before the past is written", bases.PUT_BLOCK),
            ("before the base is set", bases.SET_BASE),
            ("before the rows are deleted", bases.FOLDED),
        )
    ],
)
def test_who_still_makes_a_base_of_what_it_gave_away_takes_nothing_back(
    cluster: Cluster, step: str, has_base: bool
) -> None:
    """A slot goes when nothing of it is undecided; upkeep may be at it still, and its next owner's, too."""
    one, other = cluster.begin(), cluster.begin()
    lease = acquired(one.store, ref())
    put(one.store, lease, pages(b"1", b"2"))
    number = one._known["Counter", ref().id].number
    if has_base:
        bases.make(cluster.link, 1, number)
    put(one.store, lease, keys(a=b"1"))
    lease.release({"a": b"1"})

    def go_on() -> None:
        theirs = acquired(other.store, ref())
        for value in (b"2", b"3"):
            put(other.store, theirs, keys(a=value))
        bases.make(cluster.link, 2, number)

    Losing.before[step] = go_on
    bases.make(one._tending, 1, number)

    assert not Losing.before
    opened = acquired(cluster.take_over().store, ref())
    assert (opened.head, opened.tail, opened.has_file) == (4, {"a": b"3"}, True)
    blocks = cluster.link.rows("SELECT first, last FROM object_past ORDER BY first, last")
    logged = cluster.link.rows("SELECT position, position FROM object_log ORDER BY position")
    assert [n for first, last in blocks + logged for n in range(first, last + 1)] == [1, 2, 3, 4]


def test_upkeep_keeps_nobody_from_taking_its_process_place(cluster: Cluster) -> None:
    """It may stand still, or its machine be off, between any two statements."""
    log = cluster.begin()
    put(log.store, acquired(log.store, ref()), keys(a=b"1"))
    number = log._known["Counter", ref().id].number
    limits: list[str] = []

    def take_its_place() -> None:
        limits.extend(log._tending.row("SHOW idle_in_transaction_session_timeout") or ())
        cluster.link.row("SELECT number FROM incarnations WHERE number = 1 FOR UPDATE NOWAIT")
        cluster.link.run("DELETE FROM incarnations")

    Losing.before[bases.FOLDED] = take_its_place
    with pytest.raises(Fenced):
        bases.make(log._tending, 1, number)

    assert limits not in (["0"], [])
    assert cluster.link.rows("SELECT * FROM object_bases") == []
    cluster.link.run(
        "INSERT INTO incarnations (number, node, kind, address, renewed) VALUES (1, '', '', '', 0)"
    )

    def tend() -> None:
        with log.past._book as book:
            book.remove_pins(0)
            take_its_place()

    with pytest.raises(Fenced):
        tend()


def test_a_base_that_is_made_keeps_no_commit_from_setting_an_alarm(cluster: Cluster) -> None:
    """Taking rows and chunks away takes long; who stands still behind that holds the object for a moment."""
    log = cluster.begin()
    put(log.store, acquired(log.store, ref()), keys(a=b"1"))
    limits: list[Any] = []

    def set_alarm() -> None:
        cluster.link.rows("SELECT 1 FROM objects FOR NO KEY UPDATE NOWAIT")

    Losing.before[bases.FOLDED] = Losing.before[bases.BASES] = set_alarm
    show = "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
    Losing.before[bases.ME] = lambda: limits.extend(log._tending.rows(show))
    assert bases.make(log._tending, 1, log._known["Counter", ref().id].number) == 1

    assert not Losing.before
    assert limits == [(str(IDLE_MS_MAX),)]


def test_a_base_that_is_gone_is_damage_and_no_new_object(cluster: Cluster) -> None:
    log = cluster.begin()
    put(log.store, acquired(log.store, ref()), keys(n=b"1"))
    bases.make(cluster.link, 1, log._known["Counter", ref().id].number)
    cluster.link.run("DELETE FROM object_bases")
    told: list[Any] = []

    cluster.take_over().acquire(ref(), lambda lease, error: told.append(error))

    assert "is not in the database" in str(told[0])
    assert isinstance(told[0], LogDamaged)


def test_names_and_ids_of_any_text_are_stored(cluster: Cluster) -> None:
    store = cluster.begin().store
    odd = msgspec.structs.replace(ref(), name="a\0b \ud800 ü")
    put(store, acquired(store, odd), keys(a=b"1"))

    assert acquired(cluster.take_over().store, odd).ref == odd


def test_what_the_statement_for_reading_an_object_reads_is_found_by_an_index(cluster: Cluster) -> None:
    for statement in (opening.FIND, opening.PAGE):
        cluster.link.run("SET enable_seqscan = off")
        plan = cluster.link.rows(f"EXPLAIN {statement}", (b"C", b"i", 5)[: statement.count("%b")])
        assert "objects_class_id_key" in str(plan)


def _list(tail: dict[str, bytes | None]) -> list[int]:
    found: list[int] = msgspec.msgpack.decode(tail.get("list") or b"\x90")
    return found


def _frames(image: bytearray, touched: list[int], total: int) -> Any:
    return Commit(CommitKind.PAGES, frames_of(bytes(image), touched, total))


def _file(log: PostgresObjectLog, path: str) -> bytes:
    files = log._files
    if not files.exists(path):
        return b""
    file = files.open(path)
    return file.read(file.size(), 0)
