"""The control data as the API sees it, with its counters.

Owns  reads on and off the loop, writes that wait for their promise, and what of it is counted.
Not   SQL; the promise itself.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from edgestead.feed.promise import Node
from edgestead.feed.publisher import Expected, Publisher
from edgestead.model.counters import Page, slot
from edgestead.store.answered import PASSED
from edgestead.store.changes import Change
from edgestead.store.control import ControlStore, Reader, Transaction
from edgestead.store.writes import Writes

T = TypeVar("T")

LONG_READS_MAX = 4  # at a time; each has a thread and a connection of its own

_COMMITS = slot("edge_store_commits_total")
_WRITES = slot("edge_store_writes_total")
_KILLS = slot("edge_feed_kills_total")
_WAIT = slot("edge_feed_wait_seconds")


class CountingPublisher(Publisher):
    """The feed's publisher; counts whom it kills and how long writes wait."""

    def __init__(self, page: Page, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._page = page

    def kill(self, consumer: int) -> None:
        self._page.add(_KILLS)
        super().kill(consumer)

    async def applied(self, sequence: int, after: int = 0) -> None:
        began_ns = time.perf_counter_ns()
        await super().applied(sequence, after)
        self._page.observe(_WAIT, (time.perf_counter_ns() - began_ns) // 1000)


class Others(Protocol):
    """The other nodes of a cluster."""

    def newest_entry(self) -> int:
        """The newest entry of the control log that is committed here."""
        ...

    async def replicated(self, entry: int) -> None:
        """Returns when they have an entry. Raises Unknown."""
        ...


class ControlData:
    """Implements what `rest.context.Barrier` asks for. Make, open and close it on one loop."""

    def __init__(
        self,
        store: ControlStore,
        publisher: Publisher,
        page: Page,
        *,
        others: Others | None = None,
    ) -> None:
        self._others = others
        self._store = store
        self._publisher = publisher
        self._page = page
        self._writes = Writes(store, publisher)
        self._threads = ThreadPoolExecutor(LONG_READS_MAX, "long-read")
        self.read = store.read
        self.read_one = store.read_one
        store.on_group(self._count_group)

    @property
    def groups(self) -> int:
        return self._store.groups

    def open(self, expected: Iterable[Expected], nodes: Iterable[Node] = ()) -> None:
        """Let consumers in. Writes wait until the `expected` ones are back or dead, and until each of `nodes`
        is back or its lease over.
        """
        self._publisher.start(self._store, expected, nodes)

    async def read_long(self, fn: Callable[[Reader], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._store.read, fn)

    async def write(self, fn: Callable[[Transaction], T]) -> T:
        if (passed := PASSED.get()) is not None:
            fn = passed.noted(fn)
        if self._others is None:
            committed = await self._writes.write(fn)
        else:
            committed = await self._writes.commit(fn)
            entry = self._others.newest_entry()  # now: later groups are not waited for
            await self._writes.applied(committed)
            await self._others.replicated(entry)
        self._page.add(_WRITES)
        value: T = committed.value
        return value

    def close(self) -> None:
        """No more writes; those that wait are answered. Blocks until the queue is on disk."""
        self._threads.shutdown(cancel_futures=True)
        self._publisher.close()
        self._store.close()

    def _count_group(self, _changes: Sequence[Change]) -> None:
        self._page.add(_COMMITS)  # on the writer's thread, the only one that counts this
