"""REST face of single keys: listing, value and metadata.

Owns  …/{namespace}/keys, …/values/{key} and …/metadata/{key}.
Not   bulk routes (`rest.routes.kv_bulk`).
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.kv import (
    METADATA_TEXT_BYTES_MAX,
    VALUE_BYTES_MAX,
    check_key,
    compact_metadata,
    expires_at_s,
)
from edgestead.model.refusals.kv import KeyNotFound, KvBodyInvalid, MetadataTooLarge, ValueTooLarge
from edgestead.model.refusals.request import BodyTooLarge
from edgestead.model.room import Adds
from edgestead.rest import form
from edgestead.rest.body import Upload
from edgestead.rest.context import AppContext
from edgestead.rest.declared import FORM, OCTETS, Answers, number, size, text
from edgestead.rest.limits import FORM_OVERHEAD_BYTES_MAX, KEYS_READ_INLINE_MAX, PAGE_SIZE_MAX
from edgestead.rest.query import Query
from edgestead.rest.routes.kv_shared import blanks, existing, kv_route, now_s
from edgestead.rest.routing import Answer, Download
from edgestead.store.kv import Blob, Entry, Pair, Value
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.kv.values import CursorInfo, KeyView, key_views

_VALUE_TYPE = b"application/octet-stream"
_KEYS_QUERY = (
    text("prefix", "Only keys that begin so."),
    size("limit", PAGE_SIZE_MAX, PAGE_SIZE_MAX),
    text("cursor", "Where the page before ended."),
)


class ValueForm(msgspec.Struct):
    """A value with its metadata, which is JSON."""

    value: str
    metadata: str | None = None


@kv_route("GET", "/{namespace}/keys", query=_KEYS_QUERY, answers=Answers(list[KeyView], CursorInfo))
async def list_keys(account_id: str, namespace: str, api: AppContext, call: Call, query: Query) -> Answer:
    """The keys in byte order. `prefix`, `limit` up to 1,000, `cursor`; an empty cursor is the end."""
    id_ = existing(api, account_id, namespace)
    limit = query.limit(PAGE_SIZE_MAX, PAGE_SIZE_MAX)
    api.kv.note_list()
    read = partial(
        api.kv.store.page,
        id_,
        now_s=now_s(call),
        limit=limit,
        prefix=query.text("prefix") or "",
        cursor=query.text("cursor") or "",
    )
    is_quick = limit <= KEYS_READ_INLINE_MAX and api.kv.store.soon is None
    page = read() if is_quick else await api.kv.in_thread(read)
    keys = key_views(page)
    return Answer(envelope.success_with_info(keys, CursorInfo(len(keys), page.cursor)))


@kv_route("GET", "/{namespace}/values/{key}", answers=Answers(media=OCTETS))
def show_value(
    account_id: str, namespace: str, key: str, api: AppContext, call: Call
) -> Answer | Download | Coroutine[Any, Any, Answer | Download]:
    """The value's bytes. The header `expiration` says when it expires, in seconds since 1970."""
    id_ = existing(api, account_id, namespace)
    api.kv.note_get()
    return api.kv.get(id_, check_key(key, blanks=blanks(call)), now_s(call), partial(_shown, api))


def _shown(api: AppContext, value: Value | None) -> Answer | Download:
    if value is None:
        raise KeyNotFound
    expires = value.entry.expires_at_s
    headers = () if expires is None else ((b"expiration", b"%d" % expires),)
    if value.is_inline:
        return Answer(value.read(), _VALUE_TYPE, headers=headers)
    return Download(value.length, api.kv.chunks(value), value.close, _VALUE_TYPE, headers)


@kv_route(
    "PUT",
    "/{namespace}/values/{key}",
    write=True,
    adds=Adds.VALUES,
    query=(
        number("expiration_ttl", "Seconds from now after which the key is gone; 60 at least."),
        number("expiration", "When it is gone, in seconds since 1970."),
    ),
    takes={OCTETS: None, FORM: ValueForm},
)
async def put_value(
    account_id: str,
    namespace: str,
    key: str,
    api: AppContext,
    call: Call,
    identity: Identity,
    query: Query,
    upload: Upload,
    still_permitted: Callable[[], None],
) -> dict[str, str]:
    """Write a value: the raw body, or a form with `value` and `metadata`.

    `expiration_ttl` and `expiration` stand in the query. Value, expiry and metadata are replaced together.
    """
    id_ = existing(api, account_id, namespace)
    check_key(key, blanks=blanks(call))
    expires = expires_at_s(
        ttl_seconds=query.whole("expiration_ttl"), expiration_s=query.whole("expiration"), now_s=now_s(call)
    )
    with api.kv.body_slot(identity.actor, upload.length):
        content, metadata = await _received(api, upload)
    await api.kv.put(id_, [Pair(key, content, expires, metadata)], still_permitted)
    return {}


@kv_route("DELETE", "/{namespace}/values/{key}", write=True)
async def delete_value(
    account_id: str,
    namespace: str,
    key: str,
    api: AppContext,
    call: Call,
    still_permitted: Callable[[], None],
) -> dict[str, str]:
    """Delete a key. One that is not there is deleted too."""
    id_ = existing(api, account_id, namespace)
    await api.kv.delete(id_, [check_key(key, blanks=blanks(call))], still_permitted)
    return {}


@kv_route("GET", "/{namespace}/metadata/{key}")
def show_metadata(
    account_id: str, namespace: str, key: str, api: AppContext, call: Call
) -> bytes | Coroutine[Any, Any, bytes]:
    """The key's metadata, null when it has none."""
    id_ = existing(api, account_id, namespace)
    api.kv.note_get()
    read = partial(api.kv.store.entry, id_, check_key(key, blanks=blanks(call)), now_s(call))
    return api.kv.read(read, _metadata_of)


def _metadata_of(entry: Entry | None) -> bytes:
    if entry is None:
        raise KeyNotFound
    return entry.metadata or b"null"


async def _received(api: AppContext, upload: Upload) -> tuple[bytes | Blob, bytes | None]:
    """The body's value and metadata. Raises ValueTooLarge, KvBodyInvalid, MetadataInvalid."""
    boundary = form.boundary_of(upload.content_type)
    try:
        if boundary is None:
            return await api.kv.receive(upload.chunks(VALUE_BYTES_MAX), VALUE_BYTES_MAX), None
        parts = _FormParts(upload, boundary)
        content = await api.kv.receive(parts.value_chunks(), VALUE_BYTES_MAX)
    except BodyTooLarge:
        raise ValueTooLarge(limit=VALUE_BYTES_MAX) from None
    return content, parts.metadata


class _FormParts:
    """The two parts of a form that count. Metadata is checked before the value is kept."""

    def __init__(self, upload: Upload, boundary: bytes) -> None:
        chunks = upload.chunks(VALUE_BYTES_MAX + FORM_OVERHEAD_BYTES_MAX)
        self._portions = form.portions(chunks, boundary)
        self._metadata_text: bytes | None = None
        self.metadata: bytes | None = None

    async def value_chunks(self) -> AsyncIterator[bytes]:
        has_value = False
        async for name, portion in self._portions:
            if name == "value":
                has_value = True
                yield portion
            elif name == "metadata":
                self._metadata_text = (self._metadata_text or b"") + portion
                if len(self._metadata_text) > METADATA_TEXT_BYTES_MAX:
                    raise MetadataTooLarge(bytes=len(self._metadata_text), limit=METADATA_TEXT_BYTES_MAX)
        if not has_value:
            raise KvBodyInvalid(reason="the form has no part named value")
        if self._metadata_text is not None:
            self.metadata = compact_metadata(self._metadata_text)
