"""What is done once, however often it is asked for: results by who asks and by what.

Owns  which results are remembered, and for how long.
Not   what is done.

A failure that passes is not remembered, so that asking again helps. When there is room for no more, who has
most loses the oldest: nobody pushes out what others asked for by asking often.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_Done = OrderedDict[bytes, tuple[int, asyncio.Task[T]]]
"""Since when, and the result, by what was asked for."""


class Once(Generic[T]):
    """Use it on one loop. Remembers `entries_max` results; those older than `seconds` go first."""

    def __init__(self, entries_max: int, seconds: int, passes: Callable[[T], bool]) -> None:
        """`passes` says of a result that it is one of a failure that passes, as every exception is."""
        self._entries_max, self._seconds, self._passes = entries_max, seconds, passes
        self._by_asker: dict[bytes, _Done[T]] = {}

    async def run(
        self, now_s: int, asker: bytes, what: bytes, act: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Do it, or wait for the one that does, or did. Goes on when the caller is cancelled."""
        done = self._by_asker.get(asker)
        known = done.get(what) if done else None
        if known is None:
            self._make_room(now_s)
            task = asyncio.get_running_loop().create_task(act())
            known = self._by_asker.setdefault(asker, OrderedDict())[what] = (now_s, task)
            task.add_done_callback(partial(self._settle, asker, what))
        return await asyncio.shield(known[1])

    def _settle(self, asker: bytes, what: bytes, task: asyncio.Task[T]) -> None:
        if task.cancelled() or task.exception() is not None or self._passes(task.result()):
            done = self._by_asker.get(asker, OrderedDict())
            if what in done and done[what][1] is task:
                del done[what]

    def _make_room(self, now_s: int) -> None:
        if self._count() < self._entries_max:
            return
        for done in self._by_asker.values():
            while done and next(iter(done.values()))[0] < now_s - self._seconds:
                done.popitem(last=False)
        self._by_asker = {asker: done for asker, done in self._by_asker.items() if done}
        if self._count() >= self._entries_max:
            max(self._by_asker.values(), key=len).popitem(last=False)

    def _count(self) -> int:
        return sum(map(len, self._by_asker.values()))
