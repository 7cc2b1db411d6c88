"""The leader's side of the links: entries to each follower, and writes that wait until all have applied them.

Owns  the followers' connections, the newest entries in memory, the waiting writes.
Not   whom a write waits for (`cluster.members`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from edgestead.cluster.seat import Seat
from edgestead.model.refusals import Unavailable
from edgestead.server.cluster import frames
from edgestead.server.cluster.frames import Admitted, Applied, Elsewhere, Entries, Follow, Ping, Reload
from edgestead.sqlite.replica import ReplicaControlStore
from edgestead.store.controllog import ControlLog, Entry, Unknown

RECENT_BYTES_MAX: Final = 16 << 20  # of entries that followers get from memory
RECENT_MAX: Final = 4_096  # the same, as a number of entries
BATCH_BYTES_MAX: Final = 4 << 20  # of one frame, and of what a follower applies in one transaction
WAIT_MS_MAX: Final = 10_000.0  # of a write, above every lease: then its outcome is unknown to its caller

_log = logging.getLogger("edgestead.server")


class _Follower:
    def __init__(self, number: int, sent: int) -> None:
        self.number, self.sent = number, sent
        self.live: tuple[tuple[str, str], ...] = ()
        self.news = asyncio.Event()


class _Waiting(NamedTuple):
    """A write. A timer for each of many would cost more than the look at all of them in each round."""

    sequence: int
    until_ms: float
    future: asyncio.Future[None]


class Leading:
    """Make it on the loop. `now_ms` is the seat's clock."""

    def __init__(
        self,
        seat: Seat,
        store: ReplicaControlStore,
        log: ControlLog,
        now_ms: Callable[[], float],
        *,
        on_unlinked: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_unlinked = on_unlinked
        self._seat, self._store, self._control_log, self._now_ms = seat, store, log, now_ms
        self._followers: dict[int, tuple[_Follower, asyncio.Task[None]]] = {}
        self._recent: deque[Entry] = deque()
        self._recent_bytes = 0
        self._waiting: list[_Waiting] = []

    def appended(self, entry: Entry) -> None:
        """This process has appended an entry."""
        if self._recent and entry.sequence != self._recent[-1].sequence + 1:
            self._forget_recent()
        self._recent.append(entry)
        self._recent_bytes += len(entry.body)
        while len(self._recent) > RECENT_MAX or (
            self._recent_bytes > RECENT_BYTES_MAX and len(self._recent) > 1
        ):
            self._recent_bytes -= len(self._recent.popleft().body)
        for follower, _ in self._followers.values():
            follower.news.set()

    def _forget_recent(self) -> None:
        self._recent.clear()
        self._recent_bytes = 0

    def live(self) -> set[tuple[str, str]]:
        """The machines without control that have what their control node has acknowledged here."""
        return {one for follower, _ in self._followers.values() for one in follower.live}

    async def replicated(self, sequence: int) -> None:
        """Returns when every member has applied an entry or is gone. Raises Unknown."""
        seat = self._seat
        if not seat.office.leads:
            raise Unknown()
        if seat.members.applied >= sequence:
            return
        seat.wanted = max(seat.wanted, sequence)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(sequence, self._now_ms() + WAIT_MS_MAX, future))
        await future

    def settle(self) -> None:
        """Something has changed, or a round is over: release the writes that every member has applied, and
        those that failed or have waited too long.
        """
        if not self._waiting:
            return
        leads, upto, now_ms = self._seat.office.leads, self._seat.members.applied, self._now_ms()
        left = []
        for one in self._waiting:
            if one.future.done():
                continue
            if leads and one.sequence <= upto:
                one.future.set_result(None)
            elif leads and now_ms < one.until_ms:
                left.append(one)
            else:
                one.future.set_exception(Unknown())
                if leads:
                    _log.error("a write waited for %d control nodes in vain", len(self._seat.members.numbers))
        self._waiting = left

    def drop_all(self) -> None:
        """This process leads no more."""
        for _, task in self._followers.values():
            task.cancel()
        self._forget_recent()
        self.settle()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: str) -> None:
        """A follower's connection, from its first message to its end."""
        hello = await frames.read(reader)
        if not isinstance(hello, Follow):
            raise frames.BadFrame("a follower says who it is first")
        if (refusal := await self._refusal(hello)) is not None:
            writer.write(frames.frame(refusal))
            await writer.drain()
            return
        seat, number = self._seat, hello.number
        follower = _Follower(number, hello.sequence)
        leader = seat.office.number
        assert leader is not None
        sending = asyncio.create_task(self._send(follower, writer, leader))
        self._followers[number] = (follower, sending)
        _log.info("control of node %s follows from entry %d", node, hello.sequence)
        sending.add_done_callback(lambda _: writer.close())
        try:
            while True:
                message = await frames.read(reader)
                if not isinstance(message, Applied):
                    raise frames.BadFrame("a follower says what it has applied")
                if message.live is not None:
                    follower.live = message.live
                seat.members.acked(number, message.sequence)
                self.settle()
        except TimeoutError:
            _log.warning("control of node %s is silent", node)
        finally:
            sending.cancel()
            if self._followers.get(number, (None,))[0] is follower:
                del self._followers[number]
                seat.members.unlink(number)
                self._on_unlinked()

    async def _refusal(self, hello: Follow) -> Elsewhere | Reload | None:
        """Why a process cannot follow; None makes it a member, for which writes wait."""
        seat, position = self._seat, self._store.position
        if not seat.office.leads:
            return Elsewhere()
        newest = self._recent[-1].sequence if self._recent else 0  # it may not be committed here yet
        if hello.sequence > max(position.sequence, newest):
            return await self._of_one_ahead(hello)
        if hello.sequence == position.sequence and hello.chain != position.chain:
            return Reload()
        linked = seat.members.link(hello.number, -1, self._now_ms())
        return None if linked else Elsewhere()

    async def _of_one_ahead(self, hello: Follow) -> Elsewhere | Reload:
        """It has an entry that this process does not know of yet, or that a failover of the database lost."""
        try:
            chain = await asyncio.to_thread(self._control_log.chain, hello.sequence)
        except Unavailable:
            return Elsewhere()
        return Elsewhere() if chain == hello.chain else Reload()

    async def _send(self, follower: _Follower, writer: asyncio.StreamWriter, leader: int) -> None:
        """Runs until the connection ends. What cannot be read is tried again by the follower's next link."""
        writer.write(frames.frame(Admitted(leader, self._store.position.sequence)))
        with suppress(ConnectionError, Unavailable):
            while True:
                entries = await self._after(follower.sent)
                if entries is None:
                    writer.write(frames.frame(Reload()))
                    return
                if entries:
                    follower.sent = entries[-1].sequence
                    writer.write(frames.frame(Entries(tuple(entries))))
                    await writer.drain()
                    continue
                follower.news.clear()
                try:
                    async with asyncio.timeout(frames.PING_SECONDS):
                        await follower.news.wait()
                except TimeoutError:
                    writer.write(frames.frame(Ping()))
                    await writer.drain()

    async def _after(self, sequence: int) -> list[Entry] | None:
        recent = self._recent
        if recent and recent[0].sequence <= sequence + 1:
            found: list[Entry] = []
            size = 0
            for place in range(sequence - recent[-1].sequence, 0):  # the newest: a copy of all takes 15 µs
                entry = recent[place]
                size += len(entry.body)
                if found and size > BATCH_BYTES_MAX:
                    break
                found.append(entry)
            return found
        if sequence >= self._store.position.sequence:
            return []
        return await asyncio.to_thread(self._control_log.read, sequence, BATCH_BYTES_MAX)
