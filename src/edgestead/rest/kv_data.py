"""The key-value store for an event loop: threads for what waits, promises for what is written.

Owns  the threads, how large bodies travel between loop and disk, how many of them one caller may send.
Not   rules of keys and values; HTTP.

Memory: a body passes in portions, so a value of any length costs PORTION_BYTES on its way in and one chunk
on its way out.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from io import SEEK_END
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.table import CREDENTIALS_UPLOADS
from edgestead.model.call import Actor
from edgestead.model.counters import Page, private_page, slot
from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.kv import KvBusy, ValueTooLarge
from edgestead.model.room import Adds
from edgestead.store.kv import INLINE_BYTES_MAX, Blob, Incoming, KvStore, Pair, Value

PORTION_BYTES = 524_288  # one hop to a thread costs as much as writing 100 KiB
SENT_BYTES = 65_536  # in one turn of the loop, which copies them into the kernel itself
SPOOL_IN_MEMORY_BYTES = 262_144
THREADS = 8
OWNERS_MAX = 4_096  # namespaces whose account is remembered; all are forgotten at once
SETTLED_LOOK_SECONDS = 0.01  # between two attempts to learn that the store has settled
SETTLED_LOOKS_MAX = 1_000  # 10 s, as long as a write waits for a process that does not apply it
GIVE_WAY_SECONDS = 0.000_05  # as long as a thread takes to wake

_GETS = slot("edge_kv_operations_total", "get")
_PUTS = slot("edge_kv_operations_total", "put")
_DELETES = slot("edge_kv_operations_total", "delete")
_LISTS = slot("edge_kv_operations_total", "list")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Check = Callable[[], None]


def _always() -> None:
    """Nobody's right has to hold."""


class KvData:
    """Make, use and close it on one loop. `spool_dir` is where bulk bodies wait; None is the system's.

    `counters` and `uploads` are of their own until they are given the process's. `check_room` is asked before
    each portion of a value or body goes to the disk; it raises DiskFull. `check_place` is asked by each write
    on the store's thread, before `permitted`; it raises where this process no longer knows who may do what.
    """

    def __init__(self, store: KvStore, *, spool_dir: Path | None = None) -> None:
        self.store = store
        self._spool_dir = None if spool_dir is None else str(spool_dir)
        self._threads = ThreadPoolExecutor(THREADS, "key-values")
        self.uploads = Levels(Ledger(), CREDENTIALS_UPLOADS)
        self.counters: Page = private_page()
        self.check_room: Callable[[Adds, int], None] = _always_room
        self.check_place: Check = _always
        # Each namespace that was found lately, and its account: asking the control data anew would cost a
        # small read more than the read itself. Ids never come back, and only this loop deletes one.
        self.owners: dict[str, str] = {}

    def remember_owner(self, namespace: str, account_id: str) -> None:
        if self.store.soon is not None:
            return  # another node may delete it; and one of these reads is little beside one of the store
        if len(self.owners) >= OWNERS_MAX:
            self.owners.clear()
        self.owners[namespace] = account_id

    async def in_thread(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(fn, *args, **kwargs))

    def read(self, fn: Callable[[], T], then: Callable[[T], R]) -> R | Coroutine[Any, Any, R]:
        """`then` of what `fn` reads from the store: at once, or later where the store blocks."""
        return self._read_later(fn, then) if self.store.soon is not None else then(fn())

    async def _read_later(self, fn: Callable[[], T], then: Callable[[T], R]) -> R:
        return then(await self.in_thread(fn))

    def get(
        self, namespace: str, key: str, now_s: int, then: Callable[[Value | None], R]
    ) -> R | Coroutine[Any, Any, R]:
        """As `read`, of one value."""
        if self.store.soon is not None:
            return self._get_soon(self.store.soon.get(namespace, key, now_s), then)
        return then(self.store.get(namespace, key, now_s))

    async def _get_soon(self, found: Future[Value | None], then: Callable[[Value | None], R]) -> R:
        return then(await asyncio.wrap_future(found))

    def note_get(self) -> None:
        """Count a read that somebody made of `store`. On the loop."""
        self.counters.add(_GETS)

    def note_list(self) -> None:
        self.counters.add(_LISTS)

    async def put(self, namespace: str, pairs: Iterable[Pair], permitted: Check = _always) -> None:
        """Returns when all of them are durable. Raises what `pairs` raises, Unavailable, and what `permitted`
        raises, which the transaction asks last: then nothing is written, and no blob stays.
        """
        self.counters.add(_PUTS)
        await asyncio.wrap_future(self.store.put(namespace, _then(pairs, self.check_place, permitted)))

    async def delete(self, namespace: str, keys: Iterable[str], permitted: Check = _always) -> None:
        """As `put`."""
        self.counters.add(_DELETES)
        await asyncio.wrap_future(self.store.delete(namespace, _then(keys, self.check_place, permitted)))

    async def settled(self) -> None:
        """Returns when every write that has asked `permitted` by now is durable or undone."""
        for _ in range(SETTLED_LOOKS_MAX):
            with suppress(Unavailable):
                await asyncio.wrap_future(self.store.delete("", ()))  # behind all of them
                return
            await asyncio.sleep(SETTLED_LOOK_SECONDS)  # its queue is full, or its disk

    async def drop(self, namespace: str) -> None:
        await asyncio.wrap_future(self.store.drop(namespace))

    async def receive(self, chunks: AsyncIterator[bytes], bytes_max: int) -> bytes | Blob:
        """A value from its chunks, durable when it is a blob. Raises ValueTooLarge, what `chunks` raises."""
        incoming: Incoming | None = None
        waiting: list[bytes] = []
        waiting_bytes = length = 0
        self.check_room(Adds.VALUES, 0)
        try:
            async for chunk in chunks:
                length += len(chunk)
                if length > bytes_max:
                    raise ValueTooLarge(limit=bytes_max)
                waiting.append(chunk)
                waiting_bytes += len(chunk)
                if waiting_bytes >= PORTION_BYTES:
                    self.check_room(Adds.MUCH, waiting_bytes)
                    incoming = incoming or Incoming(self.store.blobs)
                    await self.in_thread(_write, incoming, waiting)
                    waiting, waiting_bytes = [], 0
            if length <= INLINE_BYTES_MAX:
                return b"".join(waiting)
            self.check_room(Adds.MUCH, waiting_bytes)
            incoming = incoming or Incoming(self.store.blobs)
            return await self.in_thread(_finish, incoming, waiting)
        except BaseException:
            if incoming is not None:
                await self.in_thread(incoming.discard)
            raise

    async def chunks(self, value: Value) -> AsyncIterator[bytes]:
        """A value's bytes. Whoever iterates closes the value."""
        chunks = iter(value)
        while (chunk := await self.in_thread(next, chunks, None)) is not None:
            for start in range(0, len(chunk), SENT_BYTES):
                yield chunk[start : start + SENT_BYTES]
                await asyncio.sleep(0)  # other requests between two pieces

    @asynccontextmanager
    async def spooled(self, chunks: AsyncIterator[bytes], adds: Adds) -> AsyncIterator[IO[bytes]]:
        """A body in a file of its own, in memory while it is small. Its write `adds` to what there is."""
        async with self.temporary_file() as file:
            waiting: list[bytes] = []
            waiting_bytes = 0
            async for chunk in chunks:
                waiting.append(chunk)
                waiting_bytes += len(chunk)
                if waiting_bytes >= PORTION_BYTES:
                    self.check_room(adds, waiting_bytes)
                    await self.in_thread(file.writelines, waiting)
                    waiting, waiting_bytes = [], 0
            # More than the file keeps in memory goes to the disk, and the loop does not wait for that.
            if waiting_bytes > SPOOL_IN_MEMORY_BYTES:
                self.check_room(adds, waiting_bytes)
                await self.in_thread(file.writelines, waiting)
            else:
                file.writelines(waiting)
            yield file

    @asynccontextmanager
    async def temporary_file(self) -> AsyncIterator[IO[bytes]]:
        """A file that is gone afterwards, in memory while it is small."""
        file = tempfile.SpooledTemporaryFile(SPOOL_IN_MEMORY_BYTES, dir=self._spool_dir)
        try:
            yield file
        finally:
            if file.seek(0, SEEK_END) > SPOOL_IN_MEMORY_BYTES:
                await self.in_thread(file.close)  # giving back 100 MB takes the kernel 10 ms
            else:
                file.close()

    @contextmanager
    def body_slot(self, actor: Actor, length: int | None) -> Iterator[None]:
        """Hold it while a body arrives; small ones need none. Raises KvBusy."""
        if length is not None and length <= INLINE_BYTES_MAX:
            yield
            return
        caller = actor.token_id or actor.id
        with self.uploads.drawn(caller) as refusal:
            if refusal is not None:
                raise KvBusy(limit=refusal.limit)
            yield

    def close(self) -> None:
        """Read and receive no more. Whoever opened the store closes it."""
        self._threads.shutdown(cancel_futures=True)


def _always_room(adds: Adds, length: int) -> None: ...


def give_way() -> None:
    """Let the event loop's thread have the interpreter now, not after its switch interval.

    A sleep of zero does not: this thread has taken the interpreter again before the other one is awake.
    """
    time.sleep(GIVE_WAY_SECONDS)


def _then(items: Iterable[T], *checks: Check) -> Iterator[T]:
    yield from items
    for check in checks:
        check()


def _write(incoming: Incoming, chunks: list[bytes]) -> None:
    for chunk in chunks:
        incoming.write(chunk)


def _finish(incoming: Incoming, chunks: list[bytes]) -> bytes | Blob:
    _write(incoming, chunks)
    return incoming.finish()
