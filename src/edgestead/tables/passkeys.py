"""The rows of passkeys: public keys by which members sign in.

Owns  the table `passkeys`.
Not   what an answer of one has to be (`usecases.access.webauthn`); passwords (`tables.people`).

Nothing in it is secret: the other half of each key never leaves the member's device.
"""

from collections.abc import Sequence
from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table passkeys (
  id text primary key,
  user_id text not null,
  name text not null,
  origin text not null,
  key_id blob not null unique,
  public_key blob not null,
  sign_count integer not null,
  made_us integer not null,
  used_us integer
);
create index passkeys_by_user on passkeys (user_id);
"""


class PasskeyRow(NamedTuple):
    """`key_id` is the authenticator's name of it, `public_key` its attested credential data (WebAuthn §6.5).

    `origin` is the address at which it was registered, and the only one at which it is good.
    """

    id: str
    user_id: str
    name: str
    origin: str
    key_id: bytes
    public_key: bytes
    sign_count: int
    made_us: int
    used_us: int | None = None


INSERT = columns.insert("passkeys", PasskeyRow)
SELECT = f"select {columns.names(PasskeyRow)} from passkeys"
SELECT_BY_KEY = f"{SELECT} where key_id = ?"
SELECT_OF_USER = f"{SELECT} where user_id = ? order by made_us, id"
USED = "update passkeys set sign_count = ?, used_us = ? where id = ?"
DELETE = "delete from passkeys where id = ?"
DELETE_OF_USER = "delete from passkeys where user_id = ?"


def insert(tx: Transaction, row: PasskeyRow) -> None:
    tx.run(INSERT, row)


def by_key(reader: Reader, key_id: bytes) -> PasskeyRow | None:
    found = reader.row(SELECT_BY_KEY, (key_id,))
    return PasskeyRow(*found) if found else None


def of_user(reader: Reader, user_id: str) -> Sequence[PasskeyRow]:
    return [PasskeyRow(*row) for row in reader.rows(SELECT_OF_USER, (user_id,))]


def set_used(tx: Transaction, id_: str, sign_count: int, now_us: int) -> None:
    tx.run(USED, (sign_count, now_us, id_))


def delete(tx: Transaction, id_: str) -> None:
    tx.run(DELETE, (id_,))


def forget(tx: Transaction, user_id: str) -> None:
    """The user is gone."""
    tx.run(DELETE_OF_USER, (user_id,))
