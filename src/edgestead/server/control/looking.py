"""A look at the cluster's database that control repeats for as long as it lives.

Owns  the task, and what a look that fails does.
Not   what is looked at (`shared_keys`, `shared_credentials`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger("edgestead.server")


class Looking:
    """Make, `open` and `close` it on control's loop. `what` is for words; `seconds` lie between two looks."""

    def __init__(self, what: str, seconds: float, look: Callable[[], Awaitable[object]]) -> None:
        self._what, self._seconds, self._look = what, seconds, look
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self._look_for_ever())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self._look()
            except OSError:
                pass  # the database is away: what is there stays
            except Exception:
                _log.exception("the look for %s failed", self._what)
            await asyncio.sleep(self._seconds)
