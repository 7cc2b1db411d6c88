"""Control's end of the change feed.

Owns  accepting consumers, their pidfds, creating snapshots, waking writes that wait for a sequence.
Not   the rules: they are in `feed.promise`, without sockets and clocks.
"""

import asyncio
import logging
import math
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from edgestead.feed import peer, snapshot
from edgestead.feed.lease import BEAT_MS
from edgestead.feed.link import Link
from edgestead.feed.node_link import NodeLink
from edgestead.feed.promise import (
    BACKLOG_BYTES_MAX,
    BARRIER_MS,
    NO_LEASES,
    SILENCE_MS,
    TICK_MS,
    Leased,
    Node,
    Promise,
)
from edgestead.feed.protocol import (
    PART_BYTES_MAX,
    Ack,
    Beaten,
    Hello,
    Loading,
    Message,
    ProtocolError,
    Register,
    Renew,
    Resumed,
    Secret,
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
NODE_CONSUMERS_MAX = 1_024  # 256 nodes in two groups, and the next connection of each
REGISTER_MS_MAX = 5_000  # for a new connection to register
APPLIED_MS_MAX = 10_000  # then a write is answered anyway: it is durable. More than any lease, see `Node`
LEASE_MS_MAX = 8_000  # of a node
RECOVERED_MS_MAX = (
    10_000  # then a write is refused: processes of an earlier control neither reconnect nor die
)
RESUME_ROWS_MAX = 8_192  # newest changes that are loaded when control starts
RELEASE_CHARS_MAX = 64  # of a node's release that are kept
KEPT_SECONDS = 600.0  # that a snapshot whose node was lost is kept, for that to go on with
KEPT_MAX = 8  # such snapshots; each is as large as what is served
SILENT_LEASES = 2  # without an octet from a node: its connection is over
RETRY_MS = 500  # after creating a snapshot or accepting a connection failed

NO_NODES: Mapping[str, frozenset[str]] = MappingProxyType({})

log = logging.getLogger(__name__)


class Expected(NamedTuple):
    """A process that may be serving since before control started. The publisher closes the pidfd."""

    pid: int
    pidfd: int
    group: str


class NodeStanding(msgspec.Struct, frozen=True):
    """How a node's group of processes stands. `is_live`: writes wait for it. `behind` is how many changes of
    the feed it has not applied yet.
    """

    is_live: bool
    behind: int
    release: str = ""


class _Made(NamedTuple):
    """A snapshot's file, of which this is one descriptor, and from where on it is sent."""

    descriptor: int
    name: str
    kinds: frozenset[str]
    sequence: int
    offset: int = 0


@dataclass(eq=False)
class _Peer:
    """A process of this machine, or a node: that has no pid."""

    pid: int = -1
    pidfd: int = -1
    node: Node | None = None
    order: tuple[int, int] = (0, 0)  # of a node's connections: when its relay began, and a count
    release: str = ""  # of a node's program
    link: Link | NodeLink | None = None  # an expected one has none yet
    deadline: asyncio.TimerHandle | None = None  # for its first message
    snapshots: dict[int, _Made] = field(default_factory=dict)  # by sequence, created and not sent
    half: tuple[str, int] = ("", 0)  # the name of a snapshot, and how much of it a node has
    sent: _Made | None = None  # the snapshot that a node was sent and has not acknowledged


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
        tells: Callable[[int], None] | None = None,
        node_kinds: Mapping[str, frozenset[str]] = NO_NODES,
        own_until_ms: Callable[[], float] = lambda: math.inf,
        stops: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """The caller owns `listener`: the supervisor keeps it across a restart of control.

        `silence_ms` is how long a process may not answer heartbeats, `still_ms` how long it may do nothing at
        all meanwhile; `leases` are the groups that have them,
        by `monotonic`, which has to be CLOCK_MONOTONIC where there are any. `node_kinds` are the groups in
        which nodes may be, and what they may ask for; `tells`, `own_until_ms` and `stops` as in `Promise`.
        """
        self._feed = feed
        self._listener = listener
        self._barrier_ms = barrier_ms
        self._silence_ms = silence_ms
        self._still_ms = still_ms
        self._leases, self._tells = leases, tells
        self._node_kinds = node_kinds
        self._own_until_ms, self._stops = own_until_ms, stops
        self._nodes: dict[tuple[str, str], int] = {}  # (group, name) → consumer
        self._secrets: dict[tuple[str, str], bytes] = {}  # (group, name of the secret)
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
        self._kept: dict[str, _Made] = {}  # by name: snapshots whose nodes were lost
        self._scans = ThreadPoolExecutor(1, "feed-snapshot")
        self._store: ControlStore | None = None  # once it has started
        self._closed = False

    def start(
        self, store: ControlStore, expected: Iterable[Expected] = (), nodes: Iterable[Node] = ()
    ) -> None:
        """Begin to accept. `nodes` may have leases of an earlier control. Raises Unavailable when the store
        cannot be read.
        """
        self._store = store
        store.on_group(self._on_group)  # before reading past changes, so that none is missed in between
        tail = self._recent()
        head = tail[-1].sequence if tail else self._feed.head()
        self._named = self._told = self._feed.feed_id
        self._promise = Promise(
            self._named,
            head,
            tail,
            self,
            now_ms=self._now_ms,
            barrier_ms=self._barrier_ms,
            silence_ms=self._silence_ms,
            still_ms=self._still_ms,
            leases=self._leases,
            tells=self._tells,
            own_until_ms=self._own_until_ms,
            stops=self._stops,
        )
        for process in expected:
            self._expect(process)
        for node in nodes:
            for group in self._node_kinds:
                self._nodes[group, node.name] = consumer = self._add(_Peer(node=node))
                self._promise.expect_node(consumer, group, node)
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        self._beat()

    def live(self, group: str) -> list[str]:
        """The names of the processes of a group that serve right now: readiness needs one."""
        return self._promise.live(group)

    @property
    def applied_sequence(self) -> int:
        """What every process that may answer has applied; the head when there is none."""
        return self._promise.applied

    def processes(self) -> list[Expected]:
        """The processes that follow or are expected, each with a pidfd of the caller's own."""
        return [
            Expected(one.pid, os.dup(one.pidfd), self._promise.group_of(number))
            for number, one in self._peers.items()
            if one.node is None
        ]

    def nodes(self) -> dict[str, dict[str, int]]:
        """For each group the nodes that writes wait for, or would, and what each has applied."""
        return {group: self._promise.nodes(group) for group in self._node_kinds}

    def standings(self) -> dict[str, dict[str, NodeStanding]]:
        """The nodes that are connected here, by name and group."""
        found: dict[str, dict[str, NodeStanding]] = {}
        for group in self._node_kinds:
            for name, (is_live, behind) in self._promise.standings(group).items():
                connected = self._peers.get(self._nodes.get((group, name), -1))
                release = "" if connected is None else connected.release
                found.setdefault(name, {})[group] = NodeStanding(is_live, behind, release)
        return found

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
        if self._store is not None:
            self._store.off_group(self._on_group)
        for timer in (self._timer, self._beating):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        for consumer in list(self._peers):
            self.disconnect(consumer)
        for name in list(self._kept):
            self._drop_kept(name)
        self._waiters.release_all()
        self._lease_waiters.release_all()
        self._recovered.set()
        self._scans.shutdown(wait=False, cancel_futures=True)

    # The promise's actions.

    def send(self, consumer: int, message: Message) -> None:
        self._send(consumer, message)

    def send_snapshot(self, consumer: int, sequence: int) -> None:
        told = self._peers[consumer]
        made = told.snapshots.pop(sequence)
        if not isinstance(told.link, NodeLink):
            self._send(consumer, Snapshot(self._feed.feed_id, sequence), made.descriptor)
            return
        self._forget_sent(told)
        told.sent = made
        message = Snapshot(self._feed.feed_id, sequence, made.name, made.offset)
        told.link.send(frame(message), os.dup(made.descriptor), made.offset)

    def _send(self, consumer: int, message: Message, descriptor: int | None = None) -> None:
        link = self._peers[consumer].link
        if link is not None:
            link.send(frame(message), descriptor)

    def make_snapshot(self, consumer: int, kinds: frozenset[str]) -> None:
        name, offset = self._peers[consumer].half
        kept = self._kept.get(name)
        if kept is not None and kept.kinds == kinds and self._promise.holds(kept.sequence):
            self._peers[consumer].half = ("", 0)
            again = kept._replace(descriptor=os.dup(kept.descriptor), offset=offset)
            self._drop_kept(name)
            self._loop.call_soon(self._go_on, consumer, again)
            return
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
        for made in gone.snapshots.values():
            os.close(made.descriptor)
        self._keep_sent(gone)
        if gone.node is not None:
            self._nodes = {key: number for key, number in self._nodes.items() if number != consumer}
            return
        self._loop.remove_reader(gone.pidfd)
        os.close(gone.pidfd)

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
            self._tell_name()
            self._promise.committed(changes)
            self._after_step()

    def _tell_name(self) -> None:
        """In a cluster the feed goes on under another name when another process leads."""
        if self._feed.feed_id != self._told:
            self._told = self._feed.feed_id
            for consumer, peer_ in self._peers.items():
                if peer_.link is not None and peer_.deadline is None:
                    self._send(consumer, Resumed(self._told))

    def _recent(self) -> list[Change]:
        """The newest changes, from wherever the store still has them, up to its head."""
        head = self._feed.head()
        after = max(0, head - RESUME_ROWS_MAX)
        while (tail := self._feed.tail(after, BACKLOG_BYTES_MAX)) is None:
            after = (after + head + 1) // 2
        while tail and (newer := self._feed.tail(tail[-1].sequence, BACKLOG_BYTES_MAX)):
            tail = newer
        return tail

    def _keep_sent(self, gone: _Peer) -> None:
        """What a node was sent and has not acknowledged, for it to go on with; the oldest goes when there are
        too many.
        """
        made, gone.sent = gone.sent, None
        if made is None:
            return
        if self._closed:
            os.close(made.descriptor)
            return
        self._drop_kept(made.name)
        if len(self._kept) >= KEPT_MAX:
            self._drop_kept(next(iter(self._kept)))
        self._kept[made.name] = made
        self._loop.call_later(KEPT_SECONDS, self._drop_kept, made.name, made)

    def _drop_kept(self, name: str, only: _Made | None = None) -> None:
        kept = self._kept.get(name)
        if kept is not None and only in (None, kept):
            del self._kept[name]
            os.close(kept.descriptor)

    def _forget_sent(self, told: _Peer) -> None:
        if told.sent is not None:
            os.close(told.sent.descriptor)
            told.sent = None

    def _go_on(self, consumer: int, made: _Made) -> None:
        if consumer in self._peers and not self._closed:
            log.info("feed consumer %d goes on with a snapshot at octet %d", consumer, made.offset)
            self._hand_over(consumer, made)
            self._after_step()
        else:
            os.close(made.descriptor)

    async def _make(self, kinds: frozenset[str]) -> None:
        waiting: list[int] = []
        try:
            scan = self._scans.submit(snapshot.write, self._feed, kinds)
            try:
                descriptor, sequence = await asyncio.wrap_future(scan)
            except asyncio.CancelledError:
                scan.add_done_callback(_discard)
                raise
            waiting = self._making.pop(kinds)
            name = secrets.token_hex(8)
            try:
                while waiting:  # one that fails stays in it, with those behind it
                    if waiting[-1] in self._peers:
                        self._hand_over(waiting[-1], _Made(os.dup(descriptor), name, kinds, sequence))
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

    def _hand_over(self, consumer: int, made: _Made) -> None:
        ready = self._peers[consumer].snapshots
        for old in ready.values():
            os.close(old.descriptor)
        ready.clear()
        ready[made.sequence] = made
        self._promise.snapshot_ready(consumer, made.sequence)

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
            if self._count(nodes=False) >= CONSUMERS_MAX:
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
        self._await_register(admitted, consumer)

    def _await_register(self, admitted: _Peer, consumer: int) -> None:
        admitted.deadline = self._loop.call_later(
            REGISTER_MS_MAX / 1000, self._lost, consumer, "said nothing"
        )

    def tell_nodes(self, group: str, name: str, secret: bytes) -> None:
        """Give the nodes of a group what they may keep in memory alone; also those that come later."""
        self._secrets[group, name] = secret
        for (of, _), consumer in self._nodes.items():
            if of == group and not self._closed:
                self._tell(consumer, name, secret)

    def _tell(self, consumer: int, name: str, secret: bytes) -> None:
        for start in range(0, len(secret) or 1, PART_BYTES_MAX):
            part = secret[start : start + PART_BYTES_MAX]
            self._send(consumer, Secret(name, part, start + PART_BYTES_MAX >= len(secret)))

    def admit_node(self, node: Node) -> NodeLink:
        """The protocol of a connection from another machine. Who it is was made sure of."""
        admitted = _Peer(node=node)
        numbers: list[int] = []

        def opened() -> None:
            if self._closed or self._count(nodes=True) >= NODE_CONSUMERS_MAX:
                link.close()
                return
            numbers.append(self._add(admitted))
            admitted.link = link
            self._await_register(admitted, numbers[0])

        link = NodeLink(
            opened,
            lambda body: self._frame(numbers[0], body),
            lambda reason: self._lost(numbers[0], reason) if numbers else None,
            silent_seconds=SILENT_LEASES * node.lease_ms / 1000,
        )
        return link

    def _count(self, *, nodes: bool) -> int:
        """Each kind has its own places: other machines may take none of this one's processes."""
        return sum((one.node is not None) == nodes for one in self._peers.values())

    def _add(self, added: _Peer) -> int:
        consumer = next(self._numbers)
        self._peers[consumer] = added
        if added.node is None:
            self._loop.add_reader(added.pidfd, self._died, consumer)
        return consumer

    def _frame(self, consumer: int, body: bytes) -> None:
        message = decode(body)
        if isinstance(message, Ack):
            self._acknowledged(self._peers[consumer], message.sequence)
            self._promise.acked(consumer, message.sequence)
        elif isinstance(message, Beaten):
            self._promise.beaten(consumer)
        elif isinstance(message, Loading):
            self._promise.loads(consumer)
        elif isinstance(message, Register):
            self._register(consumer, message)
        elif isinstance(message, Renew):
            self._promise.renew(consumer, message.number)
        elif isinstance(message, Hello):
            self._greeted(consumer, message)
        else:
            raise ProtocolError("a consumer registers, loads, acknowledges and gives signs of life")
        self._after_step()

    def _acknowledged(self, told: _Peer, sequence: int) -> None:
        if told.sent is not None and sequence >= told.sent.sequence:
            self._forget_sent(told)

    def _register(self, consumer: int, hello: Register) -> None:
        registered = self._peers[consumer]
        registered.half = (hello.snapshot, hello.offset)
        node = registered.node
        replaces = self._replaced(consumer, hello, node)
        if registered.deadline is not None:
            registered.deadline.cancel()
            registered.deadline = None
        if self._feed.includes(hello.feed_id, hello.after):
            hello = msgspec.structs.replace(hello, feed_id=self._named)
            self._send(consumer, Resumed(self._feed.feed_id))
        elif hello.feed_id == self._named:
            hello = msgspec.structs.replace(hello, feed_id="")
        if replaces is not None:
            self._keep_sent(self._peers[replaces])
        self._promise.register(consumer, hello, replaces=replaces, node=node)
        if replaces is not None:
            self.disconnect(replaces)
        if node is not None:
            self._nodes[hello.group, node.name] = consumer
            for (group, name), secret in self._secrets.items():
                if group == hello.group:
                    self._tell(consumer, name, secret)

    def _replaced(self, consumer: int, hello: Register, node: Node | None) -> int | None:
        """The number that this consumer had before. Raises ProtocolError: a node may not have that."""
        if node is None:
            return self._expected.get(self._peers[consumer].pid)
        allowed = self._node_kinds.get(hello.group, frozenset())
        if not hello.kinds or not allowed.issuperset(hello.kinds):
            raise ProtocolError(f"node {node.name} asks for what no node is told")
        before = self._nodes.get((hello.group, node.name))
        if before == consumer or before is None:
            return None
        if self._peers[before].order > self._peers[consumer].order:
            raise ProtocolError(f"node {node.name} has a newer connection")
        return before

    def _greeted(self, consumer: int, hello: Hello) -> None:
        greeted = self._peers[consumer]
        greeted.order, node = (hello.began_us, hello.number), greeted.node
        greeted.release = hello.release[:RELEASE_CHARS_MAX]
        if node is not None:
            log.info(
                "node %s follows; release %s, region %s", node.name, hello.release, hello.region or "none"
            )

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


def _discard(scan: Future[tuple[int, int]]) -> None:
    """What a scan made that goes on when nobody waits for it any more."""
    if not scan.cancelled() and scan.exception() is None:
        os.close(scan.result()[0])
