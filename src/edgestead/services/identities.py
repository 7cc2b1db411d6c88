"""Who may call, told to other processes by the change feed.

Owns  the documents that stand for tokens, users and accounts; the table that a process builds from them.
Asks  `tables.tokens` and `tables.accounts`; `services.access` to read what a row means.
Tells every process that lets callers in without asking control: the objects processes.
Not   secrets: a document holds the SHA-256 of one, as the database does.

A document is the row itself, a token's without its name. It is emitted in the transaction that changes the
row, so that the write is answered when every such process goes by it.
"""

from collections.abc import Iterable, Sequence

import msgspec

from edgestead.services.access import AccessTable
from edgestead.store.changes import Change
from edgestead.store.control import Transaction
from edgestead.tables import accounts, tokens
from edgestead.tables.accounts import UserRow
from edgestead.tables.tokens import TokenRow

KIND_TOKEN = "identity:token"
KIND_USER = "identity:user"
KIND_ACCOUNT = "identity:account"
KINDS = (KIND_TOKEN, KIND_USER, KIND_ACCOUNT)
_SCOPE = "identities"

_encode = msgspec.msgpack.Encoder().encode
_read_token = msgspec.msgpack.Decoder(TokenRow).decode
_read_user = msgspec.msgpack.Decoder(UserRow).decode


def tell_token(tx: Transaction, row: TokenRow) -> None:
    """A token is new or has changed."""
    _tell(tx, KIND_TOKEN, row.id, _encode(row._replace(name="")))


def forget_tokens(tx: Transaction, token_ids: Iterable[str]) -> None:
    """Tokens are gone."""
    for token_id in token_ids:
        if tx.newest(_SCOPE, KIND_TOKEN, token_id) is not None:
            tx.emit(_SCOPE, KIND_TOKEN, token_id, None)


def settle(tx: Transaction) -> None:
    """Make the feed say what the tables say: for rows that the credentials file changed, and for those of
    a database from before there were such documents. At most 550 tokens a server (contract "Quotas").
    """
    for row in tokens.tokens(tx):
        tell_token(tx, row)
    for user in accounts.users(tx):
        _tell(tx, KIND_USER, user.id, _encode(user))
    for account in accounts.all_accounts(tx):
        _tell(tx, KIND_ACCOUNT, account.id, b"")


def _tell(tx: Transaction, kind: str, key: str, document: bytes) -> None:
    if tx.newest(_SCOPE, kind, key) != document:
        tx.emit(_SCOPE, kind, key, document)


class FedAccess:
    """The feed's identities as a table: a `store.feed.follower.Consumer`.

    `table` and `accounts` are swapped as a whole, so that another thread may read them at any time.
    """

    def __init__(self) -> None:
        self.table = AccessTable()
        self.accounts: tuple[str, ...] = ()
        self.sequence = 0
        self._documents: dict[tuple[str, str], bytes] = {}
        self._aside: dict[tuple[str, str], bytes] = {}

    def begin(self) -> None:
        self._aside = {}

    def load(self, changes: Sequence[Change]) -> None:
        _note(self._aside, changes)
        self.sequence = max(self.sequence, *(change.sequence for change in changes))

    def swap(self) -> None:
        self._documents, self._aside = self._aside, {}
        self._show()

    def apply(self, changes: Sequence[Change]) -> None:
        _note(self._documents, changes)
        self.sequence = changes[-1].sequence
        self._show()

    def _show(self) -> None:
        found = self._documents.items()
        self.table.load(
            [_read_user(document) for (kind, _), document in found if kind == KIND_USER],
            [_read_token(document) for (kind, _), document in found if kind == KIND_TOKEN],
        )
        self.accounts = tuple(key for kind, key in self._documents if kind == KIND_ACCOUNT)


def _note(documents: dict[tuple[str, str], bytes], changes: Sequence[Change]) -> None:
    for change in changes:
        if change.doc is None:
            documents.pop((change.kind, change.key), None)
        else:
            documents[change.kind, change.key] = change.doc
