"""The rows of the crash tests, and what must hold of them whenever a store is opened."""

from edgestead.store.changes import Change
from edgestead.store.migrations import Migration

MIGRATIONS = (Migration(1, "notes", "CREATE TABLE notes (id text PRIMARY KEY, value integer NOT NULL);"),)

UPSERT = "INSERT INTO notes (id, value) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET value = excluded.value"
DELETE = "DELETE FROM notes WHERE id = ?"
LIST = "SELECT id, value FROM notes"


def put(tx, key, value):
    tx.run(UPSERT, (key, value))
    tx.emit(f"scope-{key[0]}", "note", key, str(value).encode())


def remove(tx, key):
    tx.run(DELETE, (key,))
    tx.emit(f"scope-{key[0]}", "note", key, None)


def check_agreement(store) -> dict[str, int]:
    """Rows, the feed's state and its tail say the same, and sequences are dense; returns the rows."""
    rows = dict(store.read(lambda reader: reader.rows(LIST)))
    state: list[Change] = []
    head = store.feed.snapshot(frozenset(), state.extend)
    assert {change.key: int(change.doc) for change in state} == rows
    newest = check_tail(store, head)
    for key, change in newest.items():
        assert rows.get(key) == (None if change.doc is None else int(change.doc))
    assert store.read(lambda reader: reader.rows("PRAGMA integrity_check")) == [("ok",)]
    return rows


def check_tail(store, head) -> dict[str, Change]:
    """The tail is dense up to the head; returns the newest change of each key in it."""
    after = next(n for n in range(head + 1) if store.feed.tail(n, 1) is not None)
    newest = {}
    while changes := store.feed.tail(after, 1 << 20):
        assert [change.sequence for change in changes] == list(range(after + 1, after + 1 + len(changes)))
        after = changes[-1].sequence
        newest.update((change.key, change) for change in changes)
    assert after == head
    return newest
