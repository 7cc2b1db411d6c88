"""The feed's guarantee as a state machine: a write is answered once every serving process has applied it.

Owns  which consumer has which change, what is withheld from it, joining, timeouts, leases, and the sequence
      that all have applied.
Not   sockets, processes: their deaths are reported to it, and the time is a parameter.

    expected ──▶ live ──▶ dying ──▶ gone       registered before control restarted, back, too slow, dead
    joining ───▶ live                           loads aside; writes do not wait for it yet

Writes wait for consumers that are `serving`: live or expected ones until they are dead, whatever the cause. A
consumer that falls behind by more than BACKLOG_BYTES_MAX loads a snapshot and stays live meanwhile.

In a group with leases (`feed.lease`) this applies only to changes of the kinds that a lease covers, and only
while the lease is valid. A lease is granted to a consumer that has applied everything, so one that lags gets
none:

    state      its lease            lost connection, refused to answer        its lease is over
    joining    none                 gone                                      -
    live       renewed              dying                                     nobody waits for it
    expected   until LEASE_MS       -                                         killed if it stays away
    dying      as last granted      -                                         gone

On one machine such a group sees what control `tells`: the newest of these changes that somebody may be told
of. A process without it admits nobody, so leases decide nothing there, and one that does not apply a change
is *late*, and waited for no longer:

    state      for LATE_MS with a change that it lacks    has everything again
    expected   late                                       -
    live       late                                       waited for
    dying      not waited for                             -

A *node* is a consumer on another machine (a relay, for all of that machine's processes of a group): they
cannot be killed from here. It has a lease, which it renews itself; writes wait for it until it has
acknowledged or its lease is over. One that makes no progress is granted none, so the end of the last grant is
for a node what its death is for a process:

    state      its lease              makes no progress     its lease is over         lost its connection
    joining    none                   gone after JOIN_MS    -                         gone
    live       granted when it asks   no more grants        joining, until it proves  dying
                                                            that it reads and writes
    dying      as last granted        -                     gone                      -
    expected   one from the start     -                     gone                      -

One that comes back and says that it has a lease, while writes still wait for it, continues as live, with what
it has; else it joins. A node that is not `awaited` gets the same, and no write waits for it.

Control itself may have a lease, in a cluster: it grants no longer one. Where it `stops`, no process of its
own machine answers beyond it: those that serve are killed, and others wait until there is one again.

docs/design/0003-feed.md explains why no answer is ever older than an acknowledged write, and 0025 why no
caller is admitted by an older table.
"""

import logging
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from edgestead.feed.lease import BEAT_MS, LEASE_MS
from edgestead.feed.protocol import BATCH_BYTES_MAX, Beat, Changes, Granted, Message, Register, Serve
from edgestead.feed.stillness import Stillness
from edgestead.feed.tail import Tail
from edgestead.store.changes import Change

BARRIER_MS = 250  # without progress while something is outstanding: killed (a setting)
LATE_MS = 100  # that a change of who may call waits for a process that may admit nobody without it
JOIN_MS = 30_000  # the same between two steps of loading a snapshot or of catching up with the head
EXPECTED_MS = 2_000  # for a process from before a restart of control to come back
EXPECTED_STILL_PART = 0.4
"""Of what others may stand still, for one that does nothing at all meanwhile: it would try each
RECONNECT_MS."""
SILENCE_MS = 10_000  # without a heartbeat while nothing is outstanding: killed (a setting)
SILENT_MS = 2_000  # of it, until readiness says so
TICK_MS = 25  # how often the machine checks the time while it waits for a consumer
BACKLOG_BYTES_MAX = 8 << 20  # of changes that a consumer has not applied; beyond it loads a snapshot
WINDOW_BYTES_MAX = 1 << 20  # of changes in transit to one consumer
NEAR_BYTES_MAX = 64 << 10  # of changes that a joining consumer may lack when writes begin to wait for it

# One of these groups waits for the other where a change requires it; nothing is withheld from other groups.
OTHER_GROUP = {"dns": "edge", "edge": "dns"}

log = logging.getLogger(__name__)


class Leased(NamedTuple):
    """A group of processes that run user code, for which writes do not wait."""

    kinds: frozenset[str]  # covered by a lease: a change of them waits until no older lease is left
    silence_ms: float  # without progress or a heartbeat: killed. User code may compute for long


class Node(NamedTuple):
    """What is agreed with another machine. Its clock is not asked: it counts from before it asks, and this
    one from when it answers, so its own lease always ends first.
    """

    name: str
    lease_ms: float
    awaited: bool = True


NO_LEASES: Mapping[str, Leased] = MappingProxyType({})


class Actions(Protocol):
    """An action for the caller to carry out. A consumer is identified by its number from registration."""

    def send(self, consumer: int, message: Message) -> None: ...

    def make_snapshot(self, consumer: int, kinds: frozenset[str]) -> None:
        """Answer with `snapshot_ready`, unless the consumer is gone by then."""
        ...

    def send_snapshot(self, consumer: int, sequence: int) -> None: ...

    def work(self, consumer: int) -> int | None:
        """What its process has done so far (`feed.stillness`). Called only where `still_ms` is given."""
        ...

    def kill(self, consumer: int) -> None:
        """Answer with `died`, without a limit of time."""
        ...

    def disconnect(self, consumer: int) -> None:
        """Close its connection; the machine has forgotten it."""
        ...

    def applied_upto(self, sequence: int) -> None:
        """Every serving process has applied everything up to here."""
        ...

    def leased_upto(self, sequence: int) -> None:
        """Every process that may admit callers has applied everything up to here."""
        ...


@dataclass(slots=True, eq=False)
class _Consumer:
    id: int
    group: str
    name: str
    kinds: frozenset[str] = frozenset()
    serving: bool = False
    expected: bool = False
    dying: bool = False
    loading: bool = False  # a snapshot is being created, is queued, or is being loaded
    snapshot: int | None = None  # the queued one
    waits_to_serve: bool = False
    serve_at: int | None = None  # writes wait for it already; it gets Serve after this sequence was sent
    applied: int = -1
    sent: int = -1
    told: int = -1  # the last message's sequence; `sent` may be greater where it did not want the changes
    # The sequences of the messages it has not acknowledged, and whether each was a snapshot: what was in
    # transit when it began to load is acknowledged while it loads.
    unacked: deque[tuple[int, bool]] = field(default_factory=deque)
    stalled_ms: float = 0
    withheld_ms: float = 0  # how long its snapshot has been queued
    unheard: bool = False  # it got a Beat and has not answered yet
    stillness: Stillness = field(default_factory=Stillness)  # meanwhile
    terms: Leased | None = None
    leased_until_ms: float = 0
    late: bool = False  # no change of who may call waits for it until it has everything
    node: Node | None = None
    granted_until_ms: float = 0  # a node's lease
    proved: bool = True  # a node was heard, and hears, since its last lease was over

    @property
    def answers(self) -> bool:
        """It was allowed to serve: what it applies is visible to clients."""
        return self.serving and not self.waits_to_serve and self.serve_at is None

    @property
    def may_be_told(self) -> bool:
        return not (self.expected or self.dying)

    @property
    def has_all(self) -> bool:
        """It has acknowledged everything that it was sent."""
        return not self.unacked and not self.loading

    def patience_ms(self, barrier_ms: float, silence_ms: float) -> float | None:
        """The time it may spend without progress in its state; None while nothing is expected from it."""
        if self.node is not None:
            return JOIN_MS if self.unacked and not self.serving and self.may_be_told else None
        if self.terms is not None:
            barrier_ms = silence_ms = self.terms.silence_ms
        if self.dying:
            return None
        if self.expected:
            return EXPECTED_MS if self.terms is None else silence_ms
        if self.unacked:
            return JOIN_MS if self.loading or not self.serving else barrier_ms
        return silence_ms if self.unheard else None

    def wants(self, change: Change) -> bool:
        return not self.kinds or change.kind in self.kinds or change.drops_scope


class Promise:
    """One per control process. Every method returns immediately; the caller then carries out `actions`."""

    def __init__(
        self,
        feed_id: str,
        head: int,
        tail: Sequence[Change],
        actions: Actions,
        *,
        now_ms: Callable[[], float],
        barrier_ms: float = BARRIER_MS,
        silence_ms: float = SILENCE_MS,
        still_ms: float = math.inf,
        leases: Mapping[str, Leased] = NO_LEASES,
        tells: Callable[[int], None] | None = None,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
        own_until_ms: Callable[[], float] = lambda: math.inf,
        stops: bool = False,
    ) -> None:
        """`tail` are the changes up to `head` from which consumers of an earlier control resume.

        `still_ms` is how long a process may do nothing at all, though it should answer a heartbeat. `tells`
        shows each process that admits callers the newest change of who may call that somebody may be told of,
        before anybody is; None where other machines tell, too.
        `own_until_ms` is when the lease of this process itself is over, by the same clock: it grants no node
        a longer one, and where it `stops` nobody here answers without it. `now_ms` is the clock of leases.
        All leases of an earlier control were granted before this object was created.
        """
        self._feed_id = feed_id
        self._actions = actions
        self._now_ms = now_ms
        self._barrier_ms = barrier_ms
        self._silence_ms = silence_ms
        self._still_ms = still_ms
        self._leases, self._tells = leases, tells
        self._leased_kinds = frozenset().union(*(terms.kinds for terms in leases.values()))
        self._backlog_bytes_max = backlog_bytes_max
        self._own_until_ms = own_until_ms
        self._stops = stops
        self._tail = Tail(tail[0].sequence - 1 if tail else head, backlog_bytes_max)
        self._consumers: dict[int, _Consumer] = {}
        # Per group, the sequences that it has to apply before they are sent to the other group.
        self._firsts: dict[str, deque[int]] = {group: deque() for group in OTHER_GROUP}
        self._ticked_ms = 0.0
        self._leased: list[int] = []  # sequences that a lease covers and that some consumer may lack
        self._leased_ms = 0.0  # how long the first of them has been waited for
        self.applied = self.leased = head
        if tells is not None:  # nobody waits any more for what is committed: from here on it may be told
            known = [change.sequence for change in tail if change.kind in self._leased_kinds]
            tells(known[-1] if known else self._tail.head)
        self.committed(tail)

    @property
    def head(self) -> int:
        return self._tail.head

    def holds(self, sequence: int) -> bool:
        """Whether a consumer that loads the state of then can go on from memory."""
        return self._tail.holds(sequence)

    @property
    def recovered(self) -> bool:
        """No unregistered process serves: each expected one has registered again or is dead."""
        return not any(c.expected and c.terms is None for c in self._consumers.values())

    @property
    def watching(self) -> bool:
        """The machine waits for a consumer, or for the end of its own lease, so `tick` has to be called."""
        return self._stops or any(
            consumer.snapshot is not None
            or self._patience_ms(consumer) is not None
            or (consumer.terms is not None and not consumer.may_be_told)
            or consumer.node is not None
            for consumer in self._consumers.values()
        )

    def live(self, group: str) -> list[str]:
        """Names of the consumers of a group that are serving and get every change."""
        now_ms = self._now_ms() if group in self._leases else 0
        return [
            c.name
            for c in self._consumers.values()
            if c.answers
            and c.group == group
            and c.node is None
            and c.may_be_told
            and c.stalled_ms < SILENT_MS
            and (c.terms is None or (now_ms < c.leased_until_ms and not c.late))
        ]

    @property
    def silent(self) -> list[str]:
        """Names of the consumers that should answer a heartbeat and do not."""
        return [
            c.name
            for c in self._consumers.values()
            if c.answers
            and c.terms is None
            and c.node is None
            and (c.dying or (c.has_all and c.stalled_ms >= SILENT_MS))
        ]

    @property
    def behind(self) -> list[tuple[str, int, float]]:
        """Consumers that serve without the newest changes: name, how many are missing, ms without
        progress.
        """
        return [
            (c.name, self.head - c.applied, c.stalled_ms)
            for c in self._consumers.values()
            if c.answers and c.applied < self.head
        ]

    def group_of(self, consumer: int) -> str:
        """Empty for one that has not registered."""
        found = self._consumers.get(consumer)
        return "" if found is None else found.group

    def nodes(self, group: str) -> dict[str, int]:
        """The nodes of a group that have a lease, and what each has applied."""
        found: dict[str, int] = {}
        for c in self._consumers.values():
            if c.node is not None and c.group == group and c.answers and c.may_be_told:
                found[c.node.name] = max(c.applied, found.get(c.node.name, -1))
        return found

    def standings(self, group: str) -> dict[str, tuple[bool, int]]:
        """The nodes of a group that are connected: whether writes wait for each, and how many changes it
        lacks.
        """
        return {
            c.node.name: (c.answers, self.head - c.applied if c.applied >= 0 else self.head)
            for c in self._consumers.values()
            if c.node is not None and c.group == group and c.may_be_told
        }

    def leased_wants(self, after: int, upto: int) -> int:
        """The last of these sequences without which a process may still admit callers; 0 when there is
        none.
        """
        place = bisect_right(self._leased, upto)
        last = self._leased[place - 1] if place else 0
        return last if last > max(after, self.leased) else 0

    def expect(self, consumer: int, group: str) -> None:
        """A process from before a restart of control may be serving."""
        made = _Consumer(consumer, group, "expected", serving=True, expected=True)
        self._consumers[consumer] = self._with_terms(made)
        self._settle()

    def expect_node(self, consumer: int, group: str, node: Node) -> None:
        """A node may have a lease from before a restart of control."""
        made = _Consumer(consumer, group, node.name, serving=True, expected=True, node=node)
        made.granted_until_ms = self._now_ms() + node.lease_ms
        self._consumers[consumer] = made
        self._settle()

    def register(
        self, consumer: int, hello: Register, *, replaces: int | None = None, node: Node | None = None
    ) -> None:
        """A consumer registered. `replaces` is the number of the expected process that it is, or that a node
        had before."""
        old = self._consumers.pop(replaces, None) if replaces is not None else None
        before = self._consumers.get(consumer)
        if before is not None and before.dying:
            return
        serving = hello.serving and (node is None or self._has_lease(before or old))
        made = self._with_terms(
            _Consumer(consumer, hello.group, hello.name, frozenset(hello.kinds), serving=serving, node=node)
        )
        made.waits_to_serve = not serving
        if node is not None:
            self._take_lease(made, node, before or old)
        self._consumers[consumer] = made
        if before is not None:  # its stream broke: its applied sequence stays valid, everything else is reset
            made.serving = made.serving or before.serving
            made.granted_until_ms = max(made.granted_until_ms, before.granted_until_ms)
            made.applied, made.stalled_ms = before.applied, before.stalled_ms
            made.leased_until_ms = max(made.leased_until_ms, before.leased_until_ms)
            self._load(made)
        elif hello.feed_id == self._feed_id and self._tail.holds(hello.after):
            made.applied = made.sent = made.told = hello.after
        else:
            self._load(made)
        self._settle()

    def _has_lease(self, node: _Consumer | None) -> bool:
        """Whether writes have waited for a node ever since it was granted one. What it says of itself may
        have been on its way until that was over.
        """
        return node is not None and node.serving and self._now_ms() < node.granted_until_ms

    def _take_lease(self, made: _Consumer, node: Node, before: _Consumer | None) -> None:
        """A node that says that it has none is believed: it answers from none that was granted earlier."""
        if made.serving:
            granted = before.granted_until_ms if before is not None else 0
            made.granted_until_ms = max(granted, self._now_ms() + node.lease_ms)

    def _with_terms(self, made: _Consumer) -> _Consumer:
        """A consumer that serves already may have a lease of an earlier control."""
        made.terms = self._leases.get(made.group)
        if made.terms is not None and made.serving:
            made.leased_until_ms = self._now_ms() + LEASE_MS
        return made

    def committed(self, changes: Sequence[Change]) -> None:
        """A group of changes is durable. Known ones are skipped."""
        for change in changes:
            if change.sequence <= self._tail.head:
                continue
            if change.first:
                self._firsts[change.first].append(change.sequence)
            if change.kind in self._leased_kinds:
                self._leased.append(change.sequence)
        self._tail.extend(changes)
        self._settle()
        self._tail.trim()  # after it was sent, or skipped

    def acked(self, consumer: int, sequence: int) -> None:
        """A consumer has applied everything up to a sequence that it was sent."""
        found = self._consumers.get(consumer)
        if found is None or found.dying:
            return
        if not any(sequence == told for told, _ in found.unacked):
            log.error("feed consumer %s acknowledged %d, which it was not sent", found.name, sequence)
            self.lost(consumer)
            return
        told = None
        while told != sequence:
            told, loaded = found.unacked.popleft()
            found.loading = found.loading and not loaded
        found.stalled_ms, found.proved = 0, True
        found.late = found.late and not found.has_all
        found.applied = sequence if found.unacked or found.loading else found.sent
        self._settle()
        self._renew(found)

    def renew(self, consumer: int, number: int) -> None:
        """A node asks for its lease, and has counted from before it asked."""
        found = self._consumers.get(consumer)
        if found is None or found.node is None or not found.may_be_told:
            return
        if found.has_all:
            found.proved = True
        self._let_go_if_over(found)
        lease_ms = self._lease_ms(found, found.node)
        if lease_ms:
            found.granted_until_ms = max(found.granted_until_ms, self._now_ms() + lease_ms)
        self._actions.send(found.id, Granted(number, lease_ms))
        self._settle()

    def _lease_ms(self, consumer: _Consumer, node: Node) -> int:
        """What a node may be granted now, 0 for nothing."""
        if not (consumer.answers and self._is_grantable(consumer, node)):
            return 0
        return int(max(0.0, min(node.lease_ms, self._own_until_ms() - self._now_ms())))  # perhaps -inf

    def _is_grantable(self, consumer: _Consumer, node: Node) -> bool:
        """The node itself gives its processes the barrier's time, and the way there takes some, too."""
        return not consumer.loading and consumer.stalled_ms < min(2 * self._barrier_ms, node.lease_ms)

    def _let_go_if_over(self, consumer: _Consumer) -> None:
        """When its lease is over, no write waits for a node: it answers from what it has or not at all, as
        its operator chose, and joins again.
        """
        if consumer.node is None or not consumer.serving or self._now_ms() < consumer.granted_until_ms:
            return
        if not consumer.may_be_told:
            self._forget(consumer)
            return
        log.warning("node %s (%s): its lease is over; no write waits for it", consumer.name, consumer.group)
        consumer.serving, consumer.waits_to_serve, consumer.serve_at = False, True, None
        consumer.proved = False
        consumer.stalled_ms = 0

    def beat(self) -> None:
        """Send a heartbeat to every serving consumer, and renew leases. Called every BEAT_MS."""
        for consumer in self._consumers.values():
            self._ask_if_idle(consumer)

    def _ask_if_idle(self, consumer: _Consumer) -> None:
        """Not to a consumer that owes something else: no lease may be renewed meanwhile."""
        if not (consumer.answers and consumer.may_be_told and consumer.has_all) or consumer.node is not None:
            return
        if consumer.terms is not None:
            consumer.leased_until_ms = self._now_ms() + LEASE_MS
        consumer.unheard = True
        self._actions.send(consumer.id, Beat(int(consumer.leased_until_ms * 1000), consumer.applied))

    def _renew(self, consumer: _Consumer) -> None:
        """Give a lease to a consumer that has just caught up, without waiting for the next beat."""
        if consumer.terms is None or consumer.unheard:
            return
        if consumer.leased_until_ms < self._now_ms() + LEASE_MS - BEAT_MS:
            self._ask_if_idle(consumer)

    def beaten(self, consumer: int) -> None:
        """A consumer answered a heartbeat. This is not progress with what it was sent."""
        found = self._consumers.get(consumer)
        if found is not None and found.may_be_told:
            found.unheard = False
            if not found.unacked:
                found.stalled_ms = 0

    def loads(self, consumer: int) -> None:
        """A consumer made progress with loading its snapshot: its time limit starts again."""
        found = self._consumers.get(consumer)
        if found is not None and found.loading:
            found.stalled_ms = 0

    def snapshot_ready(self, consumer: int, sequence: int) -> None:
        found = self._consumers.get(consumer)
        if found is None or found.dying or not found.loading:
            return
        if sequence < found.told:  # created earlier for another: answers would become older
            self._actions.make_snapshot(consumer, found.kinds)
            return
        found.snapshot = sequence
        self._settle()

    def lost(self, consumer: int) -> None:
        """A connection ended. The process may still serve what it has, so it is killed."""
        found = self._consumers.get(consumer)
        if found is None or found.dying:
            return
        if found.node is not None and (not found.serving or self._now_ms() >= found.granted_until_ms):
            self._forget(found)
        elif found.node is not None:
            found.dying = True
        elif found.serving and found.terms is None:
            self._kill(found, "lost its connection")
        elif self._now_ms() < found.leased_until_ms:
            found.dying = True
        else:
            self._forget(found)
        self._settle()

    def died(self, consumer: int) -> None:
        """The process is dead: it no longer serves."""
        found = self._consumers.get(consumer)
        if found is not None:
            self._forget(found)
            self._settle()

    def tick(self, now_ms: float) -> None:
        """Kill consumers without progress for too long.

        Time is counted in ticks of at most TICK_MS, so a pause of control itself counts against no consumer.
        """
        elapsed_ms = min(now_ms - self._ticked_ms, TICK_MS)
        self._ticked_ms = now_ms
        if self._is_stopped:
            self._stop_all()
        self._stop_waiting_for_late(elapsed_ms)
        for consumer in list(self._consumers.values()):
            if consumer.snapshot is not None:
                consumer.withheld_ms += elapsed_ms
            patience_ms = self._patience_ms(consumer)
            if consumer.node is not None:
                self._watch_node(consumer, elapsed_ms, patience_ms)
            elif patience_ms is not None:
                consumer.stalled_ms += elapsed_ms
                if consumer.stalled_ms >= patience_ms:
                    self._kill(consumer, f"made no progress for {patience_ms:g} ms")
                elif still_ms := self._still_too_long_ms(consumer, elapsed_ms):
                    self._kill(consumer, f"stood still for {still_ms:g} ms")
            elif consumer.terms is not None and not consumer.may_be_told:
                if self._now_ms() >= consumer.leased_until_ms:
                    self._forget(consumer)
        self._settle()

    def _stop_waiting_for_late(self, elapsed_ms: float) -> None:
        if self._tells is None or not self._leased:
            return
        self._leased_ms += elapsed_ms
        if self._leased_ms >= LATE_MS:
            for consumer in self._consumers.values():
                consumer.late = consumer.late or consumer.applied < self._leased[0]

    @property
    def _is_stopped(self) -> bool:
        return self._stops and self._now_ms() >= self._own_until_ms()

    def _stop_all(self) -> None:
        for consumer in list(self._consumers.values()):
            if consumer.serving and not consumer.dying and consumer.terms is None and consumer.node is None:
                self._kill(consumer, "may not answer: this node is cut off from its cluster")

    def _watch_node(self, consumer: _Consumer, elapsed_ms: float, patience_ms: float | None) -> None:
        if consumer.unacked:
            consumer.stalled_ms += elapsed_ms
        self._let_go_if_over(consumer)
        if patience_ms is not None and consumer.stalled_ms >= patience_ms:
            log.warning("node %s (%s) made no progress for %g ms", consumer.name, consumer.group, patience_ms)
            self._forget(consumer)

    def _still_too_long_ms(self, consumer: _Consumer, elapsed_ms: float) -> float:
        """What it was allowed, if it has stood still for longer; else 0.

        From the second heartbeat on that it does not answer; one that has to come back, at once. User code
        may wait as long as it likes.
        """
        if self._still_ms == math.inf or consumer.terms is not None:
            return 0
        if not consumer.expected and (not consumer.unheard or consumer.stalled_ms < BEAT_MS):
            consumer.stillness.over()
            return 0
        allowed_ms = self._still_ms * (EXPECTED_STILL_PART if consumer.expected else 1)
        still_ms = consumer.stillness.look(self._actions.work(consumer.id), elapsed_ms)
        return allowed_ms if still_ms >= allowed_ms else 0

    def _patience_ms(self, consumer: _Consumer) -> float | None:
        return consumer.patience_ms(self._barrier_ms, self._silence_ms)

    def _kill(self, consumer: _Consumer, reason: str) -> None:
        log.warning("feed consumer %s of group %s %s: killed", consumer.name, consumer.group, reason)
        consumer.dying = True
        self._actions.kill(consumer.id)

    def _forget(self, consumer: _Consumer) -> None:
        del self._consumers[consumer.id]
        self._actions.disconnect(consumer.id)

    def _settle(self) -> None:
        """Send what is allowed now, then report the sequence that all have applied."""
        # Changes that a consumer does not want count as applied, and may release them for the other group.
        while any(self._pump(consumer) for consumer in list(self._consumers.values())):
            pass
        applied = self._floor(None)
        if applied != self.applied:
            self.applied = applied
            self._actions.applied_upto(applied)
        if self._leased:
            self._settle_leases(self._now_ms())

    def _settle_leases(self, now_ms: float) -> None:
        holders = [c.applied for c in self._consumers.values() if self._is_waited_for(c, now_ms)]
        leased = min(holders, default=self._tail.head)
        if place := bisect_right(self._leased, leased):
            if self._tells is not None:
                self._tells(self._leased[place - 1])
            del self._leased[:place]
            self._leased_ms = 0.0
        if leased != self.leased:
            self.leased = leased
            self._actions.leased_upto(leased)

    def _is_waited_for(self, consumer: _Consumer, now_ms: float) -> bool:
        """By changes of who may call."""
        if self._tells is None:
            return now_ms < consumer.leased_until_ms
        return consumer.terms is not None and consumer.serving and not (consumer.dying or consumer.late)

    def _floor(self, group: str | None) -> int:
        """The sequence that every serving consumer (of a group) has applied; the head when there is none.

        Without a group: all consumers except those with leases.
        """
        floors = [
            c.applied
            for c in self._consumers.values()
            if c.serving
            and (c.group == group if group else c.terms is None)
            and (c.node is None or c.node.awaited)
        ]
        return min(floors, default=self._tail.head)

    def _gate(self, group: str) -> int:
        """The last sequence that may be sent to a group."""
        other = OTHER_GROUP.get(group)
        if other is None:
            return self._tail.head
        firsts, floor = self._firsts[other], self._floor(other)
        while firsts and firsts[0] <= floor:
            firsts.popleft()
        return firsts[0] - 1 if firsts else self._tail.head

    def _pump(self, consumer: _Consumer) -> bool:
        """Send what a consumer may have; True when its applied sequence grew because it did not want the
        changes.
        """
        if not consumer.may_be_told:
            return False
        if consumer.loading:
            self._offer_snapshot(consumer)
            return False
        tail = self._tail
        if not tail.holds(consumer.applied):
            self._load(consumer)
            return False
        skipped = self._send(consumer)
        backlog_bytes = tail.bytes_between(consumer.applied, tail.head)
        if backlog_bytes > self._backlog_bytes_max:
            self._load(consumer)
        elif self._may_begin(consumer) and backlog_bytes <= NEAR_BYTES_MAX:
            consumer.waits_to_serve, consumer.serving, consumer.serve_at = False, True, tail.head
            if consumer.node is not None:
                consumer.granted_until_ms = self._now_ms() + consumer.node.lease_ms
        if consumer.serve_at is not None:
            self._let_serve(consumer, consumer.serve_at)
        return skipped

    def _may_begin(self, consumer: _Consumer) -> bool:
        """Whether writes may begin to wait for it, when it is near the head."""
        is_here = consumer.node is None and consumer.terms is None
        return consumer.waits_to_serve and consumer.proved and not (is_here and self._is_stopped)

    def _send(self, consumer: _Consumer) -> bool:
        tail, gate = self._tail, self._gate(consumer.group)
        skipped = False
        while consumer.sent < gate and tail.bytes_between(consumer.applied, consumer.sent) < WINDOW_BYTES_MAX:
            batch = tail.slice(consumer.sent, gate, BATCH_BYTES_MAX)
            consumer.sent = batch[-1].sequence
            wanted = tuple(change for change in batch if consumer.wants(change))
            if wanted:
                self._tell(consumer, wanted)
            elif not consumer.unacked:
                consumer.applied = consumer.sent
                skipped = True
        return skipped

    def _tell(self, consumer: _Consumer, changes: tuple[Change, ...]) -> None:
        message = Changes(consumer.told, consumer.sent, changes)
        consumer.told = consumer.sent
        if not consumer.unacked:
            consumer.stalled_ms = 0  # the time without a heartbeat is counted separately
        consumer.unacked.append((consumer.told, False))
        self._actions.send(consumer.id, message)

    def _let_serve(self, consumer: _Consumer, head: int) -> None:
        """Send Serve once it was sent everything up to the head at the moment when writes began to wait for
        it.
        """
        if consumer.loading or min(consumer.sent, self._gate(consumer.group)) < head:
            return
        if consumer.told < head:  # it wanted none of the last changes: inform it that it is up to date
            self._tell(consumer, ())
        consumer.serve_at = None
        self._actions.send(consumer.id, Serve(head))
        self._renew(consumer)

    def _load(self, consumer: _Consumer) -> None:
        consumer.loading, consumer.snapshot, consumer.withheld_ms = True, None, 0
        self._actions.make_snapshot(consumer.id, consumer.kinds)

    def _offer_snapshot(self, consumer: _Consumer) -> None:
        """Send a queued snapshot as soon as that is allowed.

        It contains every change up to its sequence, so for a serving consumer it is withheld like the last of
        them. But only for a limited time: a snapshot may contain both a change that the other group waits for
        and one that has to wait for the other group. Then it is sent regardless of the order.
        """
        sequence = consumer.snapshot
        if sequence is None or sequence > self._tail.head:
            return
        in_turn = sequence <= self._gate(consumer.group) or consumer.withheld_ms >= self._barrier_ms
        if in_turn or not consumer.answers:
            consumer.snapshot = None
            consumer.sent = consumer.told = sequence
            consumer.unacked.append((sequence, True))
            self._actions.send_snapshot(consumer.id, sequence)
