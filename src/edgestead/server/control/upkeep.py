"""What control does for the served names without being asked: names to render again, targets of aliases.

Owns  the two tasks, their rounds and pauses.
Not   a query or request of a client: none ever waits for this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from edgestead.config import Address
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.counters import Page
from edgestead.server.control.store import ControlData
from edgestead.server.control.targets import POLL_SECONDS, Targets, resolver_at
from edgestead.tables import flattened
from edgestead.usecases import restored
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import refreshing

ROUND_PAUSE_SECONDS = 0.05  # between rounds that found something to do: writes of clients pass
TROUBLE_PAUSE_SECONDS = 5.0

_ITSELF = Actor(kind="account", id="")
log = logging.getLogger(__name__)


class Upkeep:
    """Make and `open` it on control's loop. `resolver` None means the system's."""

    def __init__(
        self,
        data: ControlData,
        platform: Platform,
        resolver: Address | None,
        page: Page,
        now_us: Callable[[], int],
    ) -> None:
        self._data = data
        self._platform = platform
        self._now_us = now_us
        self._targets = Targets(data, platform, page, self._call, lambda: resolver_at(resolver))
        self._started = False
        self._tasks: list[asyncio.Task[None]] = []

    def open(self) -> None:
        self._tasks = [asyncio.create_task(_repeat(round_)) for round_ in (self._refresh, self._resolve)]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._targets.close()

    async def _refresh(self) -> float:
        """Some names of one zone that waits."""
        if not self._started:
            await self._data.write(lambda tx: refreshing.start(self._call(), tx, self._platform))
            self._started = True
        if self._data.read(restored.is_marked):
            await self._data.write(lambda tx: restored.go_on(self._call(), tx, self._platform))
            return ROUND_PAUSE_SECONDS
        if self._data.read(flattened.next_refresh) is None:
            return POLL_SECONDS
        await self._data.write(lambda tx: refreshing.go_on(self._call(), tx, self._platform))
        return ROUND_PAUSE_SECONDS

    async def _resolve(self) -> float:
        await self._targets.poll()
        return POLL_SECONDS

    def _call(self) -> Call:
        """Nobody called: no history is written of what no record changed."""
        return Call(
            actor=_ITSELF,
            as_of=datetime.now(UTC).date(),
            profile=Profile.SPEC,
            now_us=self._now_us(),
            request_id="",
        )


async def _repeat(round_: Callable[[], Awaitable[float]]) -> None:
    """Each round says how long the pause behind it is."""
    while True:
        try:
            pause_seconds = await round_()
        except Exception:
            # Names go on with their last answers; a round that fails must not be the last one.
            log.warning("the upkeep of served names failed", exc_info=True)
            pause_seconds = TROUBLE_PAUSE_SECONDS
        await asyncio.sleep(pause_seconds)
