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
    """Make, `open` and `close` it on one loop. `what` is for words; `seconds` lie between two rounds,
    `first_seconds` before the first one.

    Errors that are `away` are no fault: what is needed is not there now. Those that are `known` are told
    without where they come from.
    """

    def __init__(
        self,
        what: str,
        seconds: float,
        one: Callable[[], Awaitable[object]],
        *,
        first_seconds: float = 0.0,
        away: tuple[type[Exception], ...] = (),
        known: tuple[type[Exception], ...] = (),
    ) -> None:
        self._what, self._seconds, self._one, self._first_seconds = what, seconds, one, first_seconds
        self._away, self._known = away, known
        self._failed = Seldom()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self.go_on())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def go_on(self) -> None:
        await asyncio.sleep(self._first_seconds)
        while True:
            try:
                await self._one()
            except self._away:
                pass
            except self._known as error:
                if times := self._failed.happened():
                    _log.warning("%s failed (%d since the last line): %r", self._what, times, error)
            except Exception:
                if times := self._failed.happened():
                    _log.exception("%s failed (%d since the last line)", self._what, times)
            await asyncio.sleep(self._seconds)
