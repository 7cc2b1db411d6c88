"""Key-value data for the objects processes: control's end of their Unix socket.

Owns  answering each message; which namespaces can be reached that way.
Not   user code's spelling; HTTP.

Only the namespaces that the operator has bound are open here: the socket knows no tokens.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from functools import partial

from edgestead.model.kv import VALUE_BYTES_MAX, check_key, check_value_length, compact_metadata, expires_at_s
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.kv import NamespaceNotFound
from edgestead.objects.runtime.bindings import (
    LIST_KEYS_MAX,
    Delete,
    Done,
    Found,
    Get,
    Key,
    Keys,
    List,
    Put,
    Question,
    Refused,
    Reply,
    Used,
    encode,
    read_question,
)
from edgestead.objects.runtime.wire import Answering
from edgestead.rest.kv_data import KvData
from edgestead.store.kv import Pair, Value

_BACKLOG = 64
_INTERNAL = 10_000
log = logging.getLogger("edgestead.server")


class KvSocket:
    """`exists` tells whether there is such a namespace; `blanks` whether keys may hold blanks."""

    def __init__(
        self,
        kv: KvData,
        bound: frozenset[str],
        exists: Callable[[str], bool],
        note_use: Callable[[str, int], None],
        *,
        blanks: bool,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._kv, self._bound, self._exists = kv, bound, exists
        self._note_use, self._blanks, self._now_s = note_use, blanks, now_s
        self._running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: Answering(self.answer, self._running), sock=listener, backlog=_BACKLOG
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def answer(self, body: bytes) -> bytes:
        """Never raises."""
        try:
            return encode(await self._act(read_question(body)))
        except EdgeError as refusal:
            return encode(Refused(refusal.code, str(refusal), refusal.status < 429))
        except Exception:
            log.exception("a key-value call of an object failed")
            return encode(Refused(_INTERNAL, "The key-value store failed.", permanent=False))

    async def _act(self, question: Question) -> Reply:
        if isinstance(question, Used):
            for token_id, time_us in question.times_us.items():
                self._note_use(token_id, time_us)
            return Done()
        namespace = question.namespace
        if namespace not in self._bound or not self._exists(namespace):
            raise NamespaceNotFound
        now_s = int(self._now_s())
        if isinstance(question, List):
            return await self._list(question, now_s)
        key = check_key(question.key, blanks=self._blanks)
        if isinstance(question, Get):
            self._kv.note_get()
            if (soon := self._kv.store.soon) is not None:
                value = await asyncio.wrap_future(soon.get(namespace, key, now_s))
            else:
                value = self._kv.store.get(namespace, key, now_s)
            return Found(None, None) if value is None else await self._found(value)
        if isinstance(question, Delete):
            await self._kv.delete(namespace, [key])
        else:
            await self._put(question, now_s)
        return Done()

    async def _found(self, value: Value) -> Found:
        with value:
            content = value.read() if value.is_inline else await self._kv.in_thread(value.read)
            return Found(content, value.entry.metadata)

    async def _put(self, question: Put, now_s: int) -> None:
        expires = expires_at_s(
            ttl_seconds=question.ttl_seconds, expiration_s=question.expiration_s, now_s=now_s
        )
        check_value_length(len(question.content))
        metadata = None if question.metadata is None else compact_metadata(question.metadata)
        content = await self._kv.receive(_once(question.content), VALUE_BYTES_MAX)
        await self._kv.put(question.namespace, [Pair(question.key, content, expires, metadata)])

    async def _list(self, question: List, now_s: int) -> Keys:
        self._kv.note_list()
        read = partial(
            self._kv.store.page,
            question.namespace,
            now_s=now_s,
            limit=max(1, min(question.limit, LIST_KEYS_MAX)),
            prefix=question.prefix,
            cursor=question.cursor,
        )
        page = await self._kv.in_thread(read)
        keys = [Key(entry.key, entry.expires_at_s, entry.metadata) for entry in page.entries]
        return Keys(keys, page.cursor)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
