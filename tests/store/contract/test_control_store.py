"""What every ControlStore promises."""

import threading
from concurrent.futures import Future, wait

import pytest

from edgestead.model.refusals import BadRequest, Unavailable
from edgestead.store.changes import DOC_BYTES_MAX

INSERT = "INSERT INTO notes (id, body) VALUES (?, ?)"
SELECT = "SELECT body FROM notes WHERE id = ?"
COUNT = "SELECT count(*) FROM notes"


def note(name, body="text"):
    return lambda tx: tx.run(INSERT, (name, body))


def body_of(store, name):
    return store.read(lambda reader: reader.row(SELECT, (name,)))


def count(store):
    return store.read(lambda reader: reader.row(COUNT))[0]


class Gate:
    """A write that holds the writer's thread, so that what is queued behind it becomes one group."""

    def __init__(self, store):
        self.entered, self.leave = threading.Event(), threading.Event()
        self.done = store.write(self.hold)
        assert self.entered.wait(60)

    def hold(self, tx):
        self.entered.set()
        assert self.leave.wait(60)


def in_one_group(store, *functions) -> list[Future]:
    gate = Gate(store)
    futures = [store.write(fn) for fn in functions]
    gate.leave.set()
    wait(futures, 60)
    return futures


def test_a_committed_write_is_read_and_survives_reopening(stores):
    store = stores.open()

    committed = store.write(note("a", "kept")).result(60)
    store.close()

    assert (committed.value, committed.sequence) == (1, 0)
    assert body_of(stores.open(), "a") == ("kept",)


def test_a_write_returns_what_its_function_returns(store):
    def fn(tx):
        tx.run(INSERT, ("a", "x"))
        return tx.rows("UPDATE notes SET body = ? WHERE id = ? RETURNING body", ("y", "a"))

    assert store.write(fn).result(60).value == [("y",)]


@pytest.mark.parametrize("error", [BadRequest(reason="no"), ValueError("no"), KeyboardInterrupt()])
def test_an_exception_undoes_its_own_write_and_reaches_its_caller(store, error):
    def fails(tx):
        tx.run(INSERT, ("bad", "x"))
        tx.emit("zone", "name", "bad", b"x")
        raise error

    before, bad, after = in_one_group(store, note("before"), fails, note("after"))

    assert bad.exception() is error
    assert before.exception() is after.exception() is None
    assert (count(store), store.feed.head()) == (2, 0)


def test_a_listener_that_was_taken_off_is_told_nothing_more(store):
    heard, others = [], []
    listener = heard.extend
    store.on_group(listener)
    store.on_group(others.extend)
    store.write(lambda tx: tx.emit("z", "name", "a", b"")).result(60)
    store.write(lambda tx: None).result(60)  # the one before was told of
    store.off_group(listener)
    store.write(lambda tx: tx.emit("z", "name", "b", b"")).result(60)
    store.write(lambda tx: None).result(60)

    assert [change.key for change in heard] == ["a"]
    assert [change.key for change in others] == ["a", "b"]


def test_an_undone_write_gives_its_sequences_back_within_the_group(store):
    heard = []
    store.on_group(heard.extend)

    def fails(tx):
        tx.emit("zone", "name", "undone", b"")
        tx.drop_scope("zone")
        raise ValueError("no")

    futures = in_one_group(
        store, lambda tx: tx.emit("z", "name", "a", b""), fails, lambda tx: tx.emit("z", "name", "b", b"")
    )
    store.write(lambda tx: tx.emit("z", "name", "c", b"")).result(60)
    store.write(lambda tx: None).result(60)

    assert [futures[0].result().sequence, futures[2].result().sequence] == [1, 2]
    assert [(change.sequence, change.key) for change in heard] == [(1, "a"), (2, "b"), (3, "c")]
    assert store.feed.tail(0, 1000) == heard


def test_a_write_sees_its_own_rows_and_those_queued_before_it(store):
    futures = in_one_group(store, note("a"), lambda tx: [tx.run(INSERT, ("b", "")), tx.row(COUNT)])

    assert futures[1].result().value == [1, (2,)]


def test_a_violated_constraint_leaves_no_trace(store):
    store.write(note("a", "first")).result(60)

    again = store.write(note("a", "second"))

    assert again.exception(5) is not None
    assert body_of(store, "a") == ("first",)


def test_run_tells_how_many_rows_it_changed(store):
    in_one_group(store, note("a"), note("b"))

    assert store.write(lambda tx: tx.run("DELETE FROM notes WHERE id <> ?", ("",))).result(60).value == 2
    assert store.write(lambda tx: tx.run("DELETE FROM notes WHERE id = ?", ("a",))).result(60).value == 0


def test_a_read_is_one_snapshot_whatever_is_committed_meanwhile(store):
    def look_twice(reader):
        first = reader.row(COUNT)
        store.write(note("a")).result(60)
        nested = store.read(lambda inner: inner.row(COUNT))
        return first, reader.row(COUNT), nested

    assert store.read(look_twice) == ((0,), (0,), (0,))
    assert count(store) == 1


def test_a_read_that_raises_does_not_hold_its_snapshot(store):
    with pytest.raises(ZeroDivisionError):
        store.read(lambda reader: 1 / len(reader.rows(SELECT, ("none",))))
    store.write(note("a")).result(60)

    assert count(store) == 1


def test_a_reader_cannot_write(store):
    with pytest.raises(Unavailable):
        store.read(lambda reader: reader.rows(INSERT + " RETURNING id", ("a", "x")))

    assert count(store) == 0


def test_threads_read_at_the_same_time(store):
    both_inside = threading.Barrier(2)

    def meet(reader):
        reader.row(COUNT)
        return both_inside.wait(60)

    threads = [threading.Thread(target=store.read, args=(meet,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not both_inside.broken


def test_writes_of_many_threads_all_commit_with_dense_sequences(store):
    sequences = []

    def work(number):
        for i in range(20):
            fn = lambda tx, i=i: [note(f"{number}-{i}")(tx), tx.emit("z", "name", f"{number}-{i}", b"")]  # noqa: E731
            sequences.append(store.write(fn).result(60).sequence)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(sequences) == list(range(1, 161))
    assert count(store) == 160


def test_listeners_hear_of_a_group_after_its_futures_are_settled(store):
    heard = []
    done: list[Future] = []
    store.on_group(lambda changes: heard.append(([c.key for c in changes], [f.done() for f in done])))
    gate = Gate(store)
    done += [store.write(lambda tx, k=k: tx.emit("z", "name", k, b"")) for k in "ab"]
    gate.leave.set()
    store.close()

    assert heard == [([], [False, False]), (["a", "b"], [True, True])]


def test_a_commit_is_told_before_its_futures_settle_and_before_the_next_function_runs(store):
    told: list[str] = []
    seen: list[tuple[list[str], bool]] = []
    first: list[Future] = []
    store.on_commit(lambda changes: told.extend(change.key for change in changes))
    store.on_commit(lambda changes: seen.append((list(told), first[0].done())))
    gate = Gate(store)
    first.append(store.write(lambda tx: tx.emit("z", "name", "a", b"")))
    gate.leave.set()
    first[0].result(60)
    later = store.write(lambda tx: list(told)).result(60)

    assert seen == [(["a"], False)]
    assert later.value == ["a"]


def test_what_does_not_commit_is_not_told(store):
    def undone(tx):
        tx.emit("z", "name", "a", b"")
        raise LookupError

    told: list[str] = []
    store.on_commit(lambda changes: told.extend(change.key for change in changes))
    kept, lost = in_one_group(store, lambda tx: tx.emit("z", "name", "b", b""), undone)

    assert isinstance(lost.exception(60), LookupError)
    assert kept.result(60).sequence
    assert told == ["b"]


def newest(tx):
    return tx.newest("z", "name", "a")


def emitted(doc):
    """What the feed says before and after a change, `doc` None taking the key away."""

    def change(tx):
        return newest(tx), tx.emit("z", "name", "a", doc), newest(tx)

    return change


def test_the_newest_document_is_that_of_the_open_transaction(store):
    def dropped(tx):
        tx.drop_scope("z")
        return newest(tx)

    assert store.write(emitted(b"1")).result(60).value == (None, 1, b"1")
    futures = in_one_group(store, emitted(b"2"), dropped, emitted(b"3"), emitted(None), newest)

    assert [future.result(60).value for future in futures] == [
        (b"1", 2, b"2"),
        None,
        (None, 4, b"3"),
        (b"3", 5, None),
        None,
    ]
    assert store.write(newest).result(60).value is None


def test_the_newest_document_is_none_that_an_undone_write_emitted(store):
    def undone(tx):
        tx.drop_scope("z")
        tx.emit("z", "name", "a", b"undone")
        raise KeyError

    store.write(emitted(b"1")).result(60)
    futures = in_one_group(store, undone, newest, emitted(b"2"), undone, newest)

    assert [future.result(60).value for future in (futures[1], futures[2], futures[4])] == [
        b"1",
        (b"1", 2, b"2"),
        b"2",
    ]
    assert store.write(newest).result(60).value == b"2"


def test_a_transaction_knows_which_scopes_its_commit_changes(store):
    def touched(tx):
        return tx.touches("z"), tx.touches("other")

    def undone(tx):
        tx.emit("other", "name", "a", b"undone")
        raise KeyError

    store.write(emitted(b"1")).result(60)
    futures = in_one_group(store, touched, undone, touched, emitted(b"2"), touched)

    seen = [futures[at].result(60).value for at in (0, 2, 4)]
    assert seen == [(False, False), (False, False), (True, False)]
    assert store.write(touched).result(60).value == (False, False)


def test_a_group_keeps_each_change_in_the_tail_and_the_last_document_in_the_snapshot(store):
    in_one_group(store, emitted(b"1"), emitted(b"2"), lambda tx: tx.drop_scope("z"), emitted(b"3"))

    found = []
    assert store.feed.snapshot(frozenset(), found.extend) == 4
    assert [(change.sequence, change.doc) for change in found] == [(4, b"3")]
    assert [change.doc for change in store.feed.tail(0, 1000)] == [b"1", b"2", None, b"3"]


def test_a_failing_listener_harms_nobody(store):
    heard = []
    store.on_group(lambda changes: 1 / 0)
    store.on_group(heard.append)

    store.write(note("a")).result(60)
    store.write(note("b")).result(60)
    store.close()

    assert len(heard) == 2


def test_rows_are_written_as_they_come_and_not_at_all_when_they_break_off(store):
    def rows(count, fault=None):
        yield from ((f"{fault}{i}", "") for i in range(count))
        if fault:
            raise fault

    store.write(lambda tx: tx.run_each(INSERT, rows(3))).result(60)
    with pytest.raises(LookupError):
        store.write(lambda tx: tx.run_each(INSERT, rows(2, LookupError()))).result(60)

    assert store.write(lambda tx: tx.row(COUNT)).result(60).value == (3,)


def test_a_transaction_is_worthless_after_its_function(store):
    leaked = []
    store.write(leaked.append).result(60)

    for use in (
        lambda tx: tx.run(INSERT, ("a", "")),
        lambda tx: tx.run_each(INSERT, [("a", "")]),
        lambda tx: tx.row(COUNT),
        lambda tx: tx.emit("z", "name", "a", b""),
        lambda tx: tx.drop_scope("z"),
    ):
        with pytest.raises(RuntimeError, match="after its function"):
            use(leaked[0])


def test_a_write_cancelled_in_the_queue_never_runs(store):
    gate = Gate(store)
    cancelled = store.write(note("cancelled"))
    kept = store.write(note("kept"))

    assert cancelled.cancel()
    gate.leave.set()
    kept.result(60)

    assert body_of(store, "cancelled") is None


def test_closing_finishes_the_queue_and_refuses_the_rest(stores):
    store = stores.open()
    gate = Gate(store)
    queued = [store.write(note(str(i))) for i in range(5)]
    gate.leave.set()
    store.close()
    store.close()

    assert all(future.done() for future in queued)
    for use in (lambda: store.write(note("late")), lambda: count(store)):
        with pytest.raises(Unavailable):
            use()
    assert count(stores.open()) == 5


BAD_CHANGES = {
    "no scope": (("", "name", "k", b""), ValueError),
    "no kind": (("z", "", "k", b""), ValueError),
    "too large": (("z", "name", "k", bytes(DOC_BYTES_MAX + 1)), BadRequest),
}


@pytest.mark.parametrize(("change", "error"), BAD_CHANGES.values(), ids=BAD_CHANGES)
def test_a_bad_change_is_refused_and_takes_no_sequence(store, change, error):
    with pytest.raises(error):
        store.write(lambda tx: tx.emit(*change)).result(60)
    with pytest.raises(ValueError, match="scope"):
        store.write(lambda tx: tx.drop_scope("")).result(60)

    assert store.write(lambda tx: tx.emit("z", "name", "k", bytes(DOC_BYTES_MAX))).result(60).sequence == 1


def refuse(tx):
    note("gone")(tx)
    raise BadRequest(reason="no")


@pytest.mark.parametrize("function", [note("a"), refuse], ids=["done", "refused"])
def test_the_number_of_groups_moves_before_a_write_settles(store, function):
    before, at_the_end = store.groups, []
    gate = Gate(store)

    future = store.write(function)
    future.add_done_callback(lambda _: at_the_end.append((store.groups, body_of(store, "a"))))
    gate.leave.set()
    wait([future], 5)
    store.close()

    ((groups, found),) = at_the_end
    assert groups > before + 1  # the gate's own group is over too
    assert found == (None if function is refuse else ("text",))


def test_the_number_of_groups_stays_while_nothing_is_written(store):
    store.write(note("a")).result(60)
    before = store.groups

    assert [body_of(store, "a") for _ in range(3)] == [("text",)] * 3
    assert store.groups == before


def test_a_read_of_one_statement_sees_what_is_committed(store):
    store.write(note("a")).result(60)

    assert store.read_one(lambda reader: reader.row(SELECT, ("a",))) == ("text",)
    assert store.read(lambda _: store.read_one(lambda reader: reader.row(COUNT))) == (1,)
    store.write(note("b")).result(60)
    assert store.read_one(lambda reader: reader.row(COUNT)) == (2,)


def test_a_read_of_one_statement_ends_as_every_read_does(store):
    store.close()

    with pytest.raises(Unavailable):
        store.read_one(lambda reader: reader.row(COUNT))
