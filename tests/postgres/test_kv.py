"""Key-values that several nodes write, over a database that fails over."""

import threading
import time
from contextlib import closing, nullcontext, suppress
from itertools import count

import psycopg
import pytest

from edgestead.cluster.seat import Register
from edgestead.model.refusals import Unavailable
from edgestead.postgres import blobs, kv
from edgestead.postgres.connection import Link
from edgestead.postgres.incarnations import Clerk
from edgestead.postgres.kv import PostgresKvStore
from edgestead.postgres.pool import Pool
from edgestead.store.controllog import NotLeader
from edgestead.store.kv import INLINE_BYTES_MAX, Allowance, Incoming, Pair
from tests.support.postgres import pair

pytestmark = pytest.mark.usefixtures("patient_leases")

NS = "a" * 32
NOW = 1_800_000_000


@pytest.fixture
def dsn(postgres):
    return postgres.emptied()


@pytest.fixture
def nodes(dsn):
    """A function that opens the store as another node does."""
    opened = []

    def open_(**more):
        opened.append(PostgresKvStore(dsn, **more))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def link(dsn):
    with closing(Link(dsn)) as made:
        yield made


def put(store, key, content=b"v"):
    return store.put(NS, [Pair(key, content)])


def put_large(store, key, content):
    incoming = Incoming(store.blobs)
    incoming.write(content)
    store.put(NS, [Pair(key, incoming.finish())]).result(60)


def value_of(store, key):
    found = store.get(NS, key, NOW)
    if found is None:
        return None
    with found:
        return found.read()


def test_a_namespace_that_another_node_dropped_begins_empty(nodes):
    one, other = nodes(), nodes()
    put(one, "old").result(60)
    other.drop(NS).result(60)

    put(one, "new").result(60)

    assert [entry.key for entry in other.page(NS, now_s=NOW, limit=9).entries] == ["new"]


def test_a_node_without_a_quota_keeps_the_count_of_one_that_has_one(nodes, link):
    with_quota = nodes(allowance=lambda _: Allowance(1_000))
    without = nodes()
    put(with_quota, "k", b"v" * 9).result(60)

    put(without, "more", b"v" * 96).result(60)
    without.delete(NS, ["k"]).result(60)

    assert link.rows("SELECT octets FROM kv_spaces") == [(100,)]


@pytest.mark.parametrize("quota", [{}, {"allowance": lambda _: Allowance(1 << 40)}], ids=["free", "counted"])
def test_a_write_of_several_statements_is_one_or_none(nodes, monkeypatch, quota):
    monkeypatch.setattr(kv, "GROUP_BYTES_MAX", 1_000)
    store = nodes(**quota)
    pairs = [Pair(f"{number % 90:02}", b"%d" % number * 30) for number in range(100)]

    assert store.put(NS, pairs).result(60).value == 100

    def fails_late():
        yield from (Pair(f"x{number}", b"v" * 99) for number in range(50))
        raise KeyError

    with pytest.raises(KeyError):
        store.put(NS, fails_late()).result(60)
    assert len(store.page(NS, now_s=NOW, limit=1_000).entries) == 90
    assert value_of(store, "05") == b"95" * 30


@pytest.mark.parametrize("length", [1, INLINE_BYTES_MAX + 1], ids=["row", "blob"])
def test_values_that_are_asked_for_together_are_each_what_they_are(nodes, length):
    store = nodes()
    incoming = Incoming(store.blobs)
    incoming.write(b"x" * length)
    store.put(NS, [Pair("k", incoming.finish()), Pair("gone", b"v", NOW + 60)]).result(60)

    asked = [store.soon.get(NS, key, now_s) for key in ("k", "gone", "nope") for now_s in (NOW, NOW + 60)]

    found = []
    for one in (ask.result(60) for ask in asked):
        with one or nullcontext():
            found.append(None if one is None else (one.entry.key, one.read()))
    assert found == [*[("k", b"x" * length)] * 2, ("gone", b"v"), *[None] * 3]


def test_of_puts_that_are_written_one_by_one_each_has_its_own_outcome(nodes, link, dsn, monkeypatch):
    """Another node counts their namespace; the process loses its row behind the first of them."""
    put(nodes(allowance=lambda _: Allowance(1 << 40)), "old").result(60)
    with closing(Clerk(dsn, "a", "")) as clerk:
        number = clerk.answer(Register(None))
    store = nodes(place=lambda: number)
    jobs = []
    for key in "ab":
        incoming = Incoming(store.blobs)
        incoming.write(key.encode() * (INLINE_BYTES_MAX + 1))
        jobs.append(kv._Put(number, NS, [Pair(key, incoming.finish())]))
    execute, ends = Link._execute, count(1)

    def hooked(made, statement, *arguments, **more):
        if statement == kv.END_PUT and next(ends) == 2:
            link.run("DELETE FROM incarnations")
        return execute(made, statement, *arguments, **more)

    monkeypatch.setattr(Link, "_execute", hooked)
    store._write(jobs)

    assert (jobs[0].error, jobs[0].value) == (None, 1)
    assert isinstance(jobs[1].error, NotLeader)
    assert value_of(store, "a") == b"a" * (INLINE_BYTES_MAX + 1)
    assert value_of(store, "b") is None


def test_an_upload_that_was_swept_meanwhile_fails(nodes, link):
    """It stood still for longer than an upload may: the rest of it would be nowhere."""
    store = nodes()
    writer = store.blobs.create()
    writer.write(b"a" * (1 << 20))
    assert store.sweep(int(time.time()) + kv.BLOB_GRACE_SECONDS + 60) == 1

    with pytest.raises(Unavailable):
        writer.write(b"b" * (1 << 20))


@pytest.mark.parametrize("then", ["replaced", "deleted"])
def test_a_value_that_goes_while_its_parts_are_read_is_not_damaged(nodes, monkeypatch, then):
    one, other = nodes(), nodes()
    put_large(one, "k", b"a" * (5 << 20))
    read = Pool.rows

    def go(pool, statement, values):
        found = read(pool, statement, values)
        if statement == blobs.SELECT_PART and values[1] == 1:
            monkeypatch.undo()
            put_large(other, "k", b"b" * (5 << 20)) if then == "replaced" else other.delete(
                NS, ["k"]
            ).result()
        return found

    monkeypatch.setattr(Pool, "rows", go)

    assert value_of(one, "k") == (b"b" * (5 << 20) if then == "replaced" else None)


def test_writes_of_one_group_are_made_in_their_order(nodes, link):
    store = nodes()
    put(store, "k", b"0").result(60)
    with link.transaction():
        link.run("SELECT 1 FROM kv_entries FOR UPDATE")
        first = put(store, "k", b"1")  # waits for the row, and the others for it
        later = [
            store.delete(NS, ["k"]),
            put(store, "k", b"2"),
            store.delete(NS, ["k", "nothing"]),
            store.delete(NS, ["k"]),
            put(store, "k", b"3"),
            put(store, "other", b"4"),
        ]

    assert first.result(60).value == 1
    assert [one.result(60).value for one in later] == [1, 1, 1, 0, 1, 1]
    assert (value_of(store, "k"), value_of(store, "other")) == (b"3", b"4")


def test_two_nodes_that_write_the_same_keys_do_not_stop_one_another(nodes):
    keys = [f"k{number}" for number in range(8)]

    def write(store, order):
        for _ in range(15):
            store.put(NS, [Pair(key, b"v") for key in order]).result(60)
            store.delete(NS, order).result(60)

    writers = [threading.Thread(target=write, args=(nodes(), order)) for order in (keys, keys[::-1])]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)

    assert not any(writer.is_alive() for writer in writers)


def test_a_write_whose_answer_is_lost_is_not_made_again(nodes, link, postgres):
    store = nodes()
    put(store, "k", b"old").result(60)
    with link.transaction():
        link.run("SELECT 1 FROM kv_entries FOR UPDATE")
        waits = put(store, "k", b"new")
        _until(lambda: _ended_one(postgres, link.dsn))

    with pytest.raises(Unavailable):
        waits.result(60)
    assert value_of(store, "k") == b"old"
    assert put(store, "k", b"again").result(60).value == 1


def test_a_database_that_is_away_for_longer_is_unavailable(tmp_path, monkeypatch):
    monkeypatch.setattr(kv, "HOLD_SECONDS", 0.3)
    with closing(PostgresKvStore(f"host={tmp_path} user=postgres")) as store:
        with pytest.raises(Unavailable):
            put(store, "k").result(60)
        assert store.trouble
        with pytest.raises(Unavailable):
            store.get(NS, "k", NOW)


# A process that has asked everything a write asks, and then stands still before its statement.


class Standing:
    """A store whose process holds a row; `stands` keeps its writer from its next statement."""

    def __init__(self, dsn, nodes, **more):
        with closing(Clerk(dsn, "a", "")) as clerk:
            self.number = clerk.answer(Register(None))
        self.store = nodes(place=lambda: self.number, **more)
        self.go_on = threading.Event()
        self.has_asked = threading.Event()

    def last_check(self):
        """Behind the items of a write, where the token's rights are asked."""
        self.has_asked.set()
        assert self.go_on.wait(60)

    def put(self, key, count=1):
        def pairs():
            yield from (Pair(f"{key}{number}", b"new") for number in range(count))
            self.last_check()

        return self.store.put(NS, pairs())

    def delete(self, keys):
        def given():
            yield from keys
            self.last_check()

        return self.store.delete(NS, given())


@pytest.fixture(params=[{}, {"allowance": lambda _: Allowance(1 << 40)}], ids=["free", "counted"])
def standing(dsn, nodes, request):
    return Standing(dsn, nodes, **request.param)


WRITES = {
    "put": lambda standing: standing.put("k"),
    "long": lambda standing: standing.put("k", 64),
    "delete": lambda standing: standing.delete(["old"]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_whose_process_lost_its_row_meanwhile_lands_nothing(
    standing, nodes, link, monkeypatch, write
):
    monkeypatch.setattr(kv, "GROUP_BYTES_MAX", 64)
    put(nodes(), "old").result(60)
    waits = write(standing)
    assert standing.has_asked.wait(60)

    link.run("DELETE FROM incarnations WHERE number = %b", (standing.number,))
    standing.number += 1  # it came back, with another row
    standing.go_on.set()

    with pytest.raises(NotLeader):
        waits.result(60)
    assert [entry.key for entry in standing.store.page(NS, now_s=NOW, limit=99).entries] == ["old"]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_whose_process_has_its_row_lands(standing, nodes, monkeypatch, write):
    monkeypatch.setattr(kv, "GROUP_BYTES_MAX", 64)
    put(nodes(), "old").result(60)
    standing.go_on.set()

    assert write(standing).result(60).value in (1, 64)
    assert standing.delete(["nothing"]).result(60).value == 0


def test_a_namespace_is_not_dropped_by_who_lost_its_row(standing, nodes, link):
    put(nodes(), "old").result(60)
    standing.go_on.set()
    assert standing.store.drop("b" * 32).result(60)  # there is none

    link.run("DELETE FROM incarnations")

    with pytest.raises(NotLeader):
        standing.store.drop(NS).result(60)
    assert value_of(standing.store, "old") == b"v"


def test_who_deletes_a_row_waits_for_the_write_that_holds_it(standing, link, dsn):
    """Then the write has landed before the next process has its place."""
    put(standing.store, "k", b"0").result(60)
    with closing(Link(dsn)) as other, link.transaction():
        link.run("SELECT 1 FROM kv_spaces FOR UPDATE")
        link.run("SELECT 1 FROM kv_entries FOR UPDATE")
        writes = put(standing.store, "k", b"1")
        _until(lambda: _waiting(link) == 1)
        if standing.store._allowance is None:  # a counted one holds it with its last statement
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.row("SELECT 1 FROM incarnations FOR UPDATE NOWAIT")

    assert writes.result(60).value == 1


def test_nothing_acknowledged_is_lost_when_the_primary_is_killed(postgres_binaries):
    with pair(postgres_binaries) as two, closing(PostgresKvStore(two.database("kv"))) as store:
        acked, stop = [], threading.Event()

        def write():
            for number in count():
                if stop.is_set():
                    return
                with suppress(Unavailable):
                    put(store, f"{number:06}").result(60)
                    acked.append(f"{number:06}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            _until(lambda: len(acked) > 20)
            two.primary.kill()
            two.promote()
            before = len(acked)
            _until(lambda: len(acked) > before + 20)
        finally:
            stop.set()
            writer.join()

        held, cursor = set(), ""
        while True:
            page = store.page(NS, now_s=NOW, limit=1_000, cursor=cursor)
            held.update(entry.key for entry in page.entries)
            cursor = page.cursor
            if not cursor:
                break
        assert set(acked) <= held


def _ended_one(postgres, dsn):
    """End the session that waits for a row. Whether there was one."""
    done = postgres.server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND application_name = 'edgestead kv writes';",
        "-At",
        database=dsn.rpartition("=")[2],
    )
    return b"t" in done.stdout


def _waiting(link):
    """How many sessions wait for a lock in this database."""
    ((waiting,),) = link.rows(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()"
    )
    return waiting


def _until(is_so):
    while not is_so():
        time.sleep(0.01)
