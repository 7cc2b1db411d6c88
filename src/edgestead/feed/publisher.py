"""Control's end of the change feed.

Owns  accepting consumers, their pidfds, creating snapshots, waking writes that wait for a sequence.
Not   the rules: they are in `feed.promise`, without sockets and clocks.
"""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

import msgspec

from edgestead.feed import peer, snapshot
from edgestead.feed.lease import BEAT_MS
from edgestead.feed.link import Link
from edgestead.feed.promise import (
    BACKLOG_BYTES_MAX,
    BARRIER_MS,
    NO_LEASES,
    SILENCE_MS,
    TICK_MS,
    Leased,
    Promise,
)
from edgestead.feed.protocol import (
    Ack,
    Beaten,
    Loading,
    Message,
    ProtocolError,
    Register,
    Resumed,
    Snapshot,
    decode,
    frame,
)
from edgestead.feed.stillness import work_of
from edgestead.feed.waiters import Waiters
from edgestead.model.refusals import Unavailable
from edgestead.store.changes import Change, ChangeFeed
from edgestead.store.control import ControlStore

CONSUMERS_MAX = 256  # processes: 64 of each of four parts
REGISTER_MS_MAX = 5_000  # for a new connection to register
APPLIED_MS_MAX = 10_000  # then a write is answered anyway: it is durable
RECOVERED_MS_MAX = (
    10_000  # then a write is refused: processes of an earlier control neither reconnect nor die
)
RESUME_ROWS_MAX = 8_192  # newest changes that are loaded when control starts
RETRY_MS = 500  # after creating a snapshot or accepting a connection failed

log = logging.getLogger(__name__)


class Expected(NamedTuple):
    """A process that may be serving since before control started. The publisher closes the pidfd."""

    pid: int
    pidfd: int
    group: str


@dataclass(eq=False)
class _Peer:
    pid: int
    pidfd: int
    link: Link | None = None  # an expected process has none yet
    deadline: asyncio.TimerHandle | None = None  # for its first message
    snapshots: dict[int, int] = field(default_factory=dict)  # sequence → descriptor, created and not sent


class Publisher:
    """Serves the feed on a listening Unix socket; create, start and close it on one event loop."""

    def __init__(
        self,
        feed: ChangeFeed,
        listener: socket.socket,
        *,
        barrier_ms: float = BARRIER_MS,
        silence_ms: float = SILENCE_MS,
        still_ms: float = math.inf,
        leases: Mapping[str, Leased] = NO_LEASES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """The caller owns `listener`: the supervisor keeps it across a restart of control.

        `silence_ms` is how long a process may not answer heartbeats, `still_ms` how long it may do nothing at
        all meanwhile; `leases` are the groups that have them,
        by `monotonic`, which has to be CLOCK_MONOTONIC where there are any.
        """
        self._feed = feed
        self._listener = listener
        self._barrier_ms = barrier_ms
        self._silence_ms = silence_ms
        self._still_ms = still_ms
        self._leases = leases
        self._monotonic = monotonic
        self._loop = asyncio.get_running_loop()
        self._peers: dict[int, _Peer] = {}
        self._expected: dict[int, int] = {}  # pid → consumer
        self._numbers = count(1)
        self._waiters = Waiters()
        self._lease_waiters = Waiters()
        self._recovered = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._ran_ms = 0.0  # while the machine waited for a consumer
        self._beating: asyncio.TimerHandle | None = None
        self._making: dict[frozenset[str], list[int]] = {}  # consumers that wait for a running scan
        self._tasks: set[asyncio.Task[None]] = set()
        self._scans = ThreadPoolExecutor(1, "feed-snapshot")
        self._closed = False

    def start(self, store: ControlStore, expected: Iterable[Expected] = ()) -> None:
        """Begin to accept. Raises Unavailable when the store cannot be read."""
        store.on_group(self._on_group)  # before reading past changes, so that none is missed in between
        tail = self._recent()
        head = tail[-1].sequence if tail else self._feed.head()
        self._promise = Promise(
            self._feed.feed_id,
            head,
            tail,
            self,
            now_ms=self._now_ms,
            barrier_ms=self._barrier_ms,
            silence_ms=self._silence_ms,
            still_ms=self._still_ms,
            leases=self._leases,
        )
        for process in expected:
            self._expect(process)
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        self._beat()

    def live(self, group: str) -> list[str]:
        """The names of the processes of a group that serve right now: readiness needs one."""
        return self._promise.live(group)

    @property
    def silent(self) -> list[str]:
        """The names of the processes that do not answer heartbeats."""
        return self._promise.silent

    @property
    def behind(self) -> list[tuple[str, int, float]]:
        """Processes that serve without the newest changes: name, how many are missing, ms without
        progress.
        """
        return self._promise.behind

    async def recovered(self) -> None:
        """As `Barrier` says."""
        if self._recovered.is_set():
            return
        try:
            await asyncio.wait_for(self._recovered.wait(), RECOVERED_MS_MAX / 1000)
        except TimeoutError as error:
            raise Unavailable() from error

    async def applied(self, sequence: int, after: int = 0) -> None:
        """As `Barrier` says. Returns after APPLIED_MS_MAX at the latest."""
        if self._promise.applied < sequence:
            await self._wait(self._waiters, sequence)
        # Not earlier: only now has the promise certainly been notified of the sequence.
        if leased := self._promise.leased_wants(after, sequence):
            await self._wait(self._lease_waiters, leased)

    async def _wait(self, waiters: Waiters, sequence: int) -> None:
        if self._closed:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        waiters.add(sequence, self._ran_ms + APPLIED_MS_MAX, future)
        self._after_step()
        await future

    def close(self) -> None:
        """Release all waiting writes. Consumers keep serving and reconnect to the next control."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener.fileno())
        for timer in (self._timer, self._beating):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        for consumer in list(self._peers):
            self.disconnect(consumer)
        self._waiters.release_all()
        self._lease_waiters.release_all()
        self._recovered.set()
        self._scans.shutdown(wait=False, cancel_futures=True)

    # The promise's actions.

    def send(self, consumer: int, message: Message) -> None:
        self._send(consumer, message)

    def send_snapshot(self, consumer: int, sequence: int) -> None:
        descriptor = self._peers[consumer].snapshots.pop(sequence)
        self._send(consumer, Snapshot(self._feed.feed_id, sequence), descriptor)

    def _send(self, consumer: int, message: Message, descriptor: int | None = None) -> None:
        link = self._peers[consumer].link
        if link is not None:
            link.send(frame(message), descriptor)

    def make_snapshot(self, consumer: int, kinds: frozenset[str]) -> None:
        if kinds in self._making:
            self._making[kinds].append(consumer)
            return
        self._making[kinds] = [consumer]
        task = self._loop.create_task(self._make(kinds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def work(self, consumer: int) -> int | None:
        return work_of(self._peers[consumer].pid)

    def kill(self, consumer: int) -> None:
        peer.kill(self._peers[consumer].pidfd)

    def disconnect(self, consumer: int) -> None:
        gone = self._peers.pop(consumer, None)
        if gone is None:
            return
        if self._expected.get(gone.pid) == consumer:
            del self._expected[gone.pid]
        if gone.deadline is not None:
            gone.deadline.cancel()
        if gone.link is not None:
            gone.link.close()
        self._loop.remove_reader(gone.pidfd)
        for descriptor in (gone.pidfd, *gone.snapshots.values()):
            os.close(descriptor)

    def applied_upto(self, sequence: int) -> None:
        self._waiters.release_upto(sequence)

    def leased_upto(self, sequence: int) -> None:
        self._lease_waiters.release_upto(sequence)

    # News from the store.

    def _on_group(self, changes: Sequence[Change]) -> None:
        """On the writer's thread."""
        if changes and not self._closed:
            self._loop.call_soon_threadsafe(self._committed, changes)

    def _committed(self, changes: Sequence[Change]) -> None:
        if not self._closed:
            self._promise.committed(changes)
            self._after_step()

    def _recent(self) -> list[Change]:
        """The newest changes, from wherever the store still has them, up to its head."""
        head = self._feed.head()
        after = max(0, head - RESUME_ROWS_MAX)
        while (tail := self._feed.tail(after, BACKLOG_BYTES_MAX)) is None:
            after = (after + head + 1) // 2
        while tail and (newer := self._feed.tail(tail[-1].sequence, BACKLOG_BYTES_MAX)):
            tail = newer
        return tail

    async def _make(self, kinds: frozenset[str]) -> None:
        waiting: list[int] = []
        try:
            descriptor, sequence = await self._loop.run_in_executor(
                self._scans, snapshot.write, self._feed, kinds
            )
            waiting = self._making.pop(kinds)
            try:
                while waiting:  # one that fails stays in it, with those behind it
                    if waiting[-1] in self._peers:
                        self._hand_over(waiting[-1], sequence, os.dup(descriptor))
                    waiting.pop()
            finally:
                os.close(descriptor)
        except Exception:  # no space in the memory or no descriptor is left, for example
            log.exception("a snapshot of the feed could not be made; trying again")
            await asyncio.sleep(RETRY_MS / 1000)
            for consumer in waiting or self._making.pop(kinds):
                if consumer in self._peers:
                    self.make_snapshot(consumer, kinds)
            return
        self._after_step()

    def _hand_over(self, consumer: int, sequence: int, descriptor: int) -> None:
        ready = self._peers[consumer].snapshots
        for old in ready.values():
            os.close(old)
        ready.clear()
        ready[sequence] = descriptor
        self._promise.snapshot_ready(consumer, sequence)

    # News from the consumers.

    def _expect(self, process: Expected) -> None:
        consumer = self._add(_Peer(process.pid, process.pidfd))
        self._expected[process.pid] = consumer
        self._promise.expect(consumer, process.group)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # e.g. out of descriptors: it would be readable again immediately
            log.error("the feed could not accept a consumer: %s", error)
            self._loop.remove_reader(self._listener.fileno())
            self._loop.call_later(RETRY_MS / 1000, self._accept_again)
            return
        try:
            if len(self._peers) >= CONSUMERS_MAX:
                raise peer.NotOurs(f"there are {CONSUMERS_MAX} consumers already")
            pid, pidfd = peer.identify(connection)
        except peer.NotOurs as refusal:
            log.warning("the feed refused a consumer: %s", refusal)
            connection.close()
            return
        self._admit(connection, pid, pidfd)

    def _accept_again(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _admit(self, connection: socket.socket, pid: int, pidfd: int) -> None:
        admitted = _Peer(pid, pidfd)
        consumer = self._add(admitted)
        admitted.link = Link(connection, partial(self._frame, consumer), partial(self._lost, consumer))
        admitted.deadline = self._loop.call_later(
            REGISTER_MS_MAX / 1000, self._lost, consumer, "said nothing"
        )

    def _add(self, added: _Peer) -> int:
        consumer = next(self._numbers)
        self._peers[consumer] = added
        self._loop.add_reader(added.pidfd, self._died, consumer)
        return consumer

    def _frame(self, consumer: int, body: bytes) -> None:
        message = decode(body)
        if isinstance(message, Ack):
            self._promise.acked(consumer, message.sequence)
        elif isinstance(message, Beaten):
            self._promise.beaten(consumer)
        elif isinstance(message, Loading):
            self._promise.loads(consumer)
        elif isinstance(message, Register):
            self._register(consumer, message)
        else:
            raise ProtocolError("a consumer registers, loads, acknowledges and gives signs of life")
        self._after_step()

    def _register(self, consumer: int, hello: Register) -> None:
        registered = self._peers[consumer]
        if registered.deadline is not None:
            registered.deadline.cancel()
            registered.deadline = None
        if self._feed.includes(hello.feed_id, hello.after):
            hello = msgspec.structs.replace(hello, feed_id=self._feed.feed_id)
            self._send(consumer, Resumed(self._feed.feed_id))
        replaces = self._expected.get(registered.pid)
        self._promise.register(consumer, hello, replaces=replaces)
        if replaces is not None:
            self.disconnect(replaces)

    def _lost(self, consumer: int, reason: str) -> None:
        log.info("feed consumer %d: %s", consumer, reason)
        if consumer in self._peers and self._peers[consumer].deadline is not None:
            self.disconnect(consumer)  # it was never registered with the promise
            return
        self._promise.lost(consumer)
        self._after_step()

    def _died(self, consumer: int) -> None:
        self._promise.died(consumer)
        self.disconnect(consumer)
        self._after_step()

    # Time.

    def _after_step(self) -> None:
        if self._promise.recovered:
            self._recovered.set()
        if self._timer is None and (self._waiters or self._lease_waiters or self._promise.watching):
            self._timer = self._loop.call_later(TICK_MS / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._promise.tick(self._now_ms())
        # Time during which this process was stopped does not count: the consumers may have been stopped, too.
        self._ran_ms += TICK_MS
        overdue = self._waiters.release_overdue(self._ran_ms)
        overdue += self._lease_waiters.release_overdue(self._ran_ms)
        if overdue:
            log.error("%d writes answered before every process had applied them", overdue)
        self._after_step()

    def _beat(self) -> None:
        self._beating = self._loop.call_later(BEAT_MS / 1000, self._beat)
        self._promise.beat()
        self._after_step()

    def _now_ms(self) -> float:
        return self._monotonic() * 1000
