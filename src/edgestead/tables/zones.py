"""The rows of zones.

Owns  the table `zones`: its schema and statements.
Not   records (`tables.records`); what a status means.

`name` is the lower-case ASCII text form without the last dot. `record_count` is kept with every change, so
that the total of an unfiltered list costs nothing. A deleted zone's records are deleted afterwards, some at a
time, so that the writes of others pass between; `deleted_zones` remembers which.

A list is one statement put together from the constants below; `statements` gives every shape of it, for the
test that prepares them all on PostgreSQL.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

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


COLUMNS = columns.names(ZoneRow)
_OF_ZONE = columns.names(ZoneRow, "z")
INSERT = columns.insert("zones", ZoneRow)
SELECT = f"select {COLUMNS} from zones where id = ?"
# A zone and all that a change of it starts from: one row for each setting, or one without a setting.
SELECT_EDITABLE = (
    f"select {_OF_ZONE},"
    " coalesce((select max(h.sequence) from history h where h.zone_id = z.id),"
    " (select f.floor_sequence from history_floors f where f.zone_id = z.id), 0),"
    " a.value, s.id, s.value from zones z"
    " left join settings a on a.scope_id = z.account_id and a.id = ?"
    " left join settings s on s.scope_id = z.id and (s.id >= ? and s.id < ? or s.id in (?, ?, ?, ?, ?))"
    " where z.id = ?"
)
SELECT_AFTER = f"select {COLUMNS} from zones where id > ? order by id limit ?"
SELECT_STATE = "select name, record_count, version from zones where id = ?"
SELECT_ACCOUNT_ID = "select account_id from zones where id = ?"
SELECT_ACCOUNT_IDS = (
    "select z.id, z.account_id from settings s join zones z on z.id = s.scope_id where s.id = ?"
)
SELECT_NAMES = "select name from zones where account_id = ? order by name limit 1000"
SELECT_ID_BY_NAME = "select id from zones where name = ?"
SELECT_NAMES_BELOW = (
    "select name from zones where length(name) > ? and substr(name, length(name) - ?) = ? order by name"
)
SELECT_RECORDS_OF_ACCOUNT = "select sum(record_count) from zones where account_id = ?"
SELECT_OF_ACCOUNT = f"select {COLUMNS} from zones where account_id = ? order by id limit ?"
SELECT_BY_SETTING = (
    f"select {_OF_ZONE} from settings s"
    " join zones z on z.id = s.scope_id where s.id = ? and s.value = ? and z.account_id = ?"
    " order by z.id limit ?"
)
UPDATE_AFTER_CHANGE = "update zones set serial = ?, record_count = ?, version = version + 1 where id = ?"
UPDATE_OWN = "update zones set paused = ?, plan = ?, modified_us = ? where id = ?"
DELETE = "delete from zones where id = ?"
INSERT_DELETED = "insert into deleted_zones (id) values (?)"
SELECT_DELETED = "select id from deleted_zones order by id limit 1"
DELETE_DELETED = "delete from deleted_zones where id = ?"

SELECT_EVERY = f"select {COLUMNS} from zones order by id"
SELECT_LIST = f"select {COLUMNS} from zones"
COUNT_LIST = "select count(*) from zones"
# Each value stands for every `?` of one text; several values of a condition are alternatives.
CONDITIONS: Mapping[str, str] = {
    "name": "name = ?",
    "name.not_equal": "name <> ?",
    "name.starts_with": "instr(name, ?) = 1",
    "name.ends_with": "(length(name) >= length(?) and substr(name, length(name) - length(?) + 1) = ?)",
    "name.contains": "instr(name, ?) > 0",
    "status": "status = ?",
    "type": "type = ?",
    "account.id": "account_id = ?",
    "nothing": "id = ''",
}
_BY_PLAN = "case plan when 'free' then 0 when 'pro' then 1 when 'business' then 2 else 3 end"
_BY_ACCOUNT_NAME = "(select a.name from accounts a where a.id = account_id)"
ORDERS: Mapping[str, tuple[str, str]] = {
    "name": ("name asc", "name desc"),
    **{
        key: (f"{text} asc, name asc", f"{text} desc, name desc")
        for key, text in (
            ("status", "status"),
            ("account.id", "account_id"),
            ("account.name", _BY_ACCOUNT_NAME),
            ("plan.id", _BY_PLAN),
        )
    },
}


STATEMENTS_CACHED_MAX = 256  # shapes of lists; a restricted caller's depends on how much it names


def insert(tx: Transaction, row: ZoneRow) -> None:
    tx.run(INSERT, row)


def zone(reader: Reader, zone_id: str) -> ZoneRow | None:
    found = reader.row(SELECT, (zone_id,))
    return ZoneRow(*found) if found else None


class SettingsWanted(NamedTuple):
    """Which settings `editable` reads: one of the account; of the zone a range of ids and five more."""

    of_account: str
    first: str
    end: str
    others: tuple[str, str, str, str, str]


class Editable(NamedTuple):
    """A zone as a change of it finds it. `last_sequence` is its newest change, 0 for none.

    `of_account` and the values of `settings`, by id, are JSON text.
    """

    zone: ZoneRow
    last_sequence: int
    of_account: str | None
    settings: dict[str, str]


def editable(reader: Reader, zone_id: str, wanted: SettingsWanted) -> Editable | None:
    """One statement for what took five: the zone, its history's end, and settings that say what it serves."""
    found = reader.rows(
        SELECT_EDITABLE, (wanted.of_account, wanted.first, wanted.end, *wanted.others, zone_id)
    )
    if not found:
        return None
    *row, last_sequence, of_account, _, _ = found[0]
    settings = {id_: value for *_, id_, value in found if id_ is not None}
    return Editable(ZoneRow(*row), last_sequence, of_account, settings)


def after(reader: Reader, zone_id: str, limit: int) -> list[ZoneRow]:
    """Zones by id, those behind one."""
    return [ZoneRow(*found) for found in reader.rows(SELECT_AFTER, (zone_id, limit))]


class ZoneState(NamedTuple):
    """What a list of records needs. `version` is another one after every change of a record."""

    name: str
    record_count: int
    version: int


def state(reader: Reader, zone_id: str) -> ZoneState | None:
    found = reader.row(SELECT_STATE, (zone_id,))
    return ZoneState(*found) if found else None


def every(reader: Reader) -> list[ZoneRow]:
    """All zones of the server."""
    return [ZoneRow(*found) for found in reader.rows(SELECT_EVERY)]


def account_id(reader: Reader, zone_id: str) -> str | None:
    found = reader.row(SELECT_ACCOUNT_ID, (zone_id,))
    return found[0] if found else None


def account_ids(reader: Reader, id_: str) -> dict[str, str]:
    """The accounts of all zones that have a setting, by the zone's id."""
    return dict(reader.rows(SELECT_ACCOUNT_IDS, (id_,)))


def id_by_name(reader: Reader, name: str) -> str | None:
    found = reader.row(SELECT_ID_BY_NAME, (name,))
    return found[0] if found else None


def names_below(reader: Reader, name: str) -> list[str]:
    """Zones of the server that lie below a name. Without an index."""
    suffix = f".{name}"
    found = reader.rows(SELECT_NAMES_BELOW, (len(suffix), len(suffix) - 1, suffix))
    return [below for (below,) in found]


def records_of_account(reader: Reader, account_id: str) -> int:
    """How many records all of an account's zones have."""
    found = reader.row(SELECT_RECORDS_OF_ACCOUNT, (account_id,))
    return int(found[0] or 0) if found else 0


def of_account(reader: Reader, account_id: str, limit: int) -> list[ZoneRow]:
    return [ZoneRow(*row) for row in reader.rows(SELECT_OF_ACCOUNT, (account_id, limit))]


def with_setting(reader: Reader, account_id: str, id_: str, value: str, limit: int) -> list[ZoneRow]:
    """Zones of an account that have this value (JSON text) of a setting."""
    found = reader.rows(SELECT_BY_SETTING, (id_, value, account_id, limit))
    return [ZoneRow(*row) for row in found]


def name_is_taken(reader: Reader, name: str) -> bool:
    return id_by_name(reader, name) is not None


def names_of_account(reader: Reader, account_id: str) -> list[str]:
    return [name for (name,) in reader.rows(SELECT_NAMES, (account_id,))]


def set_after_change(tx: Transaction, zone_id: str, serial: int, record_count: int) -> None:
    tx.run(UPDATE_AFTER_CHANGE, (serial, record_count, zone_id))


def set_own(tx: Transaction, zone_id: str, *, paused: bool, plan: str, modified_us: int) -> None:
    tx.run(UPDATE_OWN, (int(paused), plan, modified_us, zone_id))


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

    @property
    def is_everything(self) -> bool:
        return self.account_ids is None and not self.hidden_account_ids and not self.hidden_zone_ids

    @property
    def is_nothing(self) -> bool:
        return self.account_ids is not None and not self.account_ids and not self.zone_ids


class Condition(NamedTuple):
    """A key of CONDITIONS, and the values of which one has to fit."""

    key: str
    values: tuple[str, ...]


class Wanted(NamedTuple):
    """Which zones a list is about: those that meet every condition, or any."""

    conditions: tuple[Condition, ...] = ()
    any: bool = False


def listed(
    reader: Reader,
    wanted: Wanted,
    seen: Sequence[Sequence[Seen]] | None,
    order: str,
    descending: bool,
    limit: int,
    offset: int,
) -> list[ZoneRow]:
    """Zones that are wanted and that the caller may see: in each of `seen`, by any member; None sees all."""
    where = _where(_shape(wanted), wanted.any, _sizes(seen))
    sql = f"{SELECT_LIST}{where} order by {ORDERS[order][descending]} limit ? offset ?"
    parameters = (*_values(wanted), *_parameters(seen), limit, offset)
    return [ZoneRow(*found) for found in reader.rows(sql, parameters)]


def count(reader: Reader, wanted: Wanted, seen: Sequence[Sequence[Seen]] | None) -> int:
    sql = COUNT_LIST + _where(_shape(wanted), wanted.any, _sizes(seen))
    found = reader.row(sql, (*_values(wanted), *_parameters(seen)))
    return int(found[0]) if found else 0


def statements() -> Iterator[str]:
    """Lists with each condition, each order and a restricted caller; the others are constants."""
    every = tuple((key, 2) for key in CONDITIONS)
    shapes = [(), *(((key, 1),) for key in CONDITIONS), every]
    for shape, any_, sizes in (
        *((shape, False, _EVERYTHING) for shape in shapes),
        *(
            (every, True, sizes)
            for sizes in (_EVERYTHING, (((0, 0, 0, 0),),), (((1, 2, 1, 2), (-1, 0, 0, 1)), ((0, 1, 0, 0),)))
        ),
    ):
        where = _where(shape, any_, sizes)
        yield COUNT_LIST + where
        for both in ORDERS.values():
            for order in both:
                yield f"{SELECT_LIST}{where} order by {order} limit ? offset ?"


_Sizes = tuple[tuple[tuple[int, ...], ...], ...]
_EVERYTHING: _Sizes = ()


def _shape(wanted: Wanted) -> tuple[tuple[str, int], ...]:
    return tuple((key, len(values)) for key, values in wanted.conditions)


def _values(wanted: Wanted) -> Iterator[str]:
    for key, values in wanted.conditions:
        for value in values:
            yield from [value] * CONDITIONS[key].count("?")


def _sizes(seen: Sequence[Sequence[Seen]] | None) -> _Sizes:
    return tuple(
        tuple(tuple(-1 if ids is None else len(ids) for ids in one) for one in level) for level in seen or ()
    )


def _parameters(seen: Sequence[Sequence[Seen]] | None) -> Iterator[str]:
    for level in seen or ():
        if any(one.is_everything for one in level):
            continue
        for one in level:
            if one.account_ids is not None:
                yield from (*one.account_ids, *one.zone_ids)
            yield from (*one.hidden_account_ids, *one.hidden_zone_ids)


@lru_cache(STATEMENTS_CACHED_MAX)
def _where(shape: tuple[tuple[str, int], ...], any_: bool, sizes: _Sizes) -> str:
    wanted = ["(" + " or ".join([CONDITIONS[key]] * count) + ")" for key, count in shape]
    conditions = ["(" + (" or " if any_ else " and ").join(wanted) + ")"] if wanted else []
    for level in sizes:
        seen = [_seen(*one) for one in level]
        if all(seen):
            conditions.append("(" + " or ".join(seen) + ")")
    return " where " + " and ".join(conditions) if conditions else ""


def _seen(accounts: int, zones: int, hidden_accounts: int, hidden_zones: int) -> str:
    """The condition for one `Seen` of these sizes; "" where every zone meets it."""
    conditions = []
    if accounts >= 0:
        conditions.append(f"(account_id in ({_marks(accounts)}) or id in ({_marks(zones)}))")
    if hidden_accounts:
        conditions.append(f"account_id not in ({_marks(hidden_accounts)})")
    if hidden_zones:
        conditions.append(f"id not in ({_marks(hidden_zones)})")
    return " and ".join(conditions)


def _marks(count: int) -> str:
    return ", ".join("?" * count) if count else "null"
