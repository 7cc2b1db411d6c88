"""What a process does again and again for as long as it lives.

Owns  the task, and that a round that fails is not the last one.
Not   what is done in a round.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from edgestead.model.seldom import Seldom

_log = logging.getLogger("edgestead.server")


class Rounds:
    """Make, `open` and `close` it on one loop. `what` is for words; `seconds` lie between two rounds, and the
    first is at once. Errors that are `away` are no fault: what is needed is not there now.
    """

    def __init__(
        self,
        what: str,
        seconds: float,
        one: Callable[[], Awaitable[object]],
        *,
        away: tuple[type[Exception], ...] = (),
    ) -> None:
        self._what, self._seconds, self._one, self._away = what, seconds, one, away
        self._failed = Seldom()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self.go_on())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def go_on(self) -> None:
        while True:
            try:
                await self._one()
            except self._away:
                pass
            except Exception:
                if times := self._failed.happened():
                    _log.exception("%s failed (%d since the last line)", self._what, times)
            await asyncio.sleep(self._seconds)
