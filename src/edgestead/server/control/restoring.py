"""New serials for the zones of a database that was brought back from a backup, in the background.

Owns  that no zone holds up another one: what becomes of a transaction that fails.
Not   the work (`usecases.restored`).
"""

import logging
from collections.abc import Callable
from typing import Final

from edgestead.health.facts import HeldZone
from edgestead.model.call import Call
from edgestead.model.refusals import EdgeError
from edgestead.server.control.targets import Data
from edgestead.store.control import Reader, Transaction
from edgestead.tables import zones
from edgestead.usecases import restored
from edgestead.usecases.platform import Platform

POLL_SECONDS: Final = 5.0
SHOWN_MAX: Final = 100  # in the health of the server

log = logging.getLogger(__name__)


def held(data: Data) -> tuple[HeldZone, ...]:
    """For the health of the server."""

    def shown(reader: Reader) -> list[HeldZone]:
        found = ((zones.zone(reader, id_), one) for id_, one in restored.held(reader).items())
        return [HeldZone(zone.name, one.problem) for zone, one in found if zone is not None]

    return tuple(data.read(shown)[:SHOWN_MAX])


class Restoring:
    """Call `poll` every POLL_SECONDS; sooner while there is work."""

    def __init__(self, data: Data, platform: Platform, call: Callable[[], Call]) -> None:
        self._data = data
        self._platform = platform
        self._call = call

    async def poll(self) -> bool:
        """See to some zones. Returns whether there was anything to do. Raises what the store raises."""
        if self._data.read(restored.is_marked):
            if await self._problem(lambda tx: self._go_on(tx, restored.ZONES_AT_ONCE)):
                await self._one_by_one()
            return True
        now_us = self._call().now_us
        zone_id = self._data.read(lambda reader: restored.due(reader, now_us))
        if zone_id is None:
            return False
        problem = await self._problem(
            lambda tx: restored.try_again(self._call(), tx, self._platform, zone_id)
        )
        if problem:
            await self._data.write(lambda tx: restored.hold(self._call(), tx, zone_id, problem))
        return True

    async def _one_by_one(self) -> None:
        """One of several failed, and its transaction with it."""
        for _ in range(restored.ZONES_AT_ONCE):
            problem = await self._problem(lambda tx: self._go_on(tx, 1))
            if problem:
                await self._step_over(problem)

    async def _step_over(self, problem: str) -> None:
        log.warning("a zone keeps the serial of the backup for now: %s", problem)
        await self._data.write(lambda tx: restored.step_over(self._call(), tx, problem))

    def _go_on(self, tx: Transaction, most: int) -> None:
        restored.go_on(self._call(), tx, self._platform, most)

    async def _problem(self, fn: Callable[[Transaction], None]) -> str:
        """Why a transaction failed, "" when it did not. What failed is undone in whole."""
        try:
            await self._data.write(fn)
        except EdgeError as refusal:
            return refusal.message
        except Exception as error:
            log.exception("seeing to a zone that was restored failed")
            return f"{type(error).__name__}; the log says more"
        return ""
