"""What the zones above ours say of our keys: their DS records, asked of the resolver.

Owns  which zones are asked for, how often, and what counts as an answer.
Not   what follows from one (`usecases.zone.signing`); a query or request of a client: none waits for this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from edgestead.config import Address
from edgestead.model.call import Call
from edgestead.model.refusals.setting import KeysSealed
from edgestead.server.control.targets import Data
from edgestead.store.control import Reader
from edgestead.tables import signing as signing_rows
from edgestead.tables import zones
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.signing import ACTIVE, IS_SERVED
from edgestead.usecases.zone import rolls, signing

WAITING_SECONDS: Final = 60.0  # between two questions for a zone whose DS is to come or to go
ACTIVE_SECONDS: Final = 3_600.0  # between two for one whose DS is there and stays
PER_POLL_MAX: Final = 16  # zones: each question may take as long as a resolver does
POLL_SECONDS: Final = 1.0

log = logging.getLogger(__name__)

Asked = Callable[[str], Awaitable[tuple[bytes, ...] | None]]
"""The DS records of a zone as RDATA, none when there is none; None when nobody can say."""


class Parents:
    """Call `poll` every POLL_SECONDS. `open_resolver` is called for each poll that asks."""

    def __init__(
        self,
        data: Data,
        platform: Platform,
        call: Callable[[], Call],
        open_resolver: Callable[[], Asked],
    ) -> None:
        self._data = data
        self._platform = platform
        self._call = call
        self._open_resolver = open_resolver
        self._due: dict[str, float] = {}

    async def poll(self) -> None:
        """Ask for the zones that are due. Raises what reading the store raises."""
        now = asyncio.get_running_loop().time()
        found = self._data.read(_served)
        self._due = {zone_id: self._due.get(zone_id, now) for zone_id in found}
        due = [zone_id for zone_id in found if self._due[zone_id] <= now]
        due.sort(key=self._due.__getitem__)  # else the first ones, due again, keep out those behind them
        del due[PER_POLL_MAX:]
        if not due:
            return
        children = self._data.read(lambda reader: _children(reader, due))
        for one in children:
            self._due[one.zone_id] = now + (WAITING_SECONDS if one.is_waiting else ACTIVE_SECONDS)
        ask = self._open_resolver()
        await asyncio.gather(*(self._ask(ask, one) for one in children))

    async def _ask(self, ask: Asked, child: "_Child") -> None:
        """A zone that cannot follow its parent now is asked for again when it is due, as any other is."""
        try:
            answer = await ask(child.name)
            if answer is not None:
                await self._data.write(
                    lambda tx: signing.parent_said(self._call(), tx, self._platform, child.zone_id, answer)
                )
        except KeysSealed:
            log.warning("zone %s does not follow its parent: %s", child.zone_id, KeysSealed.wording)
        except Exception:
            log.exception("zone %s does not follow its parent", child.zone_id)


class _Child(NamedTuple):
    """A zone that is asked for; `is_waiting` says whether its DS is to change."""

    zone_id: str
    name: str
    is_waiting: bool


def _served(reader: Reader) -> list[str]:
    """The zones whose parent matters. One statement, each second."""
    return [zone_id for zone_id, stored in signing.all_stored(reader) if stored.state in IS_SERVED]


def _children(reader: Reader, due: Iterable[str]) -> list[_Child]:
    found = []
    for zone_id in due:
        zone, stored = zones.zone(reader, zone_id), signing.stored_of(reader, zone_id)
        if zone is not None and stored is not None:
            is_rolling = rolls.is_waiting_for_parent(signing_rows.keys(reader, zone_id))
            found.append(_Child(zone_id, zone.name, stored.state != ACTIVE or is_rolling))
    return found


def resolver_at(address: Address | None) -> Asked:
    """How a parent is asked. None means the system's resolver; where it has none, nobody can say."""
    from edgestead.server.control import resolving  # 10 MB that servers without signed zones never need

    try:
        resolver = resolving.resolver_at(address)
    except resolving.NoResolver:
        return _nobody
    return lambda name: resolving.ds_records(resolver, name)


async def _nobody(_name: str) -> None:
    """The system names no resolver."""
