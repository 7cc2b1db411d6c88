"""REST face of key-value namespaces.

Owns  /accounts/{account_id}/storage/kv/namespaces and one namespace below it.
Not   keys (`rest.routes.kv_values`, `rest.routes.kv_bulk`).
"""

from contextlib import suppress
from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.refusals import Unavailable
from edgestead.rest import declared
from edgestead.rest.body import Upload
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import DIRECTION, JSON, choice, pages
from edgestead.rest.limits import BODY_BYTES_MAX
from edgestead.rest.query import Query
from edgestead.rest.routes.kv_shared import json_body, kv_route
from edgestead.usecases.kv import namespaces
from edgestead.usecases.kv.namespaces import NamespaceView

_QUERY = (
    *pages(),
    choice("order", namespaces.ORDERS, "id", "What the namespaces are ordered by."),
    DIRECTION,
)


class TitleBody(msgspec.Struct, frozen=True):
    """`title` is checked by the use case: absent and empty are one refusal."""

    title: Any = None


@kv_route("GET", "", query=_QUERY, answers=declared.page_of(NamespaceView))
def list_namespaces(account_id: str, api: AppContext, query: Query) -> Page:
    """The account's namespaces. `order` id or title, `direction`."""
    paging = query.paging()
    order = query.choice("order", namespaces.ORDERS, "id")
    descending = query.descending()
    found = api.barrier.read(
        lambda reader: namespaces.listed(
            reader,
            account_id,
            order=order,
            descending=descending,
            limit=paging.per_page,
            offset=paging.offset,
        )
    )
    return paging.of(found)


@kv_route("POST", "", write=True, takes={JSON: TitleBody})
async def create_namespace(
    account_id: str, api: AppContext, call: Call, upload: Upload, write: Write
) -> NamespaceView:
    """Create a namespace. Its title is its own in the account."""
    body = await json_body(upload, TitleBody, BODY_BYTES_MAX)
    return await write(lambda tx: namespaces.create(call, tx, api.platform.new_id, account_id, body.title))


@kv_route("GET", "/{namespace}")
def show_namespace(account_id: str, namespace: str, api: AppContext) -> NamespaceView:
    """One namespace."""
    return api.barrier.read(lambda reader: namespaces.show(reader, account_id, namespace))


@kv_route("PUT", "/{namespace}", write=True, takes={JSON: TitleBody})
async def rename_namespace(account_id: str, namespace: str, upload: Upload, write: Write) -> NamespaceView:
    """Give a namespace another title."""
    body = await json_body(upload, TitleBody, BODY_BYTES_MAX)
    return await write(lambda tx: namespaces.rename(tx, account_id, namespace, body.title))


@kv_route("DELETE", "/{namespace}", write=True)
async def delete_namespace(account_id: str, namespace: str, api: AppContext, write: Write) -> dict[str, str]:
    """Delete a namespace with all its keys."""
    id_ = await write(lambda tx: namespaces.delete(tx, account_id, namespace))
    api.kv.owners.pop(id_, None)
    with suppress(Unavailable):  # it is deleted; the sweep deletes the values that no caller can reach
        await api.kv.drop(id_)
    return {}
