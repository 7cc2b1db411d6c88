"""What the key-value routes have in common: their two bases, their permissions, their errors.

Owns  the spellings of the path and of permissions.
Not   handlers.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from edgestead.model.call import Call, Profile
from edgestead.model.refusals.kv import KvBodyInvalid
from edgestead.rest.body import Upload, refuse_many, refuse_twins
from edgestead.rest.context import AppContext
from edgestead.rest.limits import TWINS_BODY_BYTES_MAX
from edgestead.rest.routing import route
from edgestead.usecases.access.authorise import KEY_VALUES
from edgestead.usecases.kv import namespaces

# The second is the older spelling; real clients still use it.
BASES = ("/accounts/{account_id}/storage/kv/namespaces", "/accounts/{account_id}/workers/namespaces")

Handler = TypeVar("Handler", bound=Callable[..., Any])
T = TypeVar("T")


def kv_route(method: str, path: str, *, write: bool = False, **declared: Any) -> Callable[[Handler], Handler]:
    """Enter a handler under both bases. `declared` is what `route` takes besides."""
    permission = f"Workers KV Storage {'Write' if write else 'Read'}"

    def enter(handler: Handler) -> Handler:
        for base in BASES:
            handler = route(method, base + path, permission=permission, family=KEY_VALUES, **declared)(
                handler
            )
        return handler

    return enter


def existing(api: AppContext, account_id: str, namespace: str) -> str:
    """The namespace's id. Raises NamespaceIdInvalid, NamespaceNotFound."""
    if api.kv.owners.get(namespace) == account_id:
        return namespace
    id_ = api.barrier.read(lambda reader: namespaces.existing(reader, account_id, namespace)).id
    api.kv.remember_owner(id_, account_id)
    return id_


def blanks(call: Call) -> bool:
    """Whether keys may hold blanks."""
    return call.profile is Profile.CLIENTS


def now_s(call: Call) -> int:
    return call.now_us // 1_000_000


async def json_body(upload: Upload, shape: type[T], bytes_max: int) -> T:
    """Whatever content type it has: old clients send several. Raises KvBodyInvalid, BodyTooLarge."""
    content = await upload.whole(bytes_max)
    refuse_many(content, KvBodyInvalid)
    try:
        value = msgspec.json.decode(content, type=shape)
        if len(content) <= TWINS_BODY_BYTES_MAX:
            refuse_twins(content, KvBodyInvalid)
        return value
    except msgspec.ValidationError as error:
        raise KvBodyInvalid(reason=str(error)) from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise KvBodyInvalid(reason="it is not JSON") from None
