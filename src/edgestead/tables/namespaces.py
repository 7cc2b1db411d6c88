"""The rows of key-value namespaces.

Owns  the table `namespaces`: its schema and statements.
Not   keys and values, which live in the key-value store under the namespace's id.
"""

from collections.abc import Mapping
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table namespaces (
  id text primary key,
  account_id text not null references accounts (id),
  title text not null,
  created_us integer not null
);
create unique index namespaces_by_title on namespaces (account_id, title);
"""


class NamespaceRow(NamedTuple):
    id: str
    account_id: str
    title: str
    created_us: int


COLUMNS = columns.names(NamespaceRow)
INSERT = columns.insert("namespaces", NamespaceRow)
SELECT = f"select {COLUMNS} from namespaces where id = ? and account_id = ?"
SELECT_ID_BY_TITLE = "select id from namespaces where account_id = ? and title = ?"
SELECT_SIBLINGS = (
    "select id from namespaces where account_id = (select account_id from namespaces where id = ?)"
)
SELECT_ALL_IDS = "select id from namespaces"
COUNT = "select count(*) from namespaces where account_id = ?"
UPDATE_TITLE = "update namespaces set title = ? where id = ?"
DELETE = "delete from namespaces where id = ?"

SELECT_LIST: Mapping[tuple[str, bool], str] = {
    (order, descending): f"select {COLUMNS} from namespaces where account_id = ?"
    f" order by {order} {'desc' if descending else 'asc'} limit ? offset ?"
    for order in ("id", "title")
    for descending in (False, True)
}
ORDERS = ("id", "title")


def insert(tx: Transaction, row: NamespaceRow) -> None:
    tx.run(INSERT, row)


def namespace(reader: Reader, account_id: str, namespace_id: str) -> NamespaceRow | None:
    found = reader.row(SELECT, (namespace_id, account_id))
    return NamespaceRow(*found) if found else None


def id_of_title(reader: Reader, account_id: str, title: str) -> str | None:
    found = reader.row(SELECT_ID_BY_TITLE, (account_id, title))
    return found[0] if found else None


def all_ids(reader: Reader) -> frozenset[str]:
    return frozenset(id_ for (id_,) in reader.rows(SELECT_ALL_IDS))


def siblings(reader: Reader, namespace_id: str) -> list[str]:
    """All namespaces of this one's account, itself included; none when it is gone."""
    return [id_ for (id_,) in reader.rows(SELECT_SIBLINGS, (namespace_id,))]


def count(reader: Reader, account_id: str) -> int:
    found = reader.row(COUNT, (account_id,))
    return int(found[0]) if found else 0


def listed(
    reader: Reader, account_id: str, order: str, descending: bool, limit: int, offset: int
) -> list[NamespaceRow]:
    rows = reader.rows(SELECT_LIST[order, descending], (account_id, limit, offset))
    return [NamespaceRow(*found) for found in rows]


def set_title(tx: Transaction, namespace_id: str, title: str) -> None:
    tx.run(UPDATE_TITLE, (title, namespace_id))


def delete(tx: Transaction, namespace_id: str) -> None:
    tx.run(DELETE, (namespace_id,))
