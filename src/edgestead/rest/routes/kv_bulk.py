"""REST face of many keys at once.

Owns  …/{namespace}/bulk, …/bulk/get and …/bulk/delete.
Not   single keys (`rest.routes.kv_values`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from edgestead.model.call import Call
from edgestead.model.kv import BULK_BYTES_MAX
from edgestead.model.kvbulk import PairSent
from edgestead.model.room import Adds
from edgestead.rest.body import Upload
from edgestead.rest.context import AppContext
from edgestead.rest.declared import JSON, Answers
from edgestead.rest.kv_data import give_way
from edgestead.rest.limits import BODY_BYTES_MAX, KEYS_BODY_BYTES_MAX
from edgestead.rest.routes.kv_shared import blanks, existing, json_body, kv_route, now_s
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.kv import values as kv_values
from edgestead.usecases.kv.values import BulkGetBody, BulkResult

COPIES_OF_A_BULK = 2  # on the disk, besides its body: staged, and in the journal or a file


class ValuesFound(msgspec.Struct):
    """Values by key, null for a key that is not there; objects with `withMetadata`."""

    values: dict[str, Any]


@kv_route("PUT", "/{namespace}/bulk", write=True, adds=Adds.VALUES, takes={JSON: list[PairSent]})
async def bulk_put(
    account_id: str,
    namespace: str,
    api: AppContext,
    call: Call,
    identity: Identity,
    upload: Upload,
    still_permitted: Callable[[], None],
) -> BulkResult:
    """Write up to 10,000 pairs and 100 MB: all of them, or none when one is wrong."""
    id_ = existing(api, account_id, namespace)
    with api.kv.body_slot(identity.actor, upload.length):
        async with api.kv.temporary_file() as staging:
            async with api.kv.spooled(upload.chunks(BULK_BYTES_MAX), Adds.MUCH) as body:
                api.kv.check_room(Adds.VALUES, COPIES_OF_A_BULK * body.tell())
                staged = await api.kv.in_thread(
                    kv_values.stage,
                    body,
                    staging,
                    api.kv.store,
                    now_s=now_s(call),
                    blanks=blanks(call),
                    pause=give_way,
                )
            await api.kv.put(id_, staged.pairs(), still_permitted)
    return BulkResult(staged.count)


@kv_route("POST", "/{namespace}/bulk/get", takes={JSON: BulkGetBody}, answers=Answers(ValuesFound))
async def bulk_get(
    account_id: str, namespace: str, api: AppContext, call: Call, upload: Upload
) -> dict[str, object]:
    """The values of up to 100 keys, null for one that is not there; 25 MB in all."""
    id_ = existing(api, account_id, namespace)
    wanted = await json_body(upload, BulkGetBody, BODY_BYTES_MAX)
    api.kv.note_get()
    values = await api.kv.in_thread(
        kv_values.bulk_get, api.kv.store, id_, wanted, now_s=now_s(call), blanks=blanks(call)
    )
    return {"values": values}


@kv_route("POST", "/{namespace}/bulk/delete", write=True, adds=Adds.NOTHING, takes={JSON: list[str]})
@kv_route("DELETE", "/{namespace}/bulk", write=True, takes={JSON: list[str]})
async def bulk_delete(
    account_id: str,
    namespace: str,
    api: AppContext,
    call: Call,
    identity: Identity,
    upload: Upload,
    still_permitted: Callable[[], None],
) -> BulkResult:
    """Delete up to 10,000 keys. Those that are not there are deleted too."""
    id_ = existing(api, account_id, namespace)
    with api.kv.body_slot(identity.actor, upload.length):
        async with api.kv.spooled(upload.chunks(KEYS_BODY_BYTES_MAX), Adds.NOTHING) as body:
            keys = await api.kv.in_thread(kv_values.keys_to_delete, body, blanks=blanks(call), pause=give_way)
        await api.kv.delete(id_, keys, still_permitted)
    return BulkResult(len(keys))
