"""A node's certificate is renewed long before it ends.

Owns  when the next one is asked for, how often again, what is said of one that did not come; asking control.
Not   making one (`identity`, `control_part`); the connections that show it (`port`).

A node with control has the cluster's authority, and makes its own: also when it was off until after the end
of the last one, or when no other node is there. A machine without control asks one that has it, by a
connection with the certificate that still holds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from edgestead import __version__
from edgestead.health.facts import NodeCertificate
from edgestead.server.nodes import identity, invites, join
from edgestead.server.nodes.identity import Member, NotANode

if TYPE_CHECKING:
    from edgestead.server.nodes.control_part import Nodes

LOOK_SECONDS: Final = 3_600.0  # between two looks whether it is due: there are 30 days for it

Ask = Callable[[datetime], Awaitable[None]]
"""Puts the next certificate in its file, for what is now. Raises OSError, EOFError, Refused, NotANode."""

_EXPECTED: Final = (OSError, EOFError, msgspec.MsgspecError, invites.Refused, NotANode)
_log = logging.getLogger("edgestead.server")


def _now() -> datetime:
    return datetime.now(UTC)


class Renewing:
    """One node's. `renewed` is called when the file is another one."""

    def __init__(
        self,
        member: Member,
        ask: Ask,
        *,
        renewed: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = _now,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._member, self._ask, self._renewed = member, ask, renewed
        self._now, self._look_seconds = now, look_seconds
        self.standing: NodeCertificate | None = None  # before the first look
        self._ends_us = 0  # what was read last: before the first time, it is as good as over
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """One that has ended is renewed before this returns, and so before any connection shows it."""
        await self.look()
        self._task = asyncio.create_task(self._go_on())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def look(self) -> None:
        """Asks for the next one when it is due, as one is that cannot be read. Raises nothing."""
        problem = ""
        try:
            if await asyncio.to_thread(self._is_due, self._now()):
                await self._ask(self._now())
                self._renewed()
                _log.info("the node's certificate was renewed")
        except Exception as error:  # whatever it is, there is a next look, for months
            problem = str(error) or type(error).__name__
            trace = None if isinstance(error, _EXPECTED) else error
            _log.error("the node's certificate is due, and was not renewed: %s", problem, exc_info=trace)
        unread = ""
        try:
            ends = await asyncio.to_thread(self._ends)
            self._ends_us = int(ends.timestamp() * 1_000_000)
        except (OSError, ValueError) as error:
            unread = str(error) or type(error).__name__
        self.standing = NodeCertificate(self._ends_us, problem, unread)

    async def run(self) -> None:
        """For ever."""
        await self.look()
        await self._go_on()

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            await self.look()

    def _is_due(self, now: datetime) -> bool:
        try:
            return now >= identity.renewal_of(self._member.certificate_file.read_bytes())
        except (OSError, ValueError):
            return True

    def _ends(self) -> datetime:
        return identity.end_of(self._member.certificate_file.read_bytes())


async def ask_control(member: Member, _: datetime) -> None:
    """Each node with control that this one knows, until one has made it."""
    folder = member.certificate_file.parent
    problem: Exception = NotANode("no address of a node with control is known")
    for address in join.addresses_in(folder):
        try:
            await join.renew(member, address, folder, release=__version__)
            return
        except (OSError, EOFError, msgspec.MsgspecError, invites.Refused) as error:
            problem = error
    raise problem


def of_control(nodes: "Nodes | None", member: Member, renewed: Callable[[], None]) -> Renewing:
    """Of a node with control. One that cannot use the cluster's authority has no `nodes`, and asks others."""
    return Renewing(member, partial(ask_control, member) if nodes is None else nodes.renew, renewed=renewed)
