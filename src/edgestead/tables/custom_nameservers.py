"""The rows of an account's own name servers.

Owns  the table `custom_nameservers`: its schema and statements.
Not   the addresses of a name server: they are records of a zone.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table custom_nameservers (
  account_id text not null references accounts (id),
  ns_name text not null,
  ns_set integer not null,
  created_us integer not null,
  primary key (account_id, ns_name)
);
"""


class NameserverRow(NamedTuple):
    """`ns_name` is lower-case text without its last dot."""

    ns_name: str
    ns_set: int


COLUMNS = columns.names(NameserverRow)
SELECT = f"select {COLUMNS} from custom_nameservers where account_id = ? and ns_name = ?"
SELECT_ALL = f"select {COLUMNS} from custom_nameservers where account_id = ? order by ns_set, ns_name"
SELECT_SET = "select ns_name from custom_nameservers where account_id = ? and ns_set = ? order by ns_name"
INSERT = "insert into custom_nameservers (account_id, ns_name, ns_set, created_us) values (?, ?, ?, ?)"
DELETE = "delete from custom_nameservers where account_id = ? and ns_name = ?"


def one(reader: Reader, account_id: str, ns_name: str) -> NameserverRow | None:
    found = reader.row(SELECT, (account_id, ns_name))
    return NameserverRow(*found) if found else None


def all_of(reader: Reader, account_id: str) -> list[NameserverRow]:
    return [NameserverRow(*found) for found in reader.rows(SELECT_ALL, (account_id,))]


def names_of_set(reader: Reader, account_id: str, ns_set: int) -> tuple[str, ...]:
    return tuple(found[0] for found in reader.rows(SELECT_SET, (account_id, ns_set)))


def insert(tx: Transaction, account_id: str, row: NameserverRow, now_us: int) -> None:
    tx.run(INSERT, (account_id, row.ns_name, row.ns_set, now_us))


def delete(tx: Transaction, account_id: str, ns_name: str) -> None:
    tx.run(DELETE, (account_id, ns_name))
