"""REST face of key-value namespaces.

Owns  /accounts/{account_id}/storage/kv/namespaces and one namespace below it.
Asks  `services.namespaces`; `api.kv_data` to drop a deleted namespace's data.
Tells clients.
Not   keys (`api.kv_values`, `api.kv_bulk`).
"""

from typing import Any

import msgspec

from edgestead.api import declared
from edgestead.api.context import AppContext
from edgestead.api.declared import DIRECTION, JSON, choice, pages
from edgestead.api.kv_routes import json_body, kv_route
from edgestead.api.limits import BODY_BYTES_MAX
from edgestead.api.query import Query
from edgestead.api.upload import Upload
from edgestead.model.call import Call
from edgestead.model.envelope import Page, page_of
from edgestead.services import namespaces
from edgestead.services.namespaces import NamespaceView

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
    return page_of(found.namespaces, paging.page, paging.per_page, found.total_count)


@kv_route("POST", "", write=True, takes={JSON: TitleBody})
async def create_namespace(account_id: str, api: AppContext, call: Call, upload: Upload) -> NamespaceView:
    """Create a namespace. Its title is its own in the account."""
    body = await json_body(upload, TitleBody, BODY_BYTES_MAX)
    return await api.barrier.write(
        lambda tx: namespaces.create(call, tx, api.platform.new_id, account_id, body.title)
    )


@kv_route("GET", "/{namespace}")
def show_namespace(account_id: str, namespace: str, api: AppContext) -> NamespaceView:
    """One namespace."""
    return api.barrier.read(lambda reader: namespaces.show(reader, account_id, namespace))


@kv_route("PUT", "/{namespace}", write=True, takes={JSON: TitleBody})
async def rename_namespace(account_id: str, namespace: str, api: AppContext, upload: Upload) -> NamespaceView:
    """Give a namespace another title."""
    body = await json_body(upload, TitleBody, BODY_BYTES_MAX)
    return await api.barrier.write(lambda tx: namespaces.rename(tx, account_id, namespace, body.title))


@kv_route("DELETE", "/{namespace}", write=True)
async def delete_namespace(account_id: str, namespace: str, api: AppContext) -> dict[str, str]:
    """Delete a namespace with all its keys."""
    id_ = await api.barrier.write(lambda tx: namespaces.delete(tx, account_id, namespace))
    api.kv.owners.pop(id_, None)
    await api.kv.drop(id_)
    return {}
