"""What every ChangeFeed promises."""

import pytest

from edgestead.store.changes import LIVES_MAX, SLICE_ROWS_MAX, Change, change_bytes


def emit(store, *changes):
    """Each change its own write: a tuple for `emit`, a scope's name for `drop_scope`."""
    for change in changes:
        if isinstance(change, str):
            store.write(lambda tx, scope=change: tx.drop_scope(scope)).result(60)
        else:
            store.write(lambda tx, change=change: tx.emit(*change)).result(60)


def snapshot(store, *kinds):
    changes = []
    sequence = store.feed.snapshot(frozenset(kinds), changes.extend)
    return sequence, [(c.sequence, c.scope, c.kind, c.key, c.doc) for c in changes]


def test_an_empty_feed_is_at_zero(store):
    assert store.feed.head() == 0
    assert store.feed.tail(0, 1000) == []
    assert snapshot(store) == (0, [])


def test_changes_come_back_dense_in_order_and_whole(store):
    emit(store, ("z", "name", "a", b"1"), ("z", "zone", "", b"2"), ("z", "name", "a", None), "z")

    assert store.feed.tail(0, 1000) == [
        Change(1, "z", "name", "a", b"1"),
        Change(2, "z", "zone", "", b"2"),
        Change(3, "z", "name", "a", None),
        Change(4, "z", "", "", None),
    ]
    assert [change.drops_scope for change in store.feed.tail(0, 1000)] == [False, False, False, True]


def test_the_order_between_groups_is_kept(store):
    store.write(lambda tx: tx.emit("z", "name", "a", b"", first="edge")).result(60)
    store.write(lambda tx: tx.drop_scope("z", first="dns")).result(60)

    assert [change.first for change in store.feed.tail(0, 1000)] == ["edge", "dns"]


@pytest.mark.parametrize(("after", "expected"), [(0, [1, 2, 3]), (2, [3]), (3, []), (4, None), (-1, None)])
def test_the_tail_resumes_anywhere_it_is_kept(store, after, expected):
    emit(store, *[("z", "name", key, b"") for key in "abc"])

    tail = store.feed.tail(after, 1000)

    assert (tail if tail is None else [change.sequence for change in tail]) == expected


def test_the_tail_is_cut_by_bytes_but_never_empty(store):
    emit(store, *[("z", "name", str(i), bytes(100)) for i in range(5)])

    assert [c.sequence for c in store.feed.tail(0, 300)] == [1, 2]
    assert [c.sequence for c in store.feed.tail(2, 1)] == [3]


def test_a_change_counts_its_texts_its_document_and_sixteen():
    assert change_bytes(Change(1, "zone", "name", "a", b"12345678")) == 16 + 4 + 4 + 1 + 8
    assert change_bytes(Change(1, "z", "name", "", None)) == 16 + 1 + 4


def test_a_snapshot_holds_the_newest_document_of_each_key_in_byte_order(store):
    emit(
        store,
        ("z", "name", "b", b"old"),
        ("z", "name", "B", b"x"),
        ("y", "zone", "", b"y"),
        ("z", "name", "b", b"new"),
        ("z", "name", "gone", b""),
        ("z", "name", "gone", None),
    )

    assert snapshot(store) == (
        6,
        [(3, "y", "zone", "", b"y"), (2, "z", "name", "B", b"x"), (4, "z", "name", "b", b"new")],
    )


def test_a_snapshot_can_hold_some_kinds_only(store):
    emit(store, ("z", "name", "a", b""), ("z", "zone", "", b""), ("z", "rule", "r", b""))

    assert [row[2] for row in snapshot(store, "zone", "rule")[1]] == ["rule", "zone"]


def test_a_dropped_scope_leaves_the_others(store):
    emit(store, ("z", "name", "a", b""), ("zz", "name", "a", b""), ("z", "name", "b", b""), "z")

    assert snapshot(store) == (4, [(2, "zz", "name", "a", b"")])


def test_a_scope_may_come_back_after_its_drop(store):
    emit(store, ("z", "name", "a", b"1"), "z", ("z", "name", "a", b"2"))

    assert snapshot(store) == (3, [(3, "z", "name", "a", b"2")])


def test_a_log_is_told_and_each_of_its_documents_stays_in_the_snapshot(store):
    emit(store, ("z", "log:a", "", b"1"), ("z", "name", "", b"2"), ("z", "log:a", "", b"3"))

    assert [change.doc for change in store.feed.tail(0, 1000)] == [b"1", b"2", b"3"]
    assert snapshot(store) == (
        3,
        [(2, "z", "name", "", b"2"), (1, "z", "log:a", "", b"1"), (3, "z", "log:a", "", b"3")],
    )
    assert snapshot(store, "name") == (3, [(2, "z", "name", "", b"2")])
    assert [row[0] for row in snapshot(store, "log:a")[1]] == [1, 3]
    assert snapshot(store, "log:b") == (3, [])


def test_the_log_of_a_dropped_scope_is_gone(store):
    emit(store, ("z", "log:a", "", b"1"), ("y", "log:a", "", b"2"), "z", ("z", "log:a", "", b"4"))

    assert [row[0] for row in snapshot(store)[1]] == [2, 4]


def test_a_log_lasts_as_long_as_the_tail(stores):
    store = stores.open(tail_rows_max=1)
    emit(store, *[("z", "log:a", "", b"") for _ in range(130)])

    kept = [row[0] for row in snapshot(store)[1]]

    assert kept[-1] == 130
    assert 0 < len(kept) < 130


def test_a_document_of_a_log_cannot_be_taken_back(store):
    with pytest.raises(ValueError, match="log"):
        emit(store, ("z", "log:a", "", None))
    assert store.feed.head() == 0


def test_the_newest_document_is_there_for_the_transaction_that_emits_it(store):
    seen = []

    def write(tx):
        seen.append(tx.newest("z", "name", "a"))
        tx.emit("z", "name", "a", b"1")
        seen.append(tx.newest("z", "name", "a"))
        tx.emit("z", "name", "a", None)
        seen.append(tx.newest("z", "name", "a"))

    store.write(write).result(60)

    assert seen == [None, b"1", None]


def test_a_large_snapshot_comes_in_slices(store):
    rows = SLICE_ROWS_MAX * 2 + 1
    store.write(lambda tx: [tx.emit("z", "name", f"{i:05}", b"") for i in range(rows)]).result(60)
    slices = []

    store.feed.snapshot(frozenset(), lambda slice_: slices.append(len(slice_)))

    assert sum(slices) == rows
    assert max(slices) == SLICE_ROWS_MAX


def test_all_documents_of_a_kind_are_there_for_readers_and_for_the_transaction_that_changes_them(store):
    many = {f"k{number:05}": b"%d" % number for number in range(2_500)}

    def first(tx):
        tx.emit("z", "zone", "", b"the zone")
        tx.emit("other", "name", "k00001", b"another scope")
        for key, doc in many.items():
            tx.emit("z", "name", key, doc)
        return dict(tx.documents("z", "name"))

    def second(tx):
        tx.emit("z", "name", "k00007", None)
        tx.emit("z", "name", "k00008", b"new")
        return dict(tx.documents("z", "name"))

    def third(tx):
        tx.drop_scope("z")
        tx.emit("z", "name", "after", b"it")
        return dict(tx.documents("z", "name"))

    assert store.write(first).result().value == many
    assert store.read(lambda reader: dict(reader.documents("z", "name"))) == many
    assert store.read(lambda reader: list(reader.documents("z", "zone"))) == [("", b"the zone")]
    changed = {key: doc for key, doc in many.items() if key != "k00007"} | {"k00008": b"new"}
    assert store.write(second).result().value == changed
    assert store.read(lambda reader: dict(reader.documents("z", "name"))) == changed
    assert store.write(third).result().value == {"after": b"it"}
    assert store.read(lambda reader: dict(reader.documents("z", "name"))) == {"after": b"it"}


def test_snapshot_and_later_tail_make_the_newest_state(store):
    emit(store, ("z", "name", "a", b"1"), ("z", "name", "b", b"1"))
    sequence, rows = snapshot(store)
    emit(store, ("z", "name", "a", b"2"), ("z", "name", "b", None), ("z", "name", "c", b"1"))

    state = {row[3]: row[4] for row in rows}
    for change in store.feed.tail(sequence, 1000):
        state[change.key] = change.doc

    assert {key: doc for key, doc in state.items() if doc is not None} == {"a": b"2", "c": b"1"}
    assert [row[3:] for row in snapshot(store)[1]] == [("a", b"2"), ("c", b"1")]


TAILS = {"rows": {"tail_rows_max": 100}, "bytes": {"tail_bytes_max": 110 * 1000}}


@pytest.mark.parametrize("limits", TAILS.values(), ids=TAILS)
def test_the_tail_is_bounded_and_the_head_goes_on(stores, limits):
    store = stores.open(**limits)
    for _ in range(10):
        store.write(lambda tx: [tx.emit("z", "name", str(i), bytes(1000)) for i in range(50)]).result(60)

    assert store.feed.tail(0, 1) is None
    assert store.feed.tail(300, 1) is None
    assert [c.sequence for c in store.feed.tail(400, 1 << 20)] == list(range(401, 501))


def test_each_opening_has_a_name_of_its_own_and_includes_the_ones_before(stores):
    store = stores.open()
    emit(store, ("z", "name", "a", b"1"), ("z", "name", "a", b"2"))
    first = store.feed
    assert [first.includes(first.feed_id, sequence) for sequence in (-1, 0, 2, 3)] == [
        False,
        True,
        True,
        False,
    ]
    store.close()
    store = stores.open()
    emit(store, ("z", "name", "a", b"3"))
    second = store.feed

    assert first.feed_id != second.feed_id
    assert len(second.feed_id) == 32
    assert [second.includes(first.feed_id, sequence) for sequence in (0, 2, 3)] == [True, True, False]
    assert [second.includes(second.feed_id, sequence) for sequence in (2, 3, 4)] == [True, True, False]
    assert not second.includes("of another database", 1)
    assert not second.includes("", -1)


def test_so_many_openings_are_remembered(stores):
    names = []
    for _ in range(LIVES_MAX + 1):
        store = stores.open()
        names.append(store.feed.feed_id)
        store.close()
    feed = stores.open().feed

    remembered = [feed.includes(name, 0) for name in (*names, feed.feed_id)]

    assert remembered == [False, False] + [True] * LIVES_MAX
