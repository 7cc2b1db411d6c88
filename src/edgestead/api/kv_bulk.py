"""REST face of many keys at once.

Owns  …/{namespace}/bulk, …/bulk/get and …/bulk/delete.
Asks  `services.kv_values` to check a whole body first, `api.kv_data` for files and threads.
Tells clients.
Not   single keys (`api.kv_values`).
"""

from typing import Any

import msgspec

from edgestead.api.context import AppContext
from edgestead.api.declared import JSON, Answers
from edgestead.api.kv_data import give_way
from edgestead.api.kv_routes import blanks, existing, json_body, kv_route, now_s
from edgestead.api.limits import KEYS_BODY_BYTES_MAX
from edgestead.api.upload import Upload
from edgestead.model.call import Call
from edgestead.model.kv import BULK_BYTES_MAX
from edgestead.model.kvbulk import PairSent
from edgestead.services import kv_values
from edgestead.services.access import Identity
from edgestead.services.kv_values import BulkGetBody, BulkResult


class ValuesFound(msgspec.Struct):
    """Values by key, null for a key that is not there; objects with `withMetadata`."""

    values: dict[str, Any]


@kv_route("PUT", "/{namespace}/bulk", write=True, takes={JSON: list[PairSent]})
async def bulk_put(
    account_id: str, namespace: str, api: AppContext, call: Call, identity: Identity, upload: Upload
) -> BulkResult:
    """Write up to 10,000 pairs and 100 MB: all of them, or none when one is wrong."""
    id_ = existing(api, account_id, namespace)
    with api.kv.body_slot(identity.actor, upload.length):
        async with api.kv.temporary_file() as staging:
            async with api.kv.spooled(upload.chunks(BULK_BYTES_MAX)) as body:
                staged = await api.kv.in_thread(
                    kv_values.stage,
                    body,
                    staging,
                    api.kv.store,
                    now_s=now_s(call),
                    blanks=blanks(call),
                    pause=give_way,
                )
            await api.kv.put(id_, staged.pairs())
    return BulkResult(staged.count)


@kv_route("POST", "/{namespace}/bulk/get", takes={JSON: BulkGetBody}, answers=Answers(ValuesFound))
async def bulk_get(
    account_id: str, namespace: str, api: AppContext, call: Call, upload: Upload
) -> dict[str, object]:
    """The values of up to 100 keys, null for one that is not there; 25 MB in all."""
    id_ = existing(api, account_id, namespace)
    wanted = await json_body(upload, BulkGetBody, KEYS_BODY_BYTES_MAX)
    api.kv.note_get()
    values = await api.kv.in_thread(
        kv_values.bulk_get, api.kv.store, id_, wanted, now_s=now_s(call), blanks=blanks(call)
    )
    return {"values": values}


@kv_route("POST", "/{namespace}/bulk/delete", write=True, takes={JSON: list[str]})
@kv_route("DELETE", "/{namespace}/bulk", write=True, takes={JSON: list[str]})
async def bulk_delete(
    account_id: str, namespace: str, api: AppContext, call: Call, identity: Identity, upload: Upload
) -> BulkResult:
    """Delete up to 10,000 keys. Those that are not there are deleted too."""
    id_ = existing(api, account_id, namespace)
    with api.kv.body_slot(identity.actor, upload.length):
        async with api.kv.spooled(upload.chunks(KEYS_BODY_BYTES_MAX)) as body:
            keys = await api.kv.in_thread(kv_values.keys_to_delete, body, blanks=blanks(call), pause=give_way)
        await api.kv.delete(id_, keys)
    return BulkResult(len(keys))
