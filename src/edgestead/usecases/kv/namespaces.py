"""The use cases of key-value namespaces themselves.

Owns  what each of them does, in one transaction of the control data; a namespace's JSON shape.
Not   what is in a namespace (`usecases.kv.values`); permissions.

Two stores never share a transaction: a namespace dies here first, then its data is dropped, and what a
crash leaves between the two is found by `unknown`.
"""

from collections.abc import Callable, Iterable

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.kv import NAMESPACES_PER_ACCOUNT_MAX, check_namespace_id, check_title
from edgestead.model.quotas import Quotas
from edgestead.model.refusals.kv import NamespaceNotFound, TitleTaken, TooManyNamespaces
from edgestead.model.refusals.request import NoRoute
from edgestead.store.control import Reader, Transaction
from edgestead.store.kv import Allowance
from edgestead.tables import accounts, namespaces
from edgestead.tables.namespaces import NamespaceRow

ORDERS = namespaces.ORDERS


class NamespaceView(msgspec.Struct, frozen=True):
    """Contract "Namespace object". Keys arrive percent-encoded, always."""

    id: str
    title: str
    supports_url_encoding: bool = True


def create(
    call: Call, tx: Transaction, new_id: Callable[[], str], account_id: str, title: object
) -> NamespaceView:
    """Raises TitleInvalid, TitleTaken, TooManyNamespaces, NoRoute for an account that is not there."""
    text = check_title(title)
    if accounts.account(tx, account_id) is None:
        raise NoRoute(f"/client/v4/accounts/{account_id}/storage/kv/namespaces")
    if namespaces.id_of_title(tx, account_id, text) is not None:
        raise TitleTaken
    if namespaces.count(tx, account_id) >= NAMESPACES_PER_ACCOUNT_MAX:
        raise TooManyNamespaces(limit=NAMESPACES_PER_ACCOUNT_MAX)
    row = NamespaceRow(new_id(), account_id, text, call.now_us)
    namespaces.insert(tx, row)
    return _view(row)


def rename(tx: Transaction, account_id: str, namespace_id: str, title: object) -> NamespaceView:
    """Raises NamespaceIdInvalid, NamespaceNotFound, TitleInvalid, TitleTaken. Its own title is no clash."""
    text = check_title(title)
    row = existing(tx, account_id, namespace_id)
    if namespaces.id_of_title(tx, account_id, text) not in (None, row.id):
        raise TitleTaken
    namespaces.set_title(tx, row.id, text)
    return _view(row._replace(title=text))


def delete(tx: Transaction, account_id: str, namespace_id: str) -> str:
    """Forget the namespace; returns the id whose data the caller has to drop next.

    Raises NamespaceIdInvalid, NamespaceNotFound.
    """
    row = existing(tx, account_id, namespace_id)
    namespaces.delete(tx, row.id)
    return row.id


def show(reader: Reader, account_id: str, namespace_id: str) -> NamespaceView:
    """Raises NamespaceIdInvalid, NamespaceNotFound."""
    return _view(existing(reader, account_id, namespace_id))


def listed(
    reader: Reader, account_id: str, *, order: str, descending: bool, limit: int, offset: int
) -> Listed:
    rows = namespaces.listed(reader, account_id, order, descending, limit, offset)
    return Listed([_view(row) for row in rows], namespaces.count(reader, account_id))


def existing(reader: Reader, account_id: str, namespace_id: str) -> NamespaceRow:
    """Raises NamespaceIdInvalid, NamespaceNotFound: also for another account's."""
    row = namespaces.namespace(reader, account_id, check_namespace_id(namespace_id))
    if row is None:
        raise NamespaceNotFound
    return row


def unknown(reader: Reader, ids: Iterable[str]) -> list[str]:
    """Which of these there are no more. Ids are never reused, so they will not come back.

    Ask the key-value store first and this second: a namespace is made here before it gets its first key.
    """
    known = namespaces.all_ids(reader)
    return [id_ for id_ in ids if id_ not in known]


def have_quota(quotas: Quotas) -> bool:
    """Whether anything is asked before a value is written."""
    return bool(quotas.namespace_value_bytes or quotas.account_value_bytes)


def allowance(reader: Reader, quotas: Quotas, namespace_id: str) -> Allowance:
    """What the namespace may hold, and its account with all of its namespaces."""
    siblings = namespaces.siblings(reader, namespace_id) if quotas.account_value_bytes else ()
    return Allowance(quotas.namespace_value_bytes, quotas.account_value_bytes, tuple(siblings))


def _view(row: NamespaceRow) -> NamespaceView:
    return NamespaceView(row.id, row.title)
