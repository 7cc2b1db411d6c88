"""The rows of TSIG keys.

Owns  the table `tsig_keys`: its schema and statements.
Not   sealing a secret; what a key may do (`usecases.account.tsig_keys`).

A key is known by its name to everybody who answers DNS, so no two accounts have one of the same name.
`updates` is JSON, empty for a key that changes nothing.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table tsig_keys (
  id text primary key,
  account_id text not null references accounts (id),
  name text not null unique,
  algorithm text not null,
  sealed blob not null,
  transfer integer not null,
  updates text not null,
  created_us integer not null,
  modified_us integer not null
);
create index tsig_keys_by_account on tsig_keys (account_id, name);
"""


class TsigRow(NamedTuple):
    """`name` is lower-case text without its last dot, `algorithm` one of `model.tsig`."""

    id: str
    account_id: str
    name: str
    algorithm: str
    sealed: bytes
    transfer: int
    updates: str
    created_us: int
    modified_us: int


FIXED = ("id", "account_id", "created_us")
COLUMNS = columns.names(TsigRow)
INSERT = columns.insert("tsig_keys", TsigRow)
UPDATE = columns.update("tsig_keys", TsigRow, FIXED)
SELECT = f"select {COLUMNS} from tsig_keys where account_id = ? and id = ?"
SELECT_NAMED = f"select {COLUMNS} from tsig_keys where name = ?"
SELECT_ALL = f"select {COLUMNS} from tsig_keys where account_id = ? order by name"
DELETE = "delete from tsig_keys where id = ?"
_changing = columns.changing(TsigRow, FIXED)


def one(reader: Reader, account_id: str, id_: str) -> TsigRow | None:
    found = reader.row(SELECT, (account_id, id_))
    return TsigRow(*found) if found else None


def named(reader: Reader, name: str) -> TsigRow | None:
    found = reader.row(SELECT_NAMED, (name,))
    return TsigRow(*found) if found else None


def all_of(reader: Reader, account_id: str) -> list[TsigRow]:
    """By name."""
    return [TsigRow(*found) for found in reader.rows(SELECT_ALL, (account_id,))]


def insert(tx: Transaction, row: TsigRow) -> None:
    tx.run(INSERT, row)


def update(tx: Transaction, row: TsigRow) -> None:
    tx.run(UPDATE, _changing(row))


def delete(tx: Transaction, id_: str) -> None:
    tx.run(DELETE, (id_,))
