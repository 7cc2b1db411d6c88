"""The rows that tell who changed tokens, and when each was last used.

Owns  the tables `token_log` and `token_uses`: their schema and statements.
Not   tokens (`tables.tokens`): these rows outlive them, and hold nothing of what a token allows.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table token_log (
  id text primary key,
  owner_kind text not null,
  owner_id text not null,
  made_us integer not null,
  action text not null,
  token_id text not null,
  token_name text not null,
  actor text not null,
  request_id text not null
);
create index token_log_by_owner on token_log (owner_kind, owner_id, made_us desc, id desc);
create index token_log_by_time on token_log (made_us, id);
create table token_uses (
  token_id text primary key,
  used_us integer not null
);
"""


class LogRow(NamedTuple):
    """One change of a token; `actor` is JSON text."""

    id: str
    owner_kind: str
    owner_id: str
    made_us: int
    action: str
    token_id: str
    token_name: str
    actor: str
    request_id: str


COLUMNS = columns.names(LogRow)
INSERT = columns.insert("token_log", LogRow)
SELECT_LIST = (
    f"select {COLUMNS} from token_log where owner_kind = ? and owner_id = ?"
    " order by made_us desc, id desc limit ? offset ?"
)
SELECT_COUNT = "select count(*) from token_log where owner_kind = ? and owner_id = ?"
DELETE_OLD = (
    "delete from token_log where id in (select id from token_log where made_us < ?"
    " order by made_us, id limit ?)"
)
DELETE_BEYOND = (
    "delete from token_log where id in (select id from token_log order by made_us desc, id desc"
    " limit ? offset ?)"
)

UPSERT_USE = (
    "insert into token_uses (token_id, used_us) values (?, ?)"
    " on conflict (token_id) do update set used_us = excluded.used_us"
    " where excluded.used_us > token_uses.used_us"  # another node of a cluster may have seen a later one
)
SELECT_USES = "select token_id, used_us from token_uses"
DELETE_USES = "delete from token_uses where token_id not in (select id from tokens)"


def insert(tx: Transaction, row: LogRow) -> None:
    tx.run(INSERT, row)


def listed(reader: Reader, owner_kind: str, owner_id: str, limit: int, offset: int) -> list[LogRow]:
    """Newest first."""
    return [LogRow(*found) for found in reader.rows(SELECT_LIST, (owner_kind, owner_id, limit, offset))]


def count(reader: Reader, owner_kind: str, owner_id: str) -> int:
    found = reader.row(SELECT_COUNT, (owner_kind, owner_id))
    return int(found[0]) if found else 0


def delete_some(tx: Transaction, older_than_us: int, rows_kept: int, rows_max: int) -> int:
    """Delete rows that are too old, or more than those kept; at most `rows_max` of each."""
    return tx.run(DELETE_OLD, (older_than_us, rows_max)) + tx.run(DELETE_BEYOND, (rows_max, rows_kept))


def uses(reader: Reader) -> dict[str, int]:
    """When each token was last used, as far as it was written down."""
    return {token_id: int(used_us) for token_id, used_us in reader.rows(SELECT_USES)}


def set_use(tx: Transaction, token_id: str, used_us: int) -> None:
    tx.run(UPSERT_USE, (token_id, used_us))


def delete_uses_of_gone(tx: Transaction) -> None:
    """Forget the uses of tokens that are deleted."""
    tx.run(DELETE_USES)
