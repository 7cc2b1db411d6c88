"""A follower's side: it applies what the leader sends, and says when its whole node has it.

Owns  one link to one leader; following the log in the database while there is none.
Not   which process leads; applying an entry (`sqlite.logged`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from edgestead.server.cluster import frames
from edgestead.server.cluster.frames import (
    LOG_ALPN,
    Admitted,
    Applied,
    Elsewhere,
    Entries,
    Follow,
    Ping,
    Reload,
)
from edgestead.server.nodes import port
from edgestead.server.nodes.identity import Member
from edgestead.sqlite.replica import ReplicaControlStore
from edgestead.store.controllog import Diverged, Entry

_log = logging.getLogger("edgestead.server")
Address = tuple[str, int]
Live = tuple[tuple[str, str], ...]  # (group of the feed, node)


class Following:
    """One link. `applied` waits until the processes of this node have applied a sequence of the feed;
    `live` are the machines without control that have it too. `admitted` is called with the leader's number,
    `arrived` with the time of an entry that was pushed as soon as it was made.
    """

    def __init__(
        self,
        store: ReplicaControlStore,
        member: Member,
        address: Address,
        number: int,
        *,
        applied: Callable[[int], Awaitable[None]],
        live: Callable[[], Live],
        admitted: Callable[[int], None],
        arrived: Callable[[int], None] = lambda made_us: None,
    ) -> None:
        self._store, self._member, self._address, self._number = store, member, address, number
        self._applied, self._live, self._admitted, self._arrived = applied, live, admitted, arrived
        self.is_linked = False  # the leader was reached
        self.was_admitted = False
        self._told_live: Live | None = None
        self._admission: Admitted | None = None
        self._acked = -1
        self._to_ack = (-1, 0)  # sequence of the log, and of the feed
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Until the link ends. Raises OSError, EOFError, TimeoutError, Diverged, SchemaError."""
        reader, writer, peer = await port.open_streams(self._member, self._address, LOG_ALPN)
        self.is_linked = True
        self._look_at_copy()
        acking = asyncio.create_task(self._ack(writer))
        try:
            writer.write(frames.frame(Follow(self._number, *self._store.position)))
            while True:
                message = await frames.read(reader)
                if isinstance(message, Entries):
                    await self._apply(message.entries)
                elif isinstance(message, Admitted):
                    self._admission, self.was_admitted = message, True
                elif isinstance(message, Ping):
                    self._look_at_copy()
                    self._tell(writer)
                elif isinstance(message, Elsewhere):
                    return
                elif isinstance(message, Reload):
                    raise Diverged(f"node {peer.name} leads, and its log does not continue this copy")
                else:
                    raise frames.BadFrame("a leader sends no such message")
                self._check_admission()
        finally:
            acking.cancel()
            writer.transport.abort()  # who was silent says no goodbye either, and TLS would wait 30 s for it

    async def _apply(self, entries: Sequence[Entry]) -> None:
        if self.was_admitted and self._admission is None:  # not one that it had missed
            self._arrived(entries[-1].made_us)
        await asyncio.wrap_future(self._store.apply(entries))
        self._to_ack = (entries[-1].sequence, entries[-1].feed_upto)
        self._news.set()

    def _look_at_copy(self) -> None:
        """What it has without this link, as read from the log before, or by a read that ends only now: that
        never comes over the link, and the leader's writes wait until it is told of it.
        """
        sequence = self._store.position.sequence
        if sequence > self._to_ack[0]:
            self._to_ack = (sequence, self._store.feed.head())
            self._news.set()

    def _check_admission(self) -> None:
        admission = self._admission
        if admission is not None and self._store.position.sequence >= admission.sequence:
            self._admission = None
            self._admitted(admission.leader)

    async def _ack(self, writer: asyncio.StreamWriter) -> None:
        """On a task of its own: the next entries are applied while processes of this node apply these."""
        while True:
            await self._news.wait()
            self._news.clear()
            sequence, feed_upto = self._to_ack
            await self._applied(feed_upto)
            self._acked = sequence
            self._tell(writer)

    def _tell(self, writer: asyncio.StreamWriter) -> None:
        live = self._live()
        news = None if live == self._told_live else live
        self._told_live = live
        writer.write(frames.frame(Applied(self._acked, news)))
