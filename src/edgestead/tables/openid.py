"""The rows that bind a subject of an OpenID provider to a user.

Owns  the table `openid_subjects`.
Not   what a provider has to say to be believed (`usecases.access.openid`).

Whoever signed in first with a user's address is bound: an address may be given to somebody else, a subject is
not (OpenID Connect Core §5.7).
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table openid_subjects (
  issuer text not null,
  subject text not null,
  user_id text not null,
  made_us integer not null,
  primary key (issuer, subject),
  unique (user_id, issuer)
);
"""


class SubjectRow(NamedTuple):
    issuer: str
    subject: str
    user_id: str
    made_us: int


INSERT = columns.insert("openid_subjects", SubjectRow)
SELECT = f"select {columns.names(SubjectRow)} from openid_subjects"
SELECT_BY_SUBJECT = f"{SELECT} where issuer = ? and subject = ?"
SELECT_OF_USER = f"{SELECT} where user_id = ? and issuer = ?"
DELETE_OF_USER = "delete from openid_subjects where user_id = ?"


def insert(tx: Transaction, row: SubjectRow) -> None:
    tx.run(INSERT, row)


def by_subject(reader: Reader, issuer: str, subject: str) -> SubjectRow | None:
    found = reader.row(SELECT_BY_SUBJECT, (issuer, subject))
    return SubjectRow(*found) if found else None


def of_user(reader: Reader, user_id: str, issuer: str) -> SubjectRow | None:
    found = reader.row(SELECT_OF_USER, (user_id, issuer))
    return SubjectRow(*found) if found else None


def is_bound(reader: Reader, user_id: str) -> bool:
    return reader.row(f"{SELECT} where user_id = ?", (user_id,)) is not None


def forget(tx: Transaction, user_id: str) -> None:
    """The user is gone."""
    tx.run(DELETE_OF_USER, (user_id,))
