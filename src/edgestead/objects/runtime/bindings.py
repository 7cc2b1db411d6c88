"""`self.env.NAME`: a key-value namespace, kept by control.

Owns  its methods in both spellings, the messages between an objects process and control.
Not   rules of keys, values and times: control checks those, as for its own clients.

Nothing is asked before every write of the object so far is durable: what others can see in a namespace never
knows of something that a crash takes back.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from edgestead.objects.errors import KeyValueError

Ask = Callable[[bytes], Awaitable[bytes]]
Kind = Literal["text", "json", "bytes"]
_KINDS = frozenset({"text", "json", "bytes"})
LIST_KEYS_MAX = 1_000  # of one page, as over REST


class Get(msgspec.Struct, array_like=True, tag=1):
    namespace: str
    key: str


class Put(msgspec.Struct, array_like=True, tag=2):
    """`metadata` is JSON text."""

    namespace: str
    key: str
    content: bytes
    expiration_s: int | None
    ttl_seconds: int | None
    metadata: str | None


class Delete(msgspec.Struct, array_like=True, tag=3):
    namespace: str
    key: str


class List(msgspec.Struct, array_like=True, tag=4):
    namespace: str
    prefix: str
    limit: int
    cursor: str


class Found(msgspec.Struct, array_like=True, tag=5):
    """`content` is None when there is no such key."""

    content: bytes | None
    metadata: bytes | None


class Done(msgspec.Struct, array_like=True, tag=6):
    """The write is durable."""


class Key(msgspec.Struct, array_like=True):
    name: str
    expires_at_s: int | None
    metadata: bytes | None


class Keys(msgspec.Struct, array_like=True, tag=7):
    keys: list[Key]
    cursor: str


class Refused(msgspec.Struct, array_like=True, tag=8):
    """`permanent` says that asking again is of no use."""

    code: int
    reason: str
    permanent: bool


class Used(msgspec.Struct, array_like=True, tag=9):
    """When each token last let a caller in here. Control, which keeps that, saw none of it."""

    times_us: dict[str, int]


Question = Get | Put | Delete | List | Used
Reply = Found | Done | Keys | Refused
encode = msgspec.msgpack.Encoder().encode
read_question = msgspec.msgpack.Decoder(Question).decode
_read_reply = msgspec.msgpack.Decoder(Reply).decode


class KeyValues:
    """One namespace, for one object. Every method raises KeyValueError when control refuses or is away."""

    __slots__ = ("_ask", "_confirmed", "_id")

    def __init__(self, namespace: str, ask: Ask, confirmed: Callable[[], Awaitable[None]]) -> None:
        self._id, self._ask, self._confirmed = namespace, ask, confirmed

    async def get(self, key: str, type: Kind = "text") -> Any:
        """The value as text, as what its JSON says, or as bytes; None when there is no such key."""
        found = await self._say(Get(self._id, _key(key)), type)
        return _read(found.content, type)

    async def get_with_metadata(self, key: str, type: Kind = "text") -> dict[str, Any]:
        """`{"value": …, "metadata": …}`, both None when there is no such key."""
        found = await self._say(Get(self._id, _key(key)), type)
        return {"value": _read(found.content, type), "metadata": _json(found.metadata)}

    async def put(
        self,
        key: str,
        value: str | bytes,
        *,
        expiration: int | None = None,
        expiration_ttl: int | None = None,
        metadata: Any = None,
        **camel: Any,
    ) -> None:
        """Write a value. `expiration` is a time in seconds since 1970, `expiration_ttl` counts from now."""
        if unknown := camel.keys() - {"expirationTtl"}:
            raise TypeError(f"put() has no option {sorted(unknown)[0]!r}")
        if not isinstance(value, str | bytes):
            raise TypeError(f"a value is str or bytes, not {type(value).__name__}")
        content = value.encode() if isinstance(value, str) else value
        text = None if metadata is None else _write(metadata)
        ttl = camel.get("expirationTtl", expiration_ttl)
        await self._say(Put(self._id, _key(key), content, expiration, ttl, text))

    async def delete(self, key: str) -> None:
        """Delete a key. One that is not there is deleted too."""
        await self._say(Delete(self._id, _key(key)))

    async def list(self, *, prefix: str = "", limit: int = LIST_KEYS_MAX, cursor: str = "") -> dict[str, Any]:
        """`{"keys": [{"name", "expiration", "metadata"}], "list_complete": bool, "cursor": str}`."""
        page = await self._say(List(self._id, prefix, limit, cursor))
        keys = [
            {"name": key.name, "expiration": key.expires_at_s, "metadata": _json(key.metadata)}
            for key in page.keys
        ]
        return {"keys": keys, "list_complete": not page.cursor, "cursor": page.cursor}

    getWithMetadata = get_with_metadata

    async def _say(self, question: Get | Put | Delete | List, kind: Kind = "text") -> Any:
        if kind not in _KINDS:
            raise TypeError(f'type is "text", "json" or "bytes", not {kind!r}')
        await self._confirmed()
        try:
            reply = _read_reply(await self._ask(encode(question)))
        except OSError as error:
            raise KeyValueError(f"The key-value store did not answer: {error}", 0, retryable=True) from None
        if isinstance(reply, Refused):
            raise KeyValueError(reply.reason, reply.code, retryable=not reply.permanent)
        return reply


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key is str, not {type(key).__name__}")
    return key


def _read(content: bytes | None, kind: Kind) -> Any:
    if content is None:
        return None
    if kind == "text":
        return content.decode("utf-8", "replace")
    return json.loads(content) if kind == "json" else content


def _write(metadata: object) -> str:
    """Without what JSON does not need: its length has a limit. Raises TypeError, ValueError."""
    return json.dumps(metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _json(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)
