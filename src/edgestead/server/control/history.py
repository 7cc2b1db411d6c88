"""Forgetting what the histories of zones and tokens, and the audit log, need not keep any longer.

Owns  when it happens.
Not   deciding how long: that is configuration.
"""

import asyncio
from collections.abc import Callable

from edgestead.model.refusals import Unavailable
from edgestead.rest.context import Barrier
from edgestead.server.rounds import Rounds
from edgestead.usecases import audit
from edgestead.usecases.access import token_log
from edgestead.usecases.zone import history

FORGET_SECONDS = 600
SLICE_PAUSE_SECONDS = 0.01  # writes pass between two slices


class HistoryPart:
    """Make, open and close it on one loop."""

    def __init__(
        self,
        data: Barrier,
        *,
        days: int,
        rows_max: int,
        audit_days: int,
        audit_octets_max: int,
        now_us: Callable[[], int],
    ) -> None:
        self._data = data
        self._days = days
        self._rows_max = rows_max
        self._audit_days, self._audit_octets_max = audit_days, audit_octets_max
        self._now_us = now_us
        self._rounds = Rounds(
            *("forgetting old history", FORGET_SECONDS, self.forget),
            first_seconds=FORGET_SECONDS,
            known=(Unavailable,),
        )

    def open(self) -> None:
        self._rounds.open()

    def close(self) -> None:
        self._rounds.close()

    async def forget(self) -> None:
        """Everything that there is to forget now."""
        older_than_us = history.days_ago(self._now_us(), self._days)
        due = await self._data.read_long(lambda reader: history.due(reader, self._rows_max, older_than_us))
        for zone_id, sequence in due:
            await self._forget_zone(zone_id, sequence)
        await self._forget_tokens(older_than_us)
        await self._forget_audit()

    async def _forget_zone(self, zone_id: str, sequence: int) -> None:
        while True:
            if not await self._data.write(lambda tx: history.forget(tx, zone_id, sequence)):
                return
            await asyncio.sleep(SLICE_PAUSE_SECONDS)

    async def _forget_tokens(self, older_than_us: int) -> None:
        while True:
            if not await self._data.write(lambda tx: token_log.forget(tx, self._rows_max, older_than_us)):
                return
            await asyncio.sleep(SLICE_PAUSE_SECONDS)

    async def _forget_audit(self) -> None:
        older_than_us = history.days_ago(self._now_us(), self._audit_days)
        floor = await self._data.read_long(
            lambda reader: audit.due(reader, self._audit_octets_max, older_than_us)
        )
        while True:
            if not floor or not await self._data.write(lambda tx: audit.forget(tx, floor)):
                return
            await asyncio.sleep(SLICE_PAUSE_SECONDS)
