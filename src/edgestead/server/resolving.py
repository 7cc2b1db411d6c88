"""The targets of flattened aliases that lie outside our zones: asked for in the background, again and again.

Owns  the one task that asks the resolver, how many questions are out at once, and when the next round is.
Asks  a recursive resolver (`--resolver`) through dnspython; `services.flattening` what is due.
Tells the store, whose change feed tells DNS.
Not   a query of a client: none ever waits for this; what a flattened name serves.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address

import dns.asyncresolver
import dns.exception
import dns.rdatatype
import dns.resolver

from edgestead.config import Address
from edgestead.model.served import ServedRRset
from edgestead.server.control_store import ControlData
from edgestead.services import flattening
from edgestead.services.platform import Platform
from edgestead.tables.flattened import Due

QUESTION_SECONDS_MAX = 5.0
POLL_SECONDS = 0.25  # how late a target that nobody knew is asked for
ROUND_PAUSE_SECONDS = 0.05  # between rounds that found something to do: writes of clients pass
TROUBLE_PAUSE_SECONDS = 5.0
ADDRESSES_MAX = 64  # of one family in one answer; further ones are left out

_TYPES = (dns.rdatatype.A, dns.rdatatype.AAAA)
log = logging.getLogger(__name__)

Answer = tuple[ServedRRset, ...]


class Resolving:
    """Make and `open` it on control's loop. `resolver` None means the system's."""

    def __init__(
        self, data: ControlData, platform: Platform, resolver: Address | None, now_us: Callable[[], int]
    ) -> None:
        self._data = data
        self._platform = platform
        self._now_us = now_us
        self._resolver = resolver
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._task = asyncio.create_task(self._ask_for_ever())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _ask_for_ever(self) -> None:
        while True:
            try:
                found = self._data.read(lambda reader: flattening.due(reader, self._now_us()))
                if found:
                    await self._round(_ask_through(self._resolver), found)
                await asyncio.sleep(ROUND_PAUSE_SECONDS if found else POLL_SECONDS)
            except Exception:
                # Names go on with their last answers; a round that fails must not be the last one.
                log.warning("asking for the targets of flattened names failed", exc_info=True)
                await asyncio.sleep(TROUBLE_PAUSE_SECONDS)

    async def _round(self, resolver: dns.asyncresolver.Resolver, found: Sequence[Due]) -> None:
        """Each answer is written when it comes: one that is slow keeps nobody waiting."""
        await asyncio.gather(*(self._one(resolver, due) for due in found))

    async def _one(self, resolver: dns.asyncresolver.Resolver, due: Due) -> None:
        try:
            answer = await ask(resolver, due.name)
        except (dns.exception.DNSException, OSError) as error:
            log.info("the target %s of a flattened name was not resolved: %s", due.name, error)
            await self._data.write(partial(flattening.take_failure, due=due, now_us=self._now_us()))
            return
        await self._data.write(
            partial(
                flattening.take_answer,
                platform=self._platform,
                target=due.name,
                rrsets=answer,
                now_us=self._now_us(),
            )
        )


async def ask(resolver: dns.asyncresolver.Resolver, name: str) -> Answer:
    """The addresses of a name; none when it does not exist or has none.

    Raises dns.exception.DNSException, OSError: nobody could say.
    """
    found = await asyncio.gather(*(_ask_type(resolver, name, kind) for kind in _TYPES))
    return tuple(rrset for rrset in found if rrset is not None)


async def _ask_type(
    resolver: dns.asyncresolver.Resolver, name: str, kind: dns.rdatatype.RdataType
) -> ServedRRset | None:
    try:
        answer = await resolver.resolve(name + ".", kind, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return None
    if answer.rrset is None:
        return None
    addresses = sorted(ip_address(record.address).packed for record in answer.rrset)[:ADDRESSES_MAX]
    seconds = max(0, int(answer.expiration - time.time()))
    return ServedRRset(int(kind), seconds, tuple(addresses))


def _ask_through(address: Address | None) -> dns.asyncresolver.Resolver:
    """A resolver without a cache: `services.flattening` remembers. The system's file is read each time."""
    resolver = dns.asyncresolver.Resolver(configure=address is None)
    if address is not None:
        resolver.nameservers = [address.host]
        resolver.port = address.port
    resolver.lifetime = QUESTION_SECONDS_MAX
    resolver.use_search_by_default = False
    return resolver
