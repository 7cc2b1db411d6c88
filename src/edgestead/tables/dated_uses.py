"""The rows that count who uses what a date ended or replaced.

Owns  the table `dated_uses`: its schema and statements.
Not   what is dated (`changes`); tokens and users, whose ids the rows begin with.
"""

from collections.abc import Iterable
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table dated_uses (
  credential_id text not null,
  subject text not null,
  endpoint text not null,
  member text not null,
  uses integer not null,
  first_us integer not null,
  last_us integer not null,
  primary key (credential_id, subject, endpoint, member)
);
"""


class UseRow(NamedTuple):
    """How often a token, or a user with the key pair, used one thing. `member` is empty for a whole path."""

    credential_id: str
    subject: str
    endpoint: str
    member: str
    uses: int
    first_us: int
    last_us: int


COLUMNS = columns.names(UseRow)
UPSERT = (
    f"{columns.insert('dated_uses', UseRow)}"
    " on conflict (credential_id, subject, endpoint, member)"
    " do update set uses = dated_uses.uses + excluded.uses, last_us = case"
    " when excluded.last_us > dated_uses.last_us then excluded.last_us else dated_uses.last_us end"
)
SELECT = f"select {COLUMNS} from dated_uses order by credential_id, subject, endpoint, member"
DELETE_OF_GONE = (
    "delete from dated_uses where credential_id not in (select id from tokens)"
    " and credential_id not in (select id from users)"
)


def uses(reader: Reader) -> list[UseRow]:
    return [UseRow(*found) for found in reader.rows(SELECT)]


def add(tx: Transaction, rows: Iterable[UseRow]) -> None:
    """Count these on top of what is there."""
    for row in rows:
        tx.run(UPSERT, row)


def delete_of_gone(tx: Transaction) -> None:
    """Forget the uses by tokens and users that are deleted."""
    tx.run(DELETE_OF_GONE)
