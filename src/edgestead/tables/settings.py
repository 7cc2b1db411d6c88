"""The rows of settings: of zones, of accounts and of users.

Owns  the table `settings`: its schema and statements.
Not   what a setting may be; its default, which has no row.

A row is one value that was set, as JSON text; `scope_id` is the zone's, account's or user's id. The part
of an id before a dot is its family, `dns` of "dns.soa", `zone` of "zone.hold". Settings of the zone settings
routes have none.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction

CREATE = """
create table settings (
  scope_id text not null,
  id text not null,
  value text not null,
  modified_us integer not null,
  primary key (scope_id, id)
);
create index settings_by_id on settings (id, scope_id);
"""

SELECT = "select value, modified_us from settings where scope_id = ? and id = ?"
SELECT_ALL = "select id, value, modified_us from settings where scope_id = ? order by id"
SELECT_RANGE = "select id, value, modified_us from settings where scope_id = ? and id >= ? and id < ?"
SELECT_SCOPES = "select scope_id, value from settings where id = ? order by scope_id"
SELECT_SCOPES_AFTER = "select scope_id from settings where id = ? and scope_id > ? order by scope_id limit ?"
UPSERT = (
    "insert into settings (scope_id, id, value, modified_us) values (?, ?, ?, ?)"
    " on conflict (scope_id, id) do update set value = excluded.value, modified_us = excluded.modified_us"
)
DELETE = "delete from settings where scope_id = ? and id = ?"
DELETE_ALL = "delete from settings where scope_id = ?"


class Stored(NamedTuple):
    """A value as JSON text, and when it was set."""

    value: str
    modified_us: int


def one(reader: Reader, scope_id: str, id_: str) -> Stored | None:
    found = reader.row(SELECT, (scope_id, id_))
    return Stored(*found) if found else None


def all_of(reader: Reader, scope_id: str) -> dict[str, Stored]:
    return {id_: Stored(*found) for id_, *found in reader.rows(SELECT_ALL, (scope_id,))}


def family(reader: Reader, scope_id: str, name: str) -> dict[str, Stored]:
    """The rows of one family, by what follows its dot."""
    start, end = f"{name}.", f"{name}/"  # the character after the dot
    rows = reader.rows(SELECT_RANGE, (scope_id, start, end))
    return {id_.removeprefix(start): Stored(*found) for id_, *found in rows}


def scopes(reader: Reader, id_: str) -> list[tuple[str, str]]:
    """(scope_id, value) of everyone who has a row of this setting."""
    return [(scope_id, value) for scope_id, value in reader.rows(SELECT_SCOPES, (id_,))]


def scopes_after(reader: Reader, id_: str, after: str, limit: int) -> list[str]:
    """The next `limit` of them behind the scope_id `after`, without values."""
    return [scope_id for (scope_id,) in reader.rows(SELECT_SCOPES_AFTER, (id_, after, limit))]


def put(tx: Transaction, scope_id: str, id_: str, value: str, now_us: int) -> None:
    tx.run(UPSERT, (scope_id, id_, value, now_us))


def delete(tx: Transaction, scope_id: str, id_: str) -> None:
    tx.run(DELETE, (scope_id, id_))


def delete_all(tx: Transaction, scope_id: str) -> None:
    tx.run(DELETE_ALL, (scope_id,))
