"""One group of the feed at a node: its rules, its file, its processes and its connection, put together.

Owns  carrying out what `feed.relay` decides; reconnecting.
Not   the rules; the process (`main`).
"""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from edgestead.feed import peer
from edgestead.feed.follower import Position
from edgestead.feed.node_link import NodeLink
from edgestead.feed.protocol import Message, ProtocolError, Secret, frame
from edgestead.feed.publisher import SILENT_LEASES, Expected, Publisher
from edgestead.feed.relay import Moved, Relay
from edgestead.model.refusals import Unavailable
from edgestead.server import framed
from edgestead.server.certificate_memory import MEMORY_OCTETS_MAX as SECRET_OCTETS_MAX
from edgestead.server.nodes import port
from edgestead.server.nodes.identity import Member
from edgestead.server.process import boot_ms
from edgestead.server.relay.expiry import Expiry
from edgestead.server.relay.file import RelayFile
from edgestead.store.changes import Change

TICK_SECONDS: Final = 0.05
AGAIN_SECONDS_MIN, AGAIN_SECONDS_MAX = 0.05, 1.0  # between two attempts to reach a control node
LOADS_MAX: Final = 32  # parts of a snapshot that wait to be written, each some 256 KiB
NOTE_SECONDS: Final = 30.0  # between two notes that there is a lease
EXPIRE_SECONDS: Final = 1.0  # between two looks which zones have expired
LEASE_SECONDS_USUAL: Final = 5.0

log = logging.getLogger("edgestead.server")


class Following(Publisher):
    """The publisher for the processes here; says what they all have applied."""

    def __init__(self, said: Callable[[int], None], *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._said = said

    def applied_upto(self, sequence: int) -> None:
        super().applied_upto(sequence)
        self._said(sequence)


class NoAddress(Exception):
    """Of a control node; the words say why."""


class GroupRelay:
    """Carries out a `Relay`'s actions. Make and run it on its loop."""

    def __init__(
        self,
        group: str,
        kinds: Iterable[str],
        file: RelayFile,
        listener: socket.socket,
        member: Member,
        addresses: Callable[[], Sequence[tuple[str, int]]],
        *,
        stops: bool,
        stale_seconds: float,
        zones_expire: bool,
        expected: Sequence[Expected],
        memories: Mapping[str, int],
        patience: dict[str, float],
        release: str,
        region: str,
    ) -> None:
        """`addresses` are of control nodes; `memories` are where secrets go, by name; `patience` goes to the
        publisher. With the policy `stops` nobody may be `expected`: they were killed. Where `zones_expire`
        the processes go on for ever, and each zone ends at its own time, `stale_seconds` at most.
        """
        self.group = group
        self._file, self._listener, self._member = file, listener, member
        self._addresses, self._patience = addresses, patience
        self._memories = memories
        self._secrets: dict[str, bytearray] = {}  # what has come of those that are not whole yet
        self._turn = 0  # which of the addresses is next
        self._loop = asyncio.get_running_loop()
        self._link: NodeLink | None = None
        self._hung_up = asyncio.Event()
        self._loads = 0
        self._is_stuffed = False
        self._work: asyncio.Queue[Callable[[], Any]] = asyncio.Queue()
        self._publisher: Following | None = None
        self._released: list[Expected] = []  # processes that nobody publishes to, for a moment
        self._swaps = 0  # new files on their way into place
        self._burial: asyncio.Task[None] | None = None  # waits for the end of those that were killed
        self._noted_at = -NOTE_SECONDS
        self.upstream = self._control_name = ""
        self._was_heard = False  # on this connection
        self._expiry = Expiry(stale_seconds) if zones_expire else None
        self._expired_at = -EXPIRE_SECONDS
        position = file.position
        is_open = bool(expected) and position is not None
        self.relay = Relay(
            self,
            group=group,
            name=member.peer.name,
            kinds=sorted(kinds),
            position=position,
            stops=stops,
            stale_ms=math.inf if zones_expire else 1000 * stale_seconds,
            now_ms=boot_ms,
            cut_off_ms=1000 * file.seconds_since_lease,
            open_at=file.head if is_open else None,
            release=release,
            region=region,
            began_us=time.time_ns() // 1000,
        )
        if is_open:
            self._follow(expected)

    async def run(self) -> None:
        """Until cancelled. Raises what the file raises: then nothing is acknowledged any more."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write())
            tasks.create_task(self._tick())
            tasks.create_task(self._connect())

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        if self._publisher is not None:
            self._publisher.close()
        self._file.close()

    # The relay's actions.

    def send(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(frame(message))

    def store(self, changes: Sequence[Change], position: Position) -> None:
        self._work.put_nowait(partial(self._store, changes, position))

    def begin(self) -> None:
        self._loads = 0
        self._work.put_nowait(partial(asyncio.to_thread, self._file.begin))

    def load(self, changes: Sequence[Change]) -> None:
        self._loads += 1
        if self._loads > LOADS_MAX and self._link is not None:
            self._is_stuffed = True
            self._link.take_no_more()
        self._work.put_nowait(partial(self._load, changes))

    def swap(self, position: Position) -> None:
        self._release()
        self._swaps += 1
        self._work.put_nowait(partial(self._swap, position))

    def keep_secret(self, part: Secret) -> None:
        content = self._secrets.setdefault(part.name, bytearray())
        content += part.octets
        if len(content) > SECRET_OCTETS_MAX:
            raise ProtocolError(f"the secret {part.name} is too large")
        if part.is_last:
            del self._secrets[part.name]
            if part.name in self._memories:  # a later release may know more of them
                self._work.put_nowait(
                    partial(asyncio.to_thread, self._write_secret, part.name, bytes(content))
                )

    def _write_secret(self, name: str, content: bytes) -> None:
        framed.write(self._memories[name], content)
        log.info("%s: %s came, %d octets", self.group, name, len(content))

    def open(self) -> None:
        self._carry_out()

    def shut(self) -> None:
        self._release()
        log.warning("%s: the lease is over: %d processes are ended", self.group, len(self._released))
        for process in self._released:
            peer.kill(process.pidfd)
        self._carry_out()

    def _carry_out(self) -> None:
        """What the relay has decided, once every new file is in place.

        relay            those that were released
        is open          follow again, whoever came meanwhile too
        is shutting      their end is waited for, once
        """
        if self._swaps:
            return
        if self.relay.is_open:
            processes, self._released = self._released, []
            self._follow(processes)
        elif self.relay.is_shutting and self._burial is None:
            processes, self._released = self._released, []
            self._burial = self._loop.create_task(self._bury(processes))

    def _release(self) -> None:
        """Publish no more; those that follow go on answering from what they have."""
        if self._publisher is not None:
            self._released += self._publisher.processes()
            self._publisher.close()
            self._publisher = None

    # Carrying them out.

    def _follow(self, expected: Iterable[Expected]) -> None:
        made = Following(self._applied, self._file.store.feed, self._listener, **self._patience)
        made.start(self._file.store, expected)
        self._publisher = made
        self.relay.applied_upto(made.applied_sequence)

    def _applied(self, sequence: int) -> None:
        if self._publisher is not None:  # while one starts it is asked afterwards
            self.relay.applied_upto(sequence)

    async def _store(self, changes: Sequence[Change], position: Position) -> None:
        committed = await asyncio.wrap_future(self._file.keep(changes, position))
        self.relay.stored(committed.sequence or self._file.head)

    async def _load(self, changes: Sequence[Change]) -> None:
        await asyncio.wrap_future(self._file.load(changes))
        self._loads -= 1
        if self._is_stuffed and self._loads < LOADS_MAX // 2:
            self._is_stuffed = False
            if self._link is not None:
                self._link.take_more()

    async def _swap(self, position: Position) -> None:
        await asyncio.to_thread(self._file.swap, position)
        self._swaps -= 1
        self._carry_out()
        self.relay.stored(self._file.head)

    async def _bury(self, processes: Sequence[Expected]) -> None:
        await end(processes)
        self._burial = None
        self.relay.is_shut()

    async def _write(self) -> None:
        while True:
            work = await self._work.get()
            await work()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.relay.tick()
            now = self._loop.time()
            if self.relay.is_live and now - self._noted_at >= NOTE_SECONDS:
                self._noted_at = now
                self._work.put_nowait(self._note_lease)
            if self._expiry is not None and now - self._expired_at >= EXPIRE_SECONDS:
                self._expired_at = now
                self._work.put_nowait(partial(self._expire, self._expiry))

    async def _note_lease(self) -> None:
        """In its turn, if it is not over by then: a new file on its way into place is none to note it in."""
        if self.relay.is_live:
            with suppress(Unavailable):  # the next note says the same
                self._file.note_lease()

    async def _expire(self, expiry: Expiry) -> None:
        await asyncio.to_thread(expiry.look, self._file.store, self.relay.cut_off_ms / 1000)

    # The connection.

    async def _connect(self) -> None:
        pause = AGAIN_SECONDS_MIN
        words = ""
        while True:
            if not self.relay.may_connect:
                await asyncio.sleep(TICK_SECONDS)
                continue
            try:
                address = self._next_address()
                await self._exchange(address)
                pause, words = AGAIN_SECONDS_MIN, ""
            except NoAddress as error:
                if words != (words := str(error)):
                    log.warning("%s: %s", self.group, words)
            except OSError as error:
                if words != (words := f"{address[0]}:{address[1]} is of no use: {error}"):
                    log.warning("%s: %s", self.group, words)
            await asyncio.sleep(pause)
            pause = min(2 * pause, AGAIN_SECONDS_MAX)

    def _next_address(self) -> tuple[str, int]:
        """Raises NoAddress."""
        try:
            addresses = self._addresses()
        except (OSError, ValueError) as error:
            raise NoAddress(f"the addresses of control nodes cannot be read: {error}") from error
        if not addresses:
            raise NoAddress("no address of a control node is known")
        self._turn += 1
        return addresses[self._turn % len(addresses)]

    async def _exchange(self, address: tuple[str, int]) -> None:
        """One connection, from its beginning to its end. Raises OSError."""
        self._hung_up.clear()
        link = NodeLink(
            lambda: self._opened(link),
            self._frame,
            self._ended,
            silent_seconds=SILENT_LEASES * LEASE_SECONDS_USUAL,
        )
        found = await port.connect(self._member, address, port.FEED_ALPN, lambda: link)
        self._control_name = found.name
        await self._hung_up.wait()
        if not self._was_heard:
            words = "was this node removed from the cluster, or is its release newer than control's?"
            raise ConnectionError(f"{found.name} hung up at once; {words}")
        self._turn -= 1  # the same again

    def _opened(self, link: NodeLink) -> None:
        if not self.relay.may_connect:  # it may not any more
            link.close()
            self._hung_up.set()
            return
        self._link = link
        self._is_stuffed = self._was_heard = False
        self._secrets.clear()
        self.relay.connected()

    def _frame(self, body: bytes) -> None:
        if not self._was_heard:
            self._was_heard, self.upstream = True, self._control_name
            log.info("%s: following %s", self.group, self.upstream)
        try:
            self.relay.received(body)
        except Moved as moved:
            self._turn += 1
            raise ProtocolError(f"moved to {moved.args[0] or 'nobody'}") from None

    def _ended(self, reason: str) -> None:
        if self._was_heard:
            log.info("%s: the connection to %s ended: %s", self.group, self.upstream, reason)
        self._link, self.upstream = None, ""
        self.relay.disconnected()
        self._hung_up.set()


async def end(processes: Iterable[Expected]) -> None:
    """Kill processes and wait until they are dead. Closes their pidfds."""
    for process in processes:
        peer.kill(process.pidfd)
    for process in processes:
        await _dead(process.pidfd)


async def _dead(pidfd: int) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(pidfd, _set, ended)
    try:
        await ended
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def _set(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)
