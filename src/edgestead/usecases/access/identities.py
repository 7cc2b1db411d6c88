"""Who may call, told by the changes of the control data: to control itself, and to other processes.

Owns  the documents that stand for tokens, users and the account that objects belong to; the table that a
      process builds from them.
Not   secrets: a document holds the SHA-256 of one, as the database does.

A document is the row itself, a token's without its name. It is emitted in the transaction that changes the
row, so that the write is answered when every such process goes by it.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from edgestead.store.changes import Change
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, tokens
from edgestead.tables.accounts import UserRow
from edgestead.tables.tokens import TokenRow
from edgestead.usecases.access.table import AccessTable

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
    _tell(tx, KIND_TOKEN, row.id, _document(row))


def forget_tokens(tx: Transaction, token_ids: Iterable[str]) -> None:
    """Tokens are gone."""
    for token_id in token_ids:
        if tx.newest(_SCOPE, KIND_TOKEN, token_id) is not None:
            tx.emit(_SCOPE, KIND_TOKEN, token_id, None)


def tell_user(tx: Transaction, row: UserRow) -> None:
    """A user is new."""
    _tell(tx, KIND_USER, row.id, _encode(row))


def forget_user(tx: Transaction, user_id: str) -> None:
    tx.emit(_SCOPE, KIND_USER, user_id, None)


def changed_in(tx: Transaction) -> bool:
    """Whether this transaction's commit changes who may call, by what ran in it before."""
    return tx.touches(_SCOPE)


def settle(tx: Transaction) -> None:
    """Make the feed say what the tables say: for rows that the credentials file changed, and for those of
    a database from before there were such documents. At most 550 tokens a server (contract "Quotas").
    """
    for kind, key, document in _documents(tx):
        _tell(tx, kind, key, document)


def _documents(reader: Reader) -> Iterator[tuple[str, str, bytes]]:
    for row in tokens.tokens(reader):
        yield KIND_TOKEN, row.id, _document(row)
    for user in accounts.users(reader):
        yield KIND_USER, user.id, _encode(user)
    for account in accounts.accounts(reader, 1, 0):  # the one that objects belong to
        yield KIND_ACCOUNT, account.id, b""


def _document(row: TokenRow) -> bytes:
    return _encode(row._replace(name=""))


def _tell(tx: Transaction, kind: str, key: str, document: bytes) -> None:
    if tx.newest(_SCOPE, kind, key) != document:
        tx.emit(_SCOPE, kind, key, document)


class FedAccess:
    """The identities as a table that follows their changes: a `feed.follower.Consumer`, or in control
    itself what the store tells of each commit (`refresh` once, then `committed`).

    `table` and `accounts` are swapped as a whole, so that another thread may read them at any time.
    """

    def __init__(self) -> None:
        self.table = AccessTable()
        self.accounts: tuple[str, ...] = ()
        self.sequence = 0
        self._documents: dict[tuple[str, str], bytes] = {}
        self._aside: dict[tuple[str, str], bytes] = {}

    def refresh(self, reader: Reader) -> None:
        """Know what the tables say."""
        self._documents = {(kind, key): document for kind, key, document in _documents(reader)}
        self._show()

    def committed(self, changes: Sequence[Change]) -> None:
        """A listener of `ControlStore.on_commit`. It reads nothing, so that it cannot fail."""
        mine = [change for change in changes if change.kind in KINDS]
        if mine:
            self.apply(mine)

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
        self.accounts = tuple(key for kind, key in self._documents if kind == KIND_ACCOUNT)
        self.table.load(  # last: it moves the epoch on
            [_read_user(document) for (kind, _), document in found if kind == KIND_USER],
            [_read_token(document) for (kind, _), document in found if kind == KIND_TOKEN],
        )


def _note(documents: dict[tuple[str, str], bytes], changes: Sequence[Change]) -> None:
    for change in changes:
        if change.doc is None:
            documents.pop((change.kind, change.key), None)
        else:
            documents[change.kind, change.key] = change.doc
