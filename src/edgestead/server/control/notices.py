"""NOTIFYs in a cluster: heard at any node, acted on by the process that leads.

Owns  telling the leader what this node has heard, and the message.
Not   the socket that they come by (`server.dns.notices`); what they do (`usecases.zone.secondary`).

A notice is only a hint: what reaches no leader is dropped, and the zone's timers do the rest.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from edgestead.model.refusals import Unavailable
from edgestead.model.seldom import Seldom
from edgestead.server.dns.notices import Inbox, Notice
from edgestead.server.rounds import Rounds

TELL_SECONDS: Final = 1.0
TOLD_MAX: Final = 1_000  # in one message, of up to 300 bytes each; of other nodes, until upkeep takes them

_read = msgspec.json.Decoder(set[Notice]).decode
log = logging.getLogger(__name__)


class NoticesPart:
    """Make and close it on one loop. `leads` says whether this process acts on them."""

    def __init__(self, inbox: Inbox, leads: Callable[[], bool]) -> None:
        self._inbox, self._leads = inbox, leads
        self._told: set[Notice] = set()
        self._telling: Rounds | None = None
        self._untold = Seldom()

    def tell_by(self, pass_on: Callable[[bytes], Awaitable[bytes]]) -> None:
        """From now on the process that leads is told, by what reaches it."""
        one = partial(self._tell_if_reached, pass_on)
        self._telling = Rounds("telling the leader of NOTIFYs", TELL_SECONDS, one)
        self._telling.open()

    def close(self) -> None:
        if self._telling is not None:
            self._telling.close()

    def heard(self) -> set[Notice]:
        """What came since the last call, here and at other nodes."""
        told, self._told = self._told, set()
        return told | self._inbox.take()

    async def take(self, content: bytes) -> bytes:
        """What another node has heard."""
        self._told.update(islice(_read(content), TOLD_MAX - len(self._told)))
        return b""

    async def tell(self, pass_on: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Also what others told it while it led: nothing waits until it leads again. Raises Unavailable."""
        if not self._leads() and (heard := self.heard()):
            await pass_on(msgspec.json.encode(list(islice(heard, TOLD_MAX))))

    async def _tell_if_reached(self, pass_on: Callable[[bytes], Awaitable[bytes]]) -> None:
        try:
            await self.tell(pass_on)
        except Unavailable as error:
            if times := self._untold.happened():
                log.info("the leader was not told of NOTIFYs (%d since the last line): %r", times, error)
