"""The rows of a zone's history.

Owns  the tables `history`, `history_items` and `history_state`: their schema and statements.
Asks  a Reader or Transaction of the store.
Tells `services.zone_log`, which writes, and `services.history`, which reads.
Not   undoing anything; when what is forgotten (`services.history`).

A change is one row of `history`, numbered from 1 in its zone; what it did to one record or setting is a row
of `history_items`: what it `was`, what it `became`, NULL where it was not there. A record that moves to
another name has two rows, so that each name has its own story. `history_state` counts: sequences are
dense and never given twice; changes up to `floor_sequence` are forgotten, whether their rows are gone or not.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction

CREATE = """
create table history_state (
  zone_id text primary key,
  last_sequence integer not null,
  floor_sequence integer not null,
  row_count integer not null
);
create table history (
  zone_id text not null,
  sequence integer not null,
  made_us integer not null,
  origin text not null,
  reverts integer,
  actor text not null,
  request_id text not null,
  item_count integer not null,
  primary key (zone_id, sequence)
);
create table history_items (
  zone_id text not null,
  sequence integer not null,
  position integer not null,
  kind text not null,
  item_id text not null,
  name text not null,
  was blob,
  became blob,
  primary key (zone_id, sequence, position)
);
create index history_items_by_name on history_items (zone_id, name, sequence, position);
"""

COLUMNS = "sequence, made_us, origin, reverts, actor, request_id, item_count"
ITEM_COLUMNS = "sequence, position, kind, item_id, name, was, became"

INSERT_STATE = (
    "insert into history_state (zone_id, last_sequence, floor_sequence, row_count) values (?, 1, 0, ?)"
    " on conflict (zone_id) do update set last_sequence = history_state.last_sequence + 1,"
    " row_count = history_state.row_count + excluded.row_count returning last_sequence"
)
INSERT = f"insert into history (zone_id, {COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_ITEM = f"insert into history_items (zone_id, {ITEM_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)"
UPDATE_GROWN = (
    "update history set item_count = item_count + ? where zone_id = ? and sequence = ? returning item_count"
)
UPDATE_STATE_GROWN = "update history_state set row_count = row_count + ? where zone_id = ?"

SELECT_STATE = "select last_sequence, floor_sequence, row_count from history_state where zone_id = ?"
SELECT_ONE = f"select {COLUMNS} from history where zone_id = ? and sequence = ?"
SELECT_COUNT = "select count(*) from history where zone_id = ? and sequence > ?"
SELECT_LIST = {
    descending: (
        f"select {COLUMNS} from history where zone_id = ? and sequence > ?"
        f" order by sequence {'desc' if descending else 'asc'} limit ? offset ?"
    )
    for descending in (False, True)
}
SELECT_COUNT_OF_NAME = (
    "select count(distinct sequence) from history_items where zone_id = ? and name = ? and sequence > ?"
)
SELECT_LIST_OF_NAME = {
    descending: (
        f"select {COLUMNS} from history where zone_id = ? and sequence in (select distinct sequence"
        " from history_items where zone_id = ? and name = ? and sequence > ?)"
        f" order by sequence {'desc' if descending else 'asc'} limit ? offset ?"
    )
    for descending in (False, True)
}
SELECT_ITEMS = (
    f"select {ITEM_COLUMNS} from history_items where zone_id = ? and sequence = ?"
    " order by position limit ? offset ?"
)
SELECT_ITEMS_OF_NAME = (
    f"select {ITEM_COLUMNS} from history_items where zone_id = ? and name = ? and sequence = ?"
    " order by position limit ? offset ?"
)
SELECT_SINCE = (
    f"select {ITEM_COLUMNS} from history_items where zone_id = ? and sequence > ?"
    " order by sequence, position limit ?"
)
SELECT_SINCE_OF_NAME = (
    f"select {ITEM_COLUMNS} from history_items where zone_id = ? and name = ? and sequence > ?"
    " order by sequence, position limit ?"
)

SELECT_OVERFULL = "select zone_id, last_sequence from history_state where row_count > ? order by zone_id"
SELECT_SEQUENCE_OF_ROW = (
    "select sequence from history_items where zone_id = ? order by sequence desc, position desc"
    " limit 1 offset ?"
)
SELECT_OLD = "select zone_id, max(sequence) from history where made_us < ? group by zone_id order by zone_id"
UPDATE_FLOOR = "update history_state set floor_sequence = ? where zone_id = ? and floor_sequence < ?"
SELECT_FORGOTTEN = (
    "select s.zone_id, s.floor_sequence from history_state s where exists (select 1 from history h"
    " where h.zone_id = s.zone_id and h.sequence <= s.floor_sequence) or exists (select 1 from"
    " history_items i where i.zone_id = s.zone_id and i.sequence <= s.floor_sequence)"
    " order by s.zone_id"
)
DELETE_ITEMS = (
    "delete from history_items where zone_id = ? and (sequence, position) in (select sequence, position"
    " from history_items where zone_id = ? and sequence <= ? order by sequence, position limit ?)"
)
DELETE_CHANGES = (
    "delete from history where zone_id = ? and sequence in (select sequence from history"
    " where zone_id = ? and sequence <= ? order by sequence limit ?)"
)
UPDATE_STATE_SHRUNK = "update history_state set row_count = row_count - ? where zone_id = ?"
DELETE_STATE = "delete from history_state where zone_id = ?"


class ChangeRow(NamedTuple):
    """One change without its items. `actor` is JSON text; `reverts` is the change that it undid."""

    sequence: int
    made_us: int
    origin: str
    reverts: int | None
    actor: str
    request_id: str
    item_count: int


class ItemRow(NamedTuple):
    """What a change did to one thing. `was` and `became` are JSON text; None is "not there".

    `kind` is "record", or what `services` call the kind of setting; `name` is a record's owner name, else
    empty.
    """

    sequence: int
    position: int
    kind: str
    item_id: str
    name: str
    was: bytes | None
    became: bytes | None


class StateRow(NamedTuple):
    last_sequence: int
    floor_sequence: int
    row_count: int


def next_sequence(tx: Transaction, zone_id: str, item_count: int) -> int:
    """Count a new change of so many items; returns its number."""
    ((sequence,),) = tx.rows(INSERT_STATE, (zone_id, item_count))
    return int(sequence)


def insert(tx: Transaction, zone_id: str, row: ChangeRow) -> None:
    tx.run(INSERT, (zone_id, *row))


def insert_items(tx: Transaction, zone_id: str, rows: Iterable[ItemRow]) -> None:
    for row in rows:
        tx.run(INSERT_ITEM, (zone_id, *row))


def grow(tx: Transaction, zone_id: str, sequence: int, item_count: int) -> int | None:
    """Count further items of a change; returns how many it had before, None when it is gone."""
    found = tx.rows(UPDATE_GROWN, (item_count, zone_id, sequence))
    if not found:
        return None
    tx.run(UPDATE_STATE_GROWN, (item_count, zone_id))
    return int(found[0][0]) - item_count


def state(reader: Reader, zone_id: str) -> StateRow:
    found = reader.row(SELECT_STATE, (zone_id,))
    return StateRow(*found) if found else StateRow(0, 0, 0)


def change(reader: Reader, zone_id: str, sequence: int) -> ChangeRow | None:
    found = reader.row(SELECT_ONE, (zone_id, sequence))
    return ChangeRow(*found) if found else None


def count(reader: Reader, zone_id: str, floor: int, name: str | None) -> int:
    if name is None:
        found = reader.row(SELECT_COUNT, (zone_id, floor))
    else:
        found = reader.row(SELECT_COUNT_OF_NAME, (zone_id, name, floor))
    return int(found[0]) if found else 0


def listed(
    reader: Reader, zone_id: str, floor: int, name: str | None, descending: bool, limit: int, offset: int
) -> list[ChangeRow]:
    """Changes above `floor`, by number; with a name those that touched it."""
    if name is None:
        sql, parameters = SELECT_LIST[descending], (zone_id, floor, limit, offset)
        return [ChangeRow(*found) for found in reader.rows(sql, parameters)]
    rows = reader.rows(SELECT_LIST_OF_NAME[descending], (zone_id, zone_id, name, floor, limit, offset))
    return [ChangeRow(*found) for found in rows]


def items(
    reader: Reader, zone_id: str, sequence: int, limit: int, offset: int = 0, name: str | None = None
) -> list[ItemRow]:
    """What one change did, in order; with a name what it did there."""
    if name is None:
        rows = reader.rows(SELECT_ITEMS, (zone_id, sequence, limit, offset))
    else:
        rows = reader.rows(SELECT_ITEMS_OF_NAME, (zone_id, name, sequence, limit, offset))
    return [ItemRow(*found) for found in rows]


def items_since(
    reader: Reader, zone_id: str, sequence: int, limit: int, name: str | None = None
) -> list[ItemRow]:
    """What all changes after `sequence` did, oldest first."""
    if name is None:
        rows = reader.rows(SELECT_SINCE, (zone_id, sequence, limit))
    else:
        rows = reader.rows(SELECT_SINCE_OF_NAME, (zone_id, name, sequence, limit))
    return [ItemRow(*found) for found in rows]


def overfull(reader: Reader, rows_max: int) -> list[tuple[str, int]]:
    """Zones with more item rows than that, and their newest change."""
    return [(zone_id, int(last)) for zone_id, last in reader.rows(SELECT_OVERFULL, (rows_max,))]


def sequence_of_row(reader: Reader, zone_id: str, rows_newer: int) -> int | None:
    """The change of the item row that has so many newer ones; None when there are fewer."""
    found = reader.row(SELECT_SEQUENCE_OF_ROW, (zone_id, rows_newer))
    return int(found[0]) if found else None


def older_than(reader: Reader, time_us: int) -> Sequence[tuple[str, int]]:
    """Each zone with changes older than that, and the newest of them."""
    return [(zone_id, int(sequence)) for zone_id, sequence in reader.rows(SELECT_OLD, (time_us,))]


def raise_floor(tx: Transaction, zone_id: str, sequence: int) -> None:
    """Forget every change up to `sequence`."""
    tx.run(UPDATE_FLOOR, (sequence, zone_id, sequence))


def forgotten(reader: Reader) -> list[tuple[str, int]]:
    """Zones that still have rows of forgotten changes, and their floors."""
    return [(zone_id, int(floor)) for zone_id, floor in reader.rows(SELECT_FORGOTTEN)]


def delete_some(tx: Transaction, zone_id: str, floor: int, rows_max: int) -> int:
    """Delete rows of forgotten changes, at most `rows_max`; returns how many there were."""
    items_gone = tx.run(DELETE_ITEMS, (zone_id, zone_id, floor, rows_max))
    if items_gone:
        tx.run(UPDATE_STATE_SHRUNK, (items_gone, zone_id))
    if items_gone >= rows_max:
        return items_gone
    left = rows_max - items_gone
    return items_gone + tx.run(DELETE_CHANGES, (zone_id, zone_id, floor, left))


def delete_state(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_STATE, (zone_id,))
