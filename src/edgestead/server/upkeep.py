"""What control does for the served zones without being asked: targets of aliases, names to render again.

Owns  the one task, its rounds and pauses.
Asks  `services.refreshing` and `services.flattening` what there is to do; `server.resolving` for answers.
Tells the store, whose change feed tells DNS.
Not   a query or request of a client: none ever waits for this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from edgestead.config import Address
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.served import ServedRRset
from edgestead.server.control_store import ControlData
from edgestead.services import flattening, refreshing
from edgestead.services.platform import Platform
from edgestead.tables import flattened
from edgestead.tables.flattened import Due

POLL_SECONDS = 0.25  # how late a target that nobody knew is asked for
ROUND_PAUSE_SECONDS = 0.05  # between rounds that found something to do: writes of clients pass
TROUBLE_PAUSE_SECONDS = 5.0

_ITSELF = Actor(kind="account", id="")
log = logging.getLogger(__name__)


class Upkeep:
    """Make and `open` it on control's loop. `resolver` None means the system's."""

    def __init__(
        self, data: ControlData, platform: Platform, resolver: Address | None, now_us: Callable[[], int]
    ) -> None:
        self._data = data
        self._platform = platform
        self._resolver = resolver
        self._now_us = now_us
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self._go_on_for_ever())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _go_on_for_ever(self) -> None:
        started = False
        while True:
            try:
                if not started:
                    await self._data.write(lambda tx: refreshing.start(self._call(), tx, self._platform))
                    started = True
                found = await self._refresh() | await self._resolve()
                await asyncio.sleep(ROUND_PAUSE_SECONDS if found else POLL_SECONDS)
            except Exception:
                # Names go on with their last answers; a round that fails must not be the last one.
                log.warning("the upkeep of served names failed", exc_info=True)
                await asyncio.sleep(TROUBLE_PAUSE_SECONDS)

    async def _refresh(self) -> bool:
        if self._data.read(flattened.next_refresh) is None:
            return False
        return await self._data.write(lambda tx: refreshing.go_on(self._call(), tx, self._platform))

    async def _resolve(self) -> bool:
        """One round. Each answer is written when it comes: one that is slow keeps nobody else waiting."""
        found: Sequence[Due] = self._data.read(lambda reader: flattening.due(reader, self._now_us()))
        if not found:
            return False
        from edgestead.server import resolving  # 10 MB that most servers never need

        asked = resolving.resolver_at(self._resolver)
        await asyncio.gather(*(self._take(due, resolving.addresses(asked, due.name)) for due in found))
        return True

    async def _take(self, due: Due, asked: Awaitable[tuple[ServedRRset, ...] | None]) -> None:
        found = await asked
        if found is None:
            log.info("the target %s of a flattened name was not resolved", due.name)
            await self._data.write(lambda tx: flattening.take_failure(tx, due, self._now_us()))
            return
        await self._data.write(
            lambda tx: refreshing.answered(self._call(), tx, self._platform, due.name, found)
        )

    def _call(self) -> Call:
        """Nobody called: no history is written of what no record changed."""
        return Call(
            actor=_ITSELF,
            as_of=datetime.now(UTC).date(),
            profile=Profile.SPEC,
            now_us=self._now_us(),
            request_id="",
        )
