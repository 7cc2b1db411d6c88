"""What control does for the served names without being asked: rendering, targets of aliases, signatures.

Owns  the tasks, their rounds and pauses.
Not   a query or request of a client: none ever waits for this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime

from edgestead.config import Address
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.counters import Page
from edgestead.server.control import digests, followed, parents, restoring, secondaries
from edgestead.server.control.digests import Digests
from edgestead.server.control.followed import FollowedCatalogs
from edgestead.server.control.parents import Parents
from edgestead.server.control.restoring import Restoring
from edgestead.server.control.secondaries import Secondaries
from edgestead.server.control.signatures import Signatures
from edgestead.server.control.store import ControlData
from edgestead.server.control.targets import POLL_SECONDS, Targets, resolver_at
from edgestead.tables import flattened
from edgestead.tables import zones as zone_rows
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import refreshing, zones
from edgestead.usecases.zone.secondary import Notice

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
        heard: Callable[[], Collection[Notice]] = tuple,
    ) -> None:
        self._data = data
        self._platform = platform
        self._now_us = now_us
        self._targets = Targets(data, platform, page, self.call, lambda: resolver_at(resolver))
        self._signatures = Signatures(data, platform, self.call)
        self._digests = Digests(data, platform, self.call)
        self._parents = Parents(data, platform, self.call, lambda: parents.resolver_at(resolver))
        self._restoring = Restoring(data, platform, self.call)
        self._followed = FollowedCatalogs(data, platform, self.call)
        self._heard = heard
        self._secondaries = Secondaries(data, platform, page, self.call, heard=self._hear)
        self._started = False
        self._tasks: list[asyncio.Task[None]] = []

    def open(self) -> None:
        self._tasks = [
            asyncio.create_task(_repeat(round_))
            for round_ in (
                self._restore,
                self._refresh,
                self._sweep,
                self._resolve,
                self._sign,
                self._digest,
                self._ask_parents,
                self._transfer,
                self._follow,
            )
        ]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._targets.close()
        self._secondaries.close()

    async def _refresh(self) -> float:
        """Some names of one zone that waits."""
        if not self._started:
            await self._data.write(lambda tx: refreshing.start(self.call(), tx, self._platform))
            self._started = True
        if self._data.read(flattened.next_refresh) is None:
            return POLL_SECONDS
        await self._data.write(lambda tx: refreshing.go_on(self.call(), tx, self._platform))
        return ROUND_PAUSE_SECONDS

    async def _restore(self) -> float:
        """New serials for zones of a backup."""
        return ROUND_PAUSE_SECONDS if await self._restoring.poll() else restoring.POLL_SECONDS

    async def _sweep(self) -> float:
        """Some rows of deleted zones, which who deleted them did not sweep, or not to the end."""
        if self._data.read(zone_rows.next_deleted) is None:
            return POLL_SECONDS
        await self._data.write(zones.sweep)
        return ROUND_PAUSE_SECONDS

    async def _resolve(self) -> float:
        await self._targets.poll()
        return POLL_SECONDS

    async def _sign(self) -> float:
        """Some names of zones that become signed or stay so."""
        return await self._signatures.poll()

    async def _digest(self) -> float:
        """Large zones that have been quiet."""
        await self._digests.poll()
        return digests.POLL_SECONDS

    async def _ask_parents(self) -> float:
        await self._parents.poll()
        return parents.POLL_SECONDS

    async def _transfer(self) -> float:
        await self._secondaries.poll()
        return secondaries.POLL_SECONDS

    async def _follow(self) -> float:
        """A catalog of another name server, and the zones that it lists."""
        await self._followed.poll()
        return followed.POLL_SECONDS

    def _hear(self) -> Collection[Notice]:
        """A NOTIFY is of a zone or of a catalog: who hears decides."""
        notices = self._heard()
        self._followed.hear(notices)
        return notices

    def call(self) -> Call:
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
