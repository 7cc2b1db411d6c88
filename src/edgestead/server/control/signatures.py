"""The background's work on signed zones: keys that roll, signatures that are due, states that pass.

Owns  that each piece of work is a transaction of its own, and what becomes of one that fails.
Not   the work (`usecases.zone.signing`); a query or request of a client: none waits for this.
"""

import logging
from collections.abc import Callable

from edgestead.model.call import Call
from edgestead.model.refusals.setting import KeysSealed
from edgestead.server.control.targets import Data
from edgestead.store.control import Reader
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone import signing
from edgestead.usecases.zone.signing import Work

POLL_SECONDS = 1.0
PAUSE_SECONDS = 0.05  # between pieces of work: writes of clients pass
RENEW_PAUSE_SECONDS = 0.5  # between pieces that queries see: each has the DNS processes begin their caches
# again, and signatures that are renewed have two weeks left

log = logging.getLogger(__name__)


class Signatures:
    """Call `poll` again after as many seconds as it says."""

    def __init__(self, data: Data, platform: Platform, call: Callable[[], Call]) -> None:
        self._data = data
        self._platform = platform
        self._call = call

    async def poll(self) -> float:
        """Do what is next. Raises what the store raises."""
        now_us = self._call().now_us
        found, is_seen = self._data.read(lambda reader: _next(reader, now_us))
        for work in found:
            await self._do(work)
        if not found:
            return POLL_SECONDS
        return RENEW_PAUSE_SECONDS if is_seen else PAUSE_SECONDS

    async def _do(self, work: Work) -> None:
        """A piece that fails is undone in whole and tried again later: no zone waits for another one."""
        try:
            await self._data.write(lambda tx: signing.go_on(self._call(), tx, self._platform, work))
        except KeysSealed:
            log.warning("%s of zone %s wait: %s", work.kind, work.zone_id, KeysSealed.wording)
        except Exception:
            log.exception("%s of zone %s wait: the work on them failed", work.kind, work.zone_id)
        else:
            return
        await self._data.write(lambda tx: signing.put_off(self._call(), tx, work))


def _next(reader: Reader, now_us: int) -> tuple[list[Work], bool]:
    """The next work, and whether it renews signatures that are served, and nothing else."""
    found = signing.next_work(reader, now_us)
    return found, bool(found) and all(signing.is_renewal(reader, work) for work in found)
