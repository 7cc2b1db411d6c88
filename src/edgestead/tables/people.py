"""The rows by which people get in: passwords, and invitations that begin one.

Owns  the tables `passwords` and `invitations`, and the column of a membership that names its roles.
Not   users and memberships themselves (`tables.accounts`); hashing.

A password is kept as scrypt, an invitation's code as its SHA-256. A user has one password,
and one invitation of an account at most.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

# The default is the role that every member had before there were others.
CREATE = """
alter table memberships add column roles text not null default '["789973b00d755c99a26a0a4c249475a2"]';
create table passwords (
  user_id text primary key,
  scrypt text not null,
  changed_us integer not null
);
create table invitations (
  user_id text primary key,
  hash blob not null unique,
  account_id text not null,
  made_us integer not null,
  expires_us integer not null
);
"""


# An account's code says nothing of another's.
BY_ACCOUNT = """
create table invitations_by_account (
  user_id text not null,
  hash blob not null unique,
  account_id text not null,
  made_us integer not null,
  expires_us integer not null,
  sets_password integer not null,
  primary key (user_id, account_id)
);
insert into invitations_by_account select user_id, hash, account_id, made_us, expires_us, 1 from invitations;
drop table invitations;
alter table invitations_by_account rename to invitations;
"""


class InvitationRow(NamedTuple):
    """What accepts its user's membership in the account, once; it begins a password where it may."""

    user_id: str
    hash: bytes
    account_id: str
    made_us: int
    expires_us: int
    sets_password: int


SELECT_PASSWORD = "select scrypt from passwords where user_id = ?"
UPSERT_PASSWORD = (
    "insert into passwords (user_id, scrypt, changed_us) values (?, ?, ?) on conflict (user_id)"
    " do update set scrypt = excluded.scrypt, changed_us = excluded.changed_us"
)
DELETE_PASSWORD = "delete from passwords where user_id = ?"
INSERT_INVITATION = columns.insert("invitations", InvitationRow)
SELECT_INVITATION = f"select {columns.names(InvitationRow)} from invitations where hash = ?"
SELECT_INVITATION_OF = f"select {columns.names(InvitationRow)} from invitations where user_id = ?"
DELETE_INVITATION = "delete from invitations where user_id = ? and account_id = ?"
DELETE_INVITATIONS = "delete from invitations where user_id = ?"
BEGIN_NOTHING = "update invitations set sets_password = 0 where user_id = ?"


def password(reader: Reader, user_id: str) -> str | None:
    found = reader.row(SELECT_PASSWORD, (user_id,))
    return found[0] if found else None


def set_password(tx: Transaction, user_id: str, scrypt: str, now_us: int) -> None:
    tx.run(UPSERT_PASSWORD, (user_id, scrypt, now_us))


def delete_password(tx: Transaction, user_id: str) -> None:
    tx.run(DELETE_PASSWORD, (user_id,))


def set_invitation(tx: Transaction, row: InvitationRow) -> None:
    """The account's only one: an older one ends."""
    delete_invitation(tx, row.user_id, row.account_id)
    tx.run(INSERT_INVITATION, row)


def invitation(reader: Reader, hash_: bytes) -> InvitationRow | None:
    found = reader.row(SELECT_INVITATION, (hash_,))
    return InvitationRow(*found) if found else None


def invitations_of(reader: Reader, user_id: str) -> list[InvitationRow]:
    return [InvitationRow(*found) for found in reader.rows(SELECT_INVITATION_OF, (user_id,))]


def delete_invitation(tx: Transaction, user_id: str, account_id: str) -> None:
    tx.run(DELETE_INVITATION, (user_id, account_id))


def begin_nothing(tx: Transaction, user_id: str) -> None:
    """Codes given before a further account begin no password: it would be that account's too."""
    tx.run(BEGIN_NOTHING, (user_id,))


def forget(tx: Transaction, user_id: str) -> None:
    """The user is gone."""
    tx.run(DELETE_PASSWORD, (user_id,))
    tx.run(DELETE_INVITATIONS, (user_id,))
