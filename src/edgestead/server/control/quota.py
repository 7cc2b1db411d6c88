"""The quota of API requests over all control nodes: followers tell the leader each second what they let in.

Owns  when it is told, and the message.
Not   counting and adding up (`rest.quota`).

So a user gets more than the quota by what other nodes let in within a second, and what is on its way. What is
passed on to the leader is counted there alone.
"""

import logging
from collections.abc import Awaitable, Callable
from itertools import islice

import msgspec

from edgestead.model.refusals import Unavailable
from edgestead.model.seldom import Seldom
from edgestead.rest.quota import Quota, Sum, Told
from edgestead.server.rounds import Rounds

TELL_SECONDS = 1.0
TOLD_MAX = 5_000  # users in one message, of 100 bytes each; what others did in that second is not added up

_read_told = msgspec.json.Decoder(dict[str, Told]).decode
_read_sums = msgspec.json.Decoder(dict[str, Sum]).decode
log = logging.getLogger(__name__)


class QuotaPart:
    """Make and close it on one loop. `leads` says whether this process adds up. Without a quota, or a cluster
    to `tell_by`, it does nothing.
    """

    def __init__(self, quota: Quota | None, leads: Callable[[], bool], now_us: Callable[[], int]) -> None:
        self._quota, self._leads, self._now_us = quota, leads, now_us
        self.pass_on: Callable[[bytes], Awaitable[bytes]] | None = None
        self._telling: Rounds | None = None
        self._on_its_way: bytes | None = None
        self._failures = Seldom()

    def tell_by(self, pass_on: Callable[[bytes], Awaitable[bytes]]) -> None:
        """From now on the process that leads is told, by what reaches it."""
        self.pass_on = pass_on
        if self._quota is not None:
            self._telling = Rounds("telling the leader of requests", TELL_SECONDS, self._tell_if_reached)
            self._telling.open()

    def close(self) -> None:
        if self._telling is not None:
            self._telling.close()

    async def take(self, content: bytes) -> bytes:
        """What another process tells; answered with what its users have left, by a quota that is here."""
        if self._quota is None or content is self._on_its_way:
            return b"{}"  # its own came back: it leads by now, and has counted them itself
        return msgspec.json.encode(self._quota.add(_read_told(content), self._now_us()))

    async def tell(self) -> None:
        """Raises Unavailable."""
        if self._quota is None or self.pass_on is None:
            return
        if self._leads():
            self._quota.forget_untold()
        elif told := dict(islice(self._quota.untold(self._now_us()).items(), TOLD_MAX)):
            self._on_its_way = msgspec.json.encode(told)
            sums = _read_sums(await self.pass_on(self._on_its_way))
            self._quota.learn(sums, self._now_us())

    async def _tell_if_reached(self) -> None:
        try:
            await self.tell()
        except (Unavailable, msgspec.MsgspecError) as error:
            if times := self._failures.happened():
                log.info("the leader did not add up requests (%d since the last line): %r", times, error)
