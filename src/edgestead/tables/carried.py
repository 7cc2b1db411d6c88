"""Records that a zone carries as they were transferred: signatures, and what proves that names do not exist.

Owns  the table `carried_records`: its schema and statements.
Not   records that the API shows (`tables.records`); what these mean (`usecases.serving.presigned`).

`ends` is when a signature ends, in Unix seconds; 0 of every other record. A deleted zone's rows are deleted
some at a time.
"""

from collections.abc import Iterable
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table carried_records (
  zone_id text not null,
  name text not null,
  type integer not null,
  rdata blob not null,
  ttl integer not null,
  ends integer not null,
  primary key (zone_id, name, type, rdata)
);
create index carried_records_by_end on carried_records (zone_id, ends);
"""


class CarriedRow(NamedTuple):
    zone_id: str
    name: str
    type: int
    rdata: bytes
    ttl: int
    ends: int


COLUMNS = columns.names(CarriedRow)
INSERT = columns.insert("carried_records", CarriedRow)
SELECT_AT = f"select {COLUMNS} from carried_records where zone_id = ? and name = ? order by type, rdata"
SELECT_SOME = (
    f"select {COLUMNS} from carried_records where zone_id = ? and name > ? order by name, type, rdata limit ?"
)
SELECT_END = "select min(ends) from carried_records where zone_id = ? and ends > 0"
SELECT_ZONES = "select distinct zone_id from carried_records"
SELECT_IS_THERE = "select 1 from carried_records where zone_id = ? limit 1"
DELETE = "delete from carried_records where zone_id = ? and name = ? and type = ? and rdata = ?"
DELETE_SOME = (
    "delete from carried_records where zone_id = ? and name in"
    " (select distinct name from carried_records where zone_id = ? limit ?)"
)


def insert(tx: Transaction, row: CarriedRow) -> None:
    tx.run(INSERT, row)


def delete(tx: Transaction, row: CarriedRow) -> None:
    tx.run(DELETE, (row.zone_id, row.name, row.type, row.rdata))


def delete_some(tx: Transaction, zone_id: str, limit: int) -> int:
    """The records of some names; returns how many went."""
    return tx.run(DELETE_SOME, (zone_id, zone_id, limit))


def at_name(reader: Reader, zone_id: str, name: str) -> list[CarriedRow]:
    return [CarriedRow(*found) for found in reader.rows(SELECT_AT, (zone_id, name))]


def of_zone(reader: Reader, zone_id: str, rows_at_once: int) -> Iterable[CarriedRow]:
    """All of them by name. A read of several statements."""
    after = ""
    while found := [CarriedRow(*row) for row in reader.rows(SELECT_SOME, (zone_id, after, rows_at_once))]:
        last = found[-1].name
        whole = [row for row in found if row.name != last] if len(found) == rows_at_once else found
        if not whole:  # one name has them all
            whole = at_name(reader, zone_id, last)
        yield from whole
        after = whole[-1].name


def is_there(reader: Reader, zone_id: str) -> bool:
    """Whether the zone carries any."""
    return reader.row(SELECT_IS_THERE, (zone_id,)) is not None


def first_end(reader: Reader, zone_id: str) -> int | None:
    """When the first of the zone's signatures ends."""
    found = reader.row(SELECT_END, (zone_id,))
    return found[0] if found else None


def zones(reader: Reader) -> list[str]:
    """The ids of those that carry any."""
    return [zone_id for (zone_id,) in reader.rows(SELECT_ZONES)]
