"""The rows of accounts, of users and of who belongs where.

Owns  the tables `accounts`, `users`, `memberships`: their schema and statements.
Not   what a role may do (`model.roles`); passwords (`tables.people`).

Times are microseconds since the epoch. A user's API key is kept as its SHA-256 only. Who was invited has
none, and an empty hash, which is no key's.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table accounts (
  id text primary key,
  name text not null,
  type text not null,
  zone_count integer not null,
  created_us integer not null
);
create table users (
  id text primary key,
  email text not null,
  email_folded text not null unique,
  key_hash blob not null,
  created_us integer not null
);
create table memberships (
  id text primary key,
  account_id text not null references accounts (id),
  user_id text not null references users (id),
  status text not null,
  created_us integer not null
);
create unique index memberships_by_user on memberships (user_id, account_id);
"""


class AccountRow(NamedTuple):
    id: str
    name: str
    type: str
    zone_count: int
    created_us: int


class UserRow(NamedTuple):
    id: str
    email: str
    email_folded: str
    key_hash: bytes
    created_us: int


_ACCOUNT, _USER = columns.names(AccountRow), columns.names(UserRow)
INSERT_ACCOUNT = columns.insert("accounts", AccountRow)
SELECT_ACCOUNT = f"select {_ACCOUNT} from accounts where id = ?"
SELECT_ACCOUNTS = f"select {_ACCOUNT} from accounts order by created_us, id limit ? offset ?"
SELECT_ALL_ACCOUNTS = f"select {_ACCOUNT} from accounts order by created_us, id"
COUNT_ZONES = "select sum(zone_count) from accounts"
UPDATE_NAME = "update accounts set name = ? where id = ?"
CHANGE_ZONE_COUNT = "update accounts set zone_count = zone_count + ? where id = ?"

INSERT_USER = columns.insert("users", UserRow)
SELECT_USERS = f"select {_USER} from users order by created_us, id"
SELECT_USER = f"select {_USER} from users where id = ?"
SELECT_USER_OF_EMAIL = f"select {_USER} from users where email_folded = ?"
UPDATE_KEY = "update users set key_hash = ? where id = ?"

DELETE_USER = "delete from users where id = ?"

INSERT_MEMBERSHIP = (
    "insert into memberships (id, account_id, user_id, status, created_us, roles) values (?, ?, ?, ?, ?, ?)"
)
UPDATE_ROLES = "update memberships set roles = ? where id = ?"
SELECT_MEMBERSHIPS = (
    "select m.id, m.account_id, a.name, m.user_id, m.status, m.roles from memberships m"
    " join accounts a on a.id = m.account_id where m.user_id = ? order by m.created_us, m.id"
)
SELECT_MEMBERSHIP = (
    "select m.id, m.account_id, a.name, m.user_id, m.status, m.roles from memberships m"
    " join accounts a on a.id = m.account_id where m.id = ?"
)
UPDATE_MEMBERSHIP = "update memberships set status = ? where id = ?"
DELETE_MEMBERSHIP = "delete from memberships where id = ?"
SELECT_MEMBERS = (
    "select m.id, m.status, u.id, u.email, m.roles, u.key_hash from memberships m"
    " join users u on u.id = m.user_id where m.account_id = ? order by m.created_us, m.id"
)


class MemberRow(NamedTuple):
    """A membership as its account sees it. `roles` is JSON text: a list of identifiers."""

    id: str
    status: str
    user_id: str
    email: str
    roles: str
    key_hash: bytes


class MembershipRow(NamedTuple):
    id: str
    account_id: str
    account_name: str
    user_id: str
    status: str
    roles: str


def insert_account(tx: Transaction, row: AccountRow) -> None:
    tx.run(INSERT_ACCOUNT, row)


def account(reader: Reader, account_id: str) -> AccountRow | None:
    found = reader.row(SELECT_ACCOUNT, (account_id,))
    return AccountRow(*found) if found else None


def accounts(reader: Reader, limit: int, offset: int) -> list[AccountRow]:
    return [AccountRow(*found) for found in reader.rows(SELECT_ACCOUNTS, (limit, offset))]


def all_accounts(reader: Reader) -> list[AccountRow]:
    return [AccountRow(*found) for found in reader.rows(SELECT_ALL_ACCOUNTS)]


def set_name(tx: Transaction, account_id: str, name: str) -> None:
    tx.run(UPDATE_NAME, (name, account_id))


def zone_count(reader: Reader) -> int:
    """How many zones there are, without looking at one."""
    return _number(reader, COUNT_ZONES)


def add_to_zone_count(tx: Transaction, account_id: str, by: int) -> None:
    tx.run(CHANGE_ZONE_COUNT, (by, account_id))


def insert_user(tx: Transaction, row: UserRow) -> None:
    tx.run(INSERT_USER, row)


def users(reader: Reader) -> list[UserRow]:
    return [UserRow(*found) for found in reader.rows(SELECT_USERS)]


def user(reader: Reader, user_id: str) -> UserRow | None:
    found = reader.row(SELECT_USER, (user_id,))
    return UserRow(*found) if found else None


def user_of_email(reader: Reader, email_folded: str) -> UserRow | None:
    found = reader.row(SELECT_USER_OF_EMAIL, (email_folded,))
    return UserRow(*found) if found else None


def delete_user(tx: Transaction, user_id: str) -> None:
    tx.run(DELETE_USER, (user_id,))


def set_key_hash(tx: Transaction, user_id: str, key_hash: bytes) -> None:
    tx.run(UPDATE_KEY, (key_hash, user_id))


def insert_membership(
    tx: Transaction,
    membership_id: str,
    account_id: str,
    user_id: str,
    status: str,
    created_us: int,
    roles: str,
) -> None:
    tx.run(INSERT_MEMBERSHIP, (membership_id, account_id, user_id, status, created_us, roles))


def set_roles(tx: Transaction, membership_id: str, roles: str) -> None:
    tx.run(UPDATE_ROLES, (roles, membership_id))


def memberships(reader: Reader, user_id: str) -> list[MembershipRow]:
    """Oldest first; there are few."""
    return [MembershipRow(*found) for found in reader.rows(SELECT_MEMBERSHIPS, (user_id,))]


def membership(reader: Reader, membership_id: str) -> MembershipRow | None:
    found = reader.row(SELECT_MEMBERSHIP, (membership_id,))
    return MembershipRow(*found) if found else None


def set_membership_status(tx: Transaction, membership_id: str, status: str) -> None:
    tx.run(UPDATE_MEMBERSHIP, (status, membership_id))


def delete_membership(tx: Transaction, membership_id: str) -> None:
    tx.run(DELETE_MEMBERSHIP, (membership_id,))


def members(reader: Reader, account_id: str) -> list[MemberRow]:
    """Oldest first; there are few."""
    return [MemberRow(*found) for found in reader.rows(SELECT_MEMBERS, (account_id,))]


def _number(reader: Reader, sql: str, *parameters: str) -> int:
    found = reader.row(sql, parameters)
    return int(found[0] or 0) if found else 0
