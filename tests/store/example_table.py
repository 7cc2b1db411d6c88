"""Notes of a zone: how a module of `tables` is written.

Owns  the SQL of notes.
Not   which notes are allowed.
"""

from edgestead.store.control import Reader, Row, Transaction
from edgestead.store.migrations import Migration

MIGRATIONS = (
    Migration(
        1,
        "notes",
        """
        CREATE TABLE notes (
          id text PRIMARY KEY,
          zone_id text NOT NULL,
          body_folded text NOT NULL,
          size integer NOT NULL,
          made_us integer NOT NULL,
          raw blob
        );
        CREATE INDEX notes_of_zone ON notes (zone_id, id);
        """,
    ),
)

INSERT = "INSERT INTO notes (id, zone_id, body_folded, size, made_us, raw) VALUES (?, ?, ?, ?, ?, ?)"
# Keyset paging: the last id of the page before, never OFFSET.
SELECT_PAGE = "SELECT id, body_folded FROM notes WHERE zone_id = ? AND id > ? ORDER BY id LIMIT ?"
MATCH = {
    "exact": "SELECT id FROM notes WHERE body_folded = ?",
    "contains": "SELECT id FROM notes WHERE instr(body_folded, ?) > 0",
    "startswith": "SELECT id FROM notes WHERE instr(body_folded, ?) = 1",
    "endswith": "SELECT id FROM notes WHERE substr(body_folded, length(body_folded) - length(?) + 1) = ?",
}
KEEP_LARGEST = (
    "INSERT INTO notes (id, zone_id, body_folded, size, made_us) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET size = excluded.size WHERE notes.size < excluded.size RETURNING size"
)


def insert(tx: Transaction, row: Row) -> None:
    tx.run(INSERT, row)


def page(reader: Reader, zone_id: str, after: str, rows_max: int) -> list[Row]:
    return reader.rows(SELECT_PAGE, (zone_id, after, rows_max))
