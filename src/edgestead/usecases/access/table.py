"""Whose secret is it?

Owns  the table of identities in memory, and the same as a transaction sees them.
Not   what an identity may (`authorise`); telling the table of changes (`identities`).

Secrets are looked up by their SHA-256: an attacker can only time the comparison of hashes that he cannot
steer. The table is rebuilt after each change of a token or key and swapped as a whole.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Protocol

from edgestead.model.call import Actor
from edgestead.store.control import Reader
from edgestead.tables import accounts, tokens
from edgestead.tables.accounts import UserRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access import lineage
from edgestead.usecases.access.authorise import Identity, identity_of, secret_hash


class Known(Protocol):
    """Who is behind a secret."""

    def by_token(self, token: bytes) -> Identity | None: ...

    def by_key(self, email: str, key: bytes) -> Identity | None: ...


class AccessTable:
    """Every identity, by the hash of its secret. Any thread may read it; one at a time swaps it.

    `epoch` moves on after each swap. Whoever takes it before looking somebody up may go by what was found for
    as long as it stays the same.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._by_token: Mapping[bytes, Identity] = {}
        self._by_email: Mapping[str, tuple[bytes, Identity]] = {}

    def load(self, user_rows: Iterable[UserRow], token_rows: Iterable[TokenRow]) -> None:
        """Know exactly these. At most 550 tokens a server (contract "Quotas"): a few ms."""
        users = {row.id: row for row in user_rows}
        self._by_email = {row.email_folded: (row.key_hash, _user(row)) for row in users.values()}
        alone = {row.id: (row, identity_of(row, _email(users.get(row.owner_id)))) for row in token_rows}
        by_token = {}
        for row, identity in alone.values():
            above = (alone[one.id][1] for one in lineage.above(row, lambda id_: alone.get(id_, (None,))[0]))
            by_token[row.hash] = lineage.bounded(identity, tuple(above))
        self._by_token = by_token
        self.epoch += 1

    def by_token(self, token: bytes) -> Identity | None:
        return self._by_token.get(hashlib.sha256(token).digest())

    def by_key(self, email: str, key: bytes) -> Identity | None:
        key_hash, identity = self._by_email.get(email.lower(), (b"", None))
        return identity if hmac.compare_digest(key_hash, secret_hash(key)) else None


class AccessRows:
    """The identities as a transaction sees them: what earlier writes of its own commit changed is known, too,
    which the table in memory is told of after the commit. A look is two reads, about 30 µs, and one more for
    each token above.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def by_token(self, token: bytes) -> Identity | None:
        row = tokens.by_hash(self._reader, secret_hash(token))
        if row is None:
            return None
        found = identity_of(row, _email(accounts.user(self._reader, row.owner_id)))
        return lineage.bounded(found, tuple(map(identity_of, lineage.rows_above(self._reader, row))))

    def by_key(self, email: str, key: bytes) -> Identity | None:
        row = accounts.user_of_email(self._reader, email.lower())
        known = row is not None and hmac.compare_digest(row.key_hash, secret_hash(key))
        return _user(row) if row is not None and known else None


def _email(owner: UserRow | None) -> str | None:
    return owner.email if owner else None


def _user(row: UserRow) -> Identity:
    return Identity(actor=Actor(kind="user", id=row.id, email=row.email), full=True)
