"""The rows of a zone's history.

Owns  the tables `history`, `history_items` and `history_floors`: their schema and statements.
Not   undoing anything; when what is forgotten.

A change is one row of `history`, numbered from 1 in its zone; what it did to one record or setting is a row
of `history_items`: what it `was`, what it `became`, NULL where it was not there. A record that moves to
another name has two rows, so that each name has its own story. Sequences are dense and never given twice.
Changes up to `floor_sequence` are forgotten, whether their rows are gone or not. Rows go oldest first: where
none is left, the floor was the newest change.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

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

FLOORS = """
create table history_floors (
  zone_id text primary key,
  floor_sequence integer not null
);
insert into history_floors (zone_id, floor_sequence)
  select zone_id, floor_sequence from history_state where floor_sequence > 0;
drop table history_state;
"""


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


COLUMNS = columns.names(ChangeRow)
ITEM_COLUMNS = columns.names(ItemRow)

INSERT = columns.insert("history", ChangeRow, before=("zone_id",))
INSERT_ITEM = columns.insert("history_items", ItemRow, before=("zone_id",))
UPDATE_GROWN = (
    "update history set item_count = item_count + ? where zone_id = ? and sequence = ? returning item_count"
)

SELECT_FLOOR = "select floor_sequence from history_floors where zone_id = ?"
SELECT_LAST = "select max(sequence) from history where zone_id = ?"
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

SELECT_OVERFULL = (
    "select zone_id, max(sequence) from history_items group by zone_id having count(*) > ? order by zone_id"
)
SELECT_SEQUENCE_OF_ROW = (
    "select sequence from history_items where zone_id = ? order by sequence desc, position desc"
    " limit 1 offset ?"
)
SELECT_OLD = "select zone_id, max(sequence) from history where made_us < ? group by zone_id order by zone_id"
# Of a zone that is there: one that was deleted meanwhile forgets everything, and would keep the row for good.
UPSERT_FLOOR = (
    "insert into history_floors (zone_id, floor_sequence) select id, cast(? as integer) from zones"
    " where id = ? on conflict (zone_id) do update"
    " set floor_sequence = excluded.floor_sequence"
    " where history_floors.floor_sequence < excluded.floor_sequence"
)
SELECT_FORGOTTEN = (
    "select s.zone_id, s.floor_sequence from history_floors s where exists (select 1 from history h"
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
DELETE_FLOOR = "delete from history_floors where zone_id = ?"


def insert(tx: Transaction, zone_id: str, row: ChangeRow) -> None:
    tx.run(INSERT, (zone_id, *row))


def insert_items(tx: Transaction, zone_id: str, rows: Iterable[ItemRow]) -> None:
    tx.run_each(INSERT_ITEM, ((zone_id, *row) for row in rows))


def grow(tx: Transaction, zone_id: str, sequence: int, item_count: int) -> int | None:
    """Count further items of a change; returns how many it had before, None when it is gone."""
    found = tx.rows(UPDATE_GROWN, (item_count, zone_id, sequence))
    if not found:
        return None
    return int(found[0][0]) - item_count


def floor(reader: Reader, zone_id: str) -> int:
    """The newest change that is forgotten, 0 for none."""
    found = reader.row(SELECT_FLOOR, (zone_id,))
    return int(found[0]) if found else 0


def last_sequence(reader: Reader, zone_id: str) -> int:
    """The zone's newest change, 0 for none. `tables.zones.editable` reads the same with the zone."""
    found = reader.row(SELECT_LAST, (zone_id,))
    return floor(reader, zone_id) if found is None or found[0] is None else int(found[0])


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
    tx.run(UPSERT_FLOOR, (sequence, zone_id))


def forgotten(reader: Reader) -> list[tuple[str, int]]:
    """Zones that still have rows of forgotten changes, and their floors."""
    return [(zone_id, int(floor)) for zone_id, floor in reader.rows(SELECT_FORGOTTEN)]


def delete_some(tx: Transaction, zone_id: str, floor: int, rows_max: int) -> int:
    """Delete rows of forgotten changes, at most `rows_max`; returns how many there were."""
    items_gone = tx.run(DELETE_ITEMS, (zone_id, zone_id, floor, rows_max))
    if items_gone >= rows_max:
        return items_gone
    left = rows_max - items_gone
    return items_gone + tx.run(DELETE_CHANGES, (zone_id, zone_id, floor, left))


def delete_floor(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_FLOOR, (zone_id,))
