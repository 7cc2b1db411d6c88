"""The rows of zones.

Owns  the table `zones`: its schema and statements.
Asks  a Reader or Transaction of the store.
Tells `services.zones` and `services.zone_edit`.
Not   records (`tables.records`); what a status means.

`name` is the lower-case ASCII text form without the last dot. `record_count` is kept with every change, so
that the total of an unfiltered list costs nothing. A deleted zone's records are deleted afterwards, some at a
time, so that the writes of others pass between; `deleted_zones` remembers which.

A list is one statement put together from the constants below; `statements` gives every shape of it, for the
test that prepares them all on PostgreSQL.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from edgestead.store.control import Reader, Transaction

CREATE = """
create table zones (
  id text primary key,
  account_id text not null references accounts (id),
  name text not null unique,
  type text not null,
  status text not null,
  paused integer not null,
  plan text not null,
  serial integer not null,
  record_count integer not null,
  version integer not null,
  created_us integer not null,
  modified_us integer not null,
  activated_us integer
);
create index zones_by_account on zones (account_id, name);
create table deleted_zones (
  id text primary key
);
"""

COLUMNS = (
    "id, account_id, name, type, status, paused, plan, serial, record_count, version, created_us,"
    " modified_us, activated_us"
)
INSERT = f"insert into zones ({COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT = f"select {COLUMNS} from zones where id = ?"
SELECT_STATE = "select name, record_count, version from zones where id = ?"
SELECT_ACCOUNT_ID = "select account_id from zones where id = ?"
SELECT_ID_BY_NAME = "select id from zones where name = ?"
SELECT_RECORDS_OF_ACCOUNT = "select sum(record_count) from zones where account_id = ?"
UPDATE_AFTER_CHANGE = "update zones set serial = ?, record_count = ?, version = version + 1 where id = ?"
DELETE = "delete from zones where id = ?"
INSERT_DELETED = "insert into deleted_zones (id) values (?)"
SELECT_DELETED = "select id from deleted_zones order by id limit 1"
DELETE_DELETED = "delete from deleted_zones where id = ?"

SELECT_LIST = f"select {COLUMNS} from zones"
COUNT_LIST = "select count(*) from zones"
CONDITIONS: Mapping[str, str] = {
    "name": "name = ?",
    "status": "status = ?",
    "account.id": "account_id = ?",
}
ORDERS: Mapping[str, tuple[str, str]] = {
    "name": ("name asc", "name desc"),
    "status": ("status asc, name asc", "status desc, name desc"),
    "account.id": ("account_id asc, name asc", "account_id desc, name desc"),
}


STATEMENTS_CACHED_MAX = 256  # shapes of lists; a restricted caller's depends on how much it names


class ZoneRow(NamedTuple):
    id: str
    account_id: str
    name: str
    type: str
    status: str
    paused: int
    plan: str
    serial: int
    record_count: int
    version: int
    created_us: int
    modified_us: int
    activated_us: int | None


def insert(tx: Transaction, row: ZoneRow) -> None:
    tx.run(INSERT, row)


def zone(reader: Reader, zone_id: str) -> ZoneRow | None:
    found = reader.row(SELECT, (zone_id,))
    return ZoneRow(*found) if found else None


class ZoneState(NamedTuple):
    """What a list of records needs. `version` is another one after every change of a record."""

    name: str
    record_count: int
    version: int


def state(reader: Reader, zone_id: str) -> ZoneState | None:
    found = reader.row(SELECT_STATE, (zone_id,))
    return ZoneState(*found) if found else None


def account_id(reader: Reader, zone_id: str) -> str | None:
    found = reader.row(SELECT_ACCOUNT_ID, (zone_id,))
    return found[0] if found else None


def id_by_name(reader: Reader, name: str) -> str | None:
    found = reader.row(SELECT_ID_BY_NAME, (name,))
    return found[0] if found else None


def records_of_account(reader: Reader, account_id: str) -> int:
    """How many records all of an account's zones have."""
    found = reader.row(SELECT_RECORDS_OF_ACCOUNT, (account_id,))
    return int(found[0] or 0) if found else 0


def name_is_taken(reader: Reader, name: str) -> bool:
    return id_by_name(reader, name) is not None


def set_after_change(tx: Transaction, zone_id: str, serial: int, record_count: int) -> None:
    tx.run(UPDATE_AFTER_CHANGE, (serial, record_count, zone_id))


def delete(tx: Transaction, zone_id: str) -> None:
    """The zone is gone; its id stays on a list until its records are gone too."""
    tx.run(DELETE, (zone_id,))
    tx.run(INSERT_DELETED, (zone_id,))


def next_deleted(reader: Reader) -> str | None:
    """A deleted zone that may still have records."""
    found = reader.row(SELECT_DELETED)
    return found[0] if found else None


def forget_deleted(tx: Transaction, zone_id: str) -> None:
    tx.run(DELETE_DELETED, (zone_id,))


class Seen(NamedTuple):
    """Which zones a caller may see: those of some accounts (None is every account) and single ones, less
    the hidden ones.
    """

    account_ids: Sequence[str] | None
    zone_ids: Sequence[str]
    hidden_account_ids: Sequence[str]
    hidden_zone_ids: Sequence[str]


def listed(
    reader: Reader,
    wanted: Mapping[str, str],
    seen: Seen | None,
    order: str,
    descending: bool,
    limit: int,
    offset: int,
) -> list[ZoneRow]:
    """Zones that meet every condition of `wanted` (keys of CONDITIONS). `seen` None sees all."""
    where = _where(tuple(wanted), _sizes(seen))
    sql = f"{SELECT_LIST}{where} order by {ORDERS[order][descending]} limit ? offset ?"
    parameters = (*wanted.values(), *_parameters(seen), limit, offset)
    return [ZoneRow(*found) for found in reader.rows(sql, parameters)]


def count(reader: Reader, wanted: Mapping[str, str], seen: Seen | None) -> int:
    sql = COUNT_LIST + _where(tuple(wanted), _sizes(seen))
    found = reader.row(sql, (*wanted.values(), *_parameters(seen)))
    return int(found[0]) if found else 0


def statements() -> Iterator[str]:
    """Lists with each condition, each order and a restricted caller; the others are constants."""
    for keys in ((), *((key,) for key in CONDITIONS), tuple(CONDITIONS)):
        for sizes in (_EVERYTHING, (0, 0, 0, 0), (1, 2, 1, 2)):
            where = _where(keys, sizes)
            yield COUNT_LIST + where
            for both in ORDERS.values():
                for order in both:
                    yield f"{SELECT_LIST}{where} order by {order} limit ? offset ?"


_EVERYTHING = (-1, 0, 0, 0)


def _sizes(seen: Seen | None) -> tuple[int, ...]:
    if seen is None:
        return _EVERYTHING
    return tuple(-1 if ids is None else len(ids) for ids in seen)


def _parameters(seen: Seen | None) -> tuple[Any, ...]:
    if seen is None:
        return ()
    allowed = () if seen.account_ids is None else (*seen.account_ids, *seen.zone_ids)
    return (*allowed, *seen.hidden_account_ids, *seen.hidden_zone_ids)


@lru_cache(STATEMENTS_CACHED_MAX)
def _where(keys: tuple[str, ...], sizes: tuple[int, ...]) -> str:
    conditions = [CONDITIONS[key] for key in keys]
    accounts, zones, hidden_accounts, hidden_zones = sizes
    if accounts >= 0:
        conditions.append(f"(account_id in ({_marks(accounts)}) or id in ({_marks(zones)}))")
    if hidden_accounts:
        conditions.append(f"account_id not in ({_marks(hidden_accounts)})")
    if hidden_zones:
        conditions.append(f"id not in ({_marks(hidden_zones)})")
    return " where " + " and ".join(conditions) if conditions else ""


def _marks(count: int) -> str:
    return ", ".join("?" * count) if count else "null"
