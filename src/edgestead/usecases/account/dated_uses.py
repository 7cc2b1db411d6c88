"""Who still uses what a date ended or replaced.

Owns  the counts in memory, which of them are not written down yet, and their shape for an answer.
Not   whether a use is refused.

As with the last uses of tokens (`usecases.access.token_uses`), a use costs an entry in a dictionary; the
counts are written down every minute or so, and what is since then is lost when the server is killed. A use
is counted whatever the request's date, once its credentials are good. What is kept here is what came to the
rows since: in a cluster, several processes count at a time, and a follower's goes to the leader.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from edgestead.changes import CHANGES
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, dated_uses, tokens
from edgestead.tables.dated_uses import UseRow
from edgestead.usecases.lookup import account_of

# Endpoints and members are those of the table of changes, and tokens have their own limit (550), so this is
# more than any client mix fills. Beyond it what is new is not counted.
USE_ROWS_MAX = 20_000
_CHANGES = {change.subject: change for change in CHANGES}


class Key(NamedTuple):
    credential_id: str
    subject: str
    endpoint: str
    member: str


class Credential(msgspec.Struct, frozen=True):
    """`type` is `token`, or `key` for a user's key pair, whose name is the e-mail address."""

    id: str
    type: str
    name: str


class UseView(msgspec.Struct, frozen=True):
    """`member` is null when the whole endpoint is dated."""

    subject: str
    date: str
    endpoint: str
    member: str | None
    count: int
    first_used_on: str
    last_used_on: str
    replacement: str


class UsageView(msgspec.Struct, frozen=True):
    """The uses of one credential, the latest first."""

    credential: Credential
    count: int
    last_used_on: str
    uses: list[UseView]


class DatedUses:
    """Uses that are not written down yet. Used by one thread, but for `write`."""

    def __init__(self) -> None:
        self._new: dict[Key, UseRow] = {}
        self._known: AbstractSet[Key] = frozenset()  # that have a row

    def load(self, reader: Reader) -> None:
        """Know which rows there are."""
        self._known = {_key(row) for row in dated_uses.uses(reader)}

    def note(self, key: Key, now_us: int) -> None:
        self.add(UseRow(*key, uses=1, first_us=now_us, last_us=now_us))

    def add(self, row: UseRow) -> None:
        """Uses that this or another process has counted."""
        key = _key(row)
        found = self._new.get(key)
        if found is None and key not in self._known and len(self._known) + len(self._new) >= USE_ROWS_MAX:
            return
        self._new[key] = row if found is None else _sum(found, row)

    def rows(self, reader: Reader) -> list[UseRow]:
        """Those that are written down, and what came to them."""
        found = {_key(row): row for row in dated_uses.uses(reader)}
        for key, row in self._new.items():
            found[key] = _sum(found[key], row) if key in found else row
        return list(found.values())

    def unwritten(self) -> list[UseRow]:
        """What came since the last time."""
        return list(self._new.values())

    def written(self, rows: Sequence[UseRow], reader: Reader) -> None:
        """These are in the database now, or another process has them."""
        for row in rows:
            key = _key(row)
            left = self._new[key]._replace(uses=self._new[key].uses - row.uses)
            if left.uses:
                self._new[key] = left
            else:
                del self._new[key]
        self.load(reader)


def _sum(one: UseRow, other: UseRow) -> UseRow:
    return one._replace(
        uses=one.uses + other.uses,
        first_us=min(one.first_us, other.first_us),
        last_us=max(one.last_us, other.last_us),
    )


def write(tx: Transaction, rows: Sequence[UseRow]) -> None:
    dated_uses.add(tx, rows)
    dated_uses.delete_of_gone(tx)


def listed(reader: Reader, account_id: str, uses: DatedUses, token_id: str | None) -> list[UsageView]:
    """Who used what, the latest first; of one token only, where one is named. Raises AccountNotSeen."""
    account_of(reader, account_id)
    names = {
        **{row.id: Credential(row.id, "key", row.email) for row in accounts.users(reader)},
        **{row.id: Credential(row.id, "token", row.name) for row in tokens.tokens(reader)},
    }
    by_credential: dict[str, list[UseRow]] = {}
    for row in sorted(uses.rows(reader), key=lambda row: row.last_us, reverse=True):
        if row.credential_id in names and token_id in (None, row.credential_id):
            by_credential.setdefault(row.credential_id, []).append(row)
    return [_usage(names[id_], rows) for id_, rows in by_credential.items()]


def _usage(credential: Credential, rows: Sequence[UseRow]) -> UsageView:
    return UsageView(
        credential=credential,
        count=sum(row.uses for row in rows),
        last_used_on=six_digits(rows[0].last_us),
        uses=[_view(row) for row in rows],
    )


def _view(row: UseRow) -> UseView:
    change = _CHANGES.get(row.subject)  # an older release may have written a subject that was renamed since
    return UseView(
        subject=row.subject,
        date=str(change.day) if change else "",
        endpoint=row.endpoint,
        member=row.member or None,
        count=row.uses,
        first_used_on=six_digits(row.first_us),
        last_used_on=six_digits(row.last_us),
        replacement=change.replacement if change else "",
    )


def _key(row: UseRow) -> Key:
    return Key(*row[:4])
