"""Large zones that wait for their digest (RFC 8976), one after the other.

Owns  the rounds, and which thread reads a zone: none that a request waits for.
Not   the digest (`usecases.zone.digests`).
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from edgestead.model.call import Call
from edgestead.server.control.secondaries import Data
from edgestead.store.control import Transaction
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import digests
from edgestead.usecases.zone.digests import Names

POLL_SECONDS: Final = 1.0
LATER_SECONDS: Final = 3_600  # when it failed: its keys cannot be opened, say

log = logging.getLogger(__name__)


class Digests:
    """Call `poll` every POLL_SECONDS."""

    def __init__(self, data: Data, platform: Platform, call: Callable[[], Call]) -> None:
        self._data = data
        self._platform = platform
        self._call = call

    async def poll(self) -> None:
        """Raises what the store raises."""
        now_us = self._call().now_us
        for zone_id in self._data.read(lambda reader: digests.due(reader, now_us)):
            try:
                await self._make(zone_id)
            except Exception:
                log.exception("the digest of zone %s waits: it could not be made", zone_id)
                await self._data.write(partial(self._put_off, zone_id))

    async def _make(self, zone_id: str) -> None:
        found = await self._data.read_long(partial(digests.read, zone_id=zone_id))
        if found is not None and found.octets is None:
            log.warning("zone %s has no digest: it is too large for one", zone_id)
        await self._data.write(partial(self._finish, zone_id, found))

    def _finish(self, zone_id: str, found: Names | None, tx: Transaction) -> None:
        digests.finish(self._call(), tx, self._platform, zone_id, found)

    def _put_off(self, zone_id: str, tx: Transaction) -> None:
        digests.put_off(tx, zone_id, self._call().now_us, LATER_SECONDS)
