"""The rows of API tokens.

Owns  the table `tokens`: its schema and statements.
Not   what a policy allows; the token's text, of which only the SHA-256 is kept.

`policies` and `condition` are JSON text in the shapes of `usecases.access.authorise`. An owner is a user or
an account.
"""

from typing import NamedTuple

from edgestead.store.control import Reader, Transaction
from edgestead.tables import columns

CREATE = """
create table tokens (
  id text primary key,
  owner_kind text not null,
  owner_id text not null,
  name text not null,
  hash blob not null unique,
  status text not null,
  policies text not null,
  condition text,
  not_before_us integer,
  expires_us integer,
  issued_us integer not null,
  modified_us integer not null
);
create index tokens_by_owner on tokens (owner_kind, owner_id, issued_us, id);
"""


PARENTS = """
alter table tokens add column parent_id text;
create index tokens_by_parent on tokens (parent_id, issued_us, id);
"""


class TokenRow(NamedTuple):
    """`parent_id` is the token that made it, None where there is none any more."""

    id: str
    owner_kind: str
    owner_id: str
    name: str
    hash: bytes
    status: str
    policies: str
    condition: str | None
    not_before_us: int | None
    expires_us: int | None
    issued_us: int
    modified_us: int
    parent_id: str | None = None


COLUMNS = columns.names(TokenRow)
INSERT = columns.insert("tokens", TokenRow)
SELECT_ALL = f"select {COLUMNS} from tokens order by issued_us, id"
SELECT_OF_OWNER = f"select {COLUMNS} from tokens where owner_kind = ? and owner_id = ? order by issued_us, id"
SELECT_ONE = f"select {COLUMNS} from tokens where id = ? and owner_kind = ? and owner_id = ?"
SELECT_BY_ID = f"select {COLUMNS} from tokens where id = ?"
SELECT_OF_PARENT = f"select {COLUMNS} from tokens where parent_id = ? order by issued_us, id"
SELECT_BY_HASH = f"select {COLUMNS} from tokens where hash = ?"
COUNT_OF_OWNER = "select count(*) from tokens where owner_kind = ? and owner_id = ?"
_FIXED = ("id", "owner_kind", "owner_id", "issued_us")
UPDATE = columns.update("tokens", TokenRow, _FIXED)
DELETE = "delete from tokens where id = ?"


_changing = columns.changing(TokenRow, _FIXED)


def insert(tx: Transaction, row: TokenRow) -> None:
    tx.run(INSERT, row)


def tokens(reader: Reader) -> list[TokenRow]:
    return [TokenRow(*found) for found in reader.rows(SELECT_ALL)]


def of_owner(reader: Reader, owner_kind: str, owner_id: str) -> list[TokenRow]:
    """Oldest first."""
    return [TokenRow(*found) for found in reader.rows(SELECT_OF_OWNER, (owner_kind, owner_id))]


def of_owner_count(reader: Reader, owner_kind: str, owner_id: str) -> int:
    found = reader.row(COUNT_OF_OWNER, (owner_kind, owner_id))
    return int(found[0]) if found else 0


def token(reader: Reader, owner_kind: str, owner_id: str, token_id: str) -> TokenRow | None:
    found = reader.row(SELECT_ONE, (token_id, owner_kind, owner_id))
    return TokenRow(*found) if found else None


def by_id(reader: Reader, token_id: str) -> TokenRow | None:
    """Of any owner."""
    found = reader.row(SELECT_BY_ID, (token_id,))
    return TokenRow(*found) if found else None


def of_parent(reader: Reader, token_id: str) -> list[TokenRow]:
    """What a token has made, oldest first."""
    return [TokenRow(*found) for found in reader.rows(SELECT_OF_PARENT, (token_id,))]


def by_hash(reader: Reader, hash_: bytes) -> TokenRow | None:
    found = reader.row(SELECT_BY_HASH, (hash_,))
    return TokenRow(*found) if found else None


def update(tx: Transaction, row: TokenRow) -> None:
    """Everything but id, owner and time of issue."""
    tx.run(UPDATE, _changing(row))


def delete(tx: Transaction, token_id: str) -> None:
    tx.run(DELETE, (token_id,))
