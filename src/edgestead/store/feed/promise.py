"""The promise as a state machine: a write answers when every process that serves has applied it.

Owns  who has which change, what is withheld from whom, who joins, who is too slow, how far all have come.
Asks  `Actions` to send, to make a snapshot, to kill.
Tells `Actions.applied_upto` how far every serving process is.
Not   sockets, processes, clocks: time comes in, and so do deaths.

    expected ──▶ live ──▶ dying ──▶ gone       registered before control restarted, back, too slow, dead
    joining ───▶ live                           loads aside; writes do not wait for it yet

`serving` is what writes wait for: a live or expected consumer until it is dead, however it dies. A consumer
that falls behind by more than BACKLOG_BYTES_MAX loads a snapshot and stays live meanwhile.
docs/design/0003-feed.md has the argument why no answer is ever older than an acknowledged write.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edgestead.store.changes import Change
from edgestead.store.feed.protocol import BATCH_BYTES_MAX, Changes, Message, Register, Serve
from edgestead.store.feed.tail import Tail

BARRIER_MS = 250  # without progress while something is outstanding: killed (a setting)
JOIN_MS = 30_000  # the same for loading a snapshot and for catching up with the head
EXPECTED_MS = 2_000  # for a process from before a restart of control to come back
TICK_MS = 25  # how often the machine looks at the time while somebody is waited for
BACKLOG_BYTES_MAX = 8 << 20  # of changes that a consumer has not applied; then it loads a snapshot
WINDOW_BYTES_MAX = 1 << 20  # of changes on the way to one consumer
NEAR_BYTES_MAX = 64 << 10  # of changes that a joining consumer may lack when writes begin to wait for it

# Each group waits for the other where a change says so; other groups are neither withheld from nor killed.
OTHER_GROUP = {"dns": "edge", "edge": "dns"}

log = logging.getLogger(__name__)


class Actions(Protocol):
    """What the machine needs done. A consumer is named by the number it was registered under."""

    def send(self, consumer: int, message: Message) -> None: ...

    def make_snapshot(self, consumer: int, kinds: frozenset[str]) -> None:
        """Answered by `snapshot_ready`, unless the consumer is gone by then."""
        ...

    def send_snapshot(self, consumer: int, sequence: int) -> None: ...

    def kill(self, consumer: int) -> None:
        """Answered by `died`, whenever that is."""
        ...

    def disconnect(self, consumer: int) -> None:
        """Close its connection; the machine has forgotten it."""
        ...

    def applied_upto(self, sequence: int) -> None:
        """Every serving process has applied everything up to here."""
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
    loading: bool = False  # a snapshot is being made, waits for its turn, or is being loaded
    snapshot: int | None = None  # the one that waits for its turn
    waits_to_serve: bool = False
    serve_at: int | None = None  # writes wait for it already; it hears so when this was sent
    applied: int = -1
    sent: int = -1
    told: int = -1  # the last message's sequence; `sent` may be further where it wanted nothing
    # The sequences of the messages it has not acknowledged, and whether each was a snapshot: what was on the
    # way when it began to load is acknowledged while it loads.
    unacked: deque[tuple[int, bool]] = field(default_factory=deque)
    stalled_ms: float = 0
    withheld_ms: float = 0  # how long its snapshot has waited for its turn

    @property
    def answers(self) -> bool:
        """It knows that it may serve: what it applies is seen."""
        return self.serving and not self.waits_to_serve and self.serve_at is None

    def patience_ms(self, barrier_ms: float) -> float | None:
        """What it is allowed without progress in its state; None while nothing is expected from it."""
        if self.dying:
            return None
        if self.expected:
            return EXPECTED_MS
        if not self.unacked:
            return None
        return JOIN_MS if self.loading or not self.serving else barrier_ms

    def wants(self, change: Change) -> bool:
        return not self.kinds or change.kind in self.kinds or change.drops_scope


class Promise:
    """One per control process. Every method returns at once; what follows is done by `actions`."""

    def __init__(
        self,
        feed_id: str,
        head: int,
        tail: Sequence[Change],
        actions: Actions,
        *,
        barrier_ms: float = BARRIER_MS,
        backlog_bytes_max: int = BACKLOG_BYTES_MAX,
    ) -> None:
        """`tail` are the changes up to `head` from which consumers of an earlier control resume."""
        self._feed_id = feed_id
        self._actions = actions
        self._barrier_ms = barrier_ms
        self._backlog_bytes_max = backlog_bytes_max
        self._tail = Tail(tail[0].sequence - 1 if tail else head, backlog_bytes_max)
        self._consumers: dict[int, _Consumer] = {}
        # Per group, the sequences that it has to apply before the other one hears of them.
        self._firsts: dict[str, deque[int]] = {group: deque() for group in OTHER_GROUP}
        self._ticked_ms = 0.0
        self.applied = head
        self.committed(tail)

    @property
    def head(self) -> int:
        return self._tail.head

    @property
    def recovered(self) -> bool:
        """Nobody serves unheard: each expected process has registered again or is dead."""
        return not any(consumer.expected for consumer in self._consumers.values())

    @property
    def watching(self) -> bool:
        """Somebody is waited for, so `tick` has to be called."""
        return any(
            consumer.snapshot is not None or consumer.patience_ms(self._barrier_ms) is not None
            for consumer in self._consumers.values()
        )

    def live(self, group: str) -> int:
        """How many consumers of a group serve and hear of every change."""
        return sum(
            c.answers and c.group == group and not (c.expected or c.dying) for c in self._consumers.values()
        )

    def expect(self, consumer: int, group: str) -> None:
        """A process from before a restart of control may be serving."""
        self._consumers[consumer] = _Consumer(consumer, group, "expected", serving=True, expected=True)
        self._settle()

    def register(self, consumer: int, hello: Register, *, replaces: int | None = None) -> None:
        """A consumer said hello. `replaces` is the expected process that it turned out to be."""
        if replaces is not None:
            self._consumers.pop(replaces, None)
        before = self._consumers.get(consumer)
        if before is not None and before.dying:
            return
        made = _Consumer(consumer, hello.group, hello.name, frozenset(hello.kinds), serving=hello.serving)
        made.waits_to_serve = not hello.serving
        self._consumers[consumer] = made
        if before is not None:  # its stream broke: what it has applied is still true, the rest starts anew
            made.serving = made.serving or before.serving
            made.applied, made.stalled_ms = before.applied, before.stalled_ms
            self._load(made)
        elif hello.feed_id == self._feed_id and self._tail.holds(hello.after):
            made.applied = made.sent = made.told = hello.after
        else:
            self._load(made)
        self._settle()

    def committed(self, changes: Sequence[Change]) -> None:
        """A group is durable. Changes that are known already are skipped."""
        for change in changes:
            if change.first and change.sequence > self._tail.head:
                self._firsts[change.first].append(change.sequence)
        self._tail.extend(changes)
        self._settle()
        self._tail.trim()  # after it was sent, or skipped

    def acked(self, consumer: int, sequence: int) -> None:
        """A consumer has applied everything up to a sequence that it was told."""
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
        found.stalled_ms = 0
        found.applied = sequence if found.unacked or found.loading else found.sent
        self._settle()

    def snapshot_ready(self, consumer: int, sequence: int) -> None:
        found = self._consumers.get(consumer)
        if found is None or found.dying or not found.loading:
            return
        if sequence < found.told:  # made for somebody else, earlier: it would answer older than before
            self._actions.make_snapshot(consumer, found.kinds)
            return
        found.snapshot = sequence
        self._settle()

    def lost(self, consumer: int) -> None:
        """A connection ended. The process may go on serving what it has, so it has to die."""
        found = self._consumers.get(consumer)
        if found is None or found.dying:
            return
        if found.serving and found.group in OTHER_GROUP:
            self._kill(found, "lost its connection")
        else:
            self._forget(found)
        self._settle()

    def died(self, consumer: int) -> None:
        """The process is gone: nothing answers from it any more."""
        found = self._consumers.get(consumer)
        if found is not None:
            self._forget(found)
            self._settle()

    def tick(self, now_ms: float) -> None:
        """Kill who made no progress for too long.

        Time is counted in ticks of at most TICK_MS: while control itself stood still, nobody is blamed.
        """
        elapsed_ms = min(now_ms - self._ticked_ms, TICK_MS)
        self._ticked_ms = now_ms
        for consumer in list(self._consumers.values()):
            if consumer.snapshot is not None:
                consumer.withheld_ms += elapsed_ms
            patience_ms = consumer.patience_ms(self._barrier_ms)
            if patience_ms is None:
                continue
            consumer.stalled_ms += elapsed_ms
            if consumer.stalled_ms < patience_ms:
                continue
            if consumer.group in OTHER_GROUP:
                self._kill(consumer, f"made no progress for {patience_ms:g} ms")
            elif consumer.expected:
                self._forget(consumer)
        self._settle()

    def _kill(self, consumer: _Consumer, reason: str) -> None:
        log.warning("feed consumer %s of group %s %s: killed", consumer.name, consumer.group, reason)
        consumer.dying = True
        self._actions.kill(consumer.id)

    def _forget(self, consumer: _Consumer) -> None:
        del self._consumers[consumer.id]
        self._actions.disconnect(consumer.id)

    def _settle(self) -> None:
        """Send whatever may go now, then tell how far everybody is."""
        # Skipping what a consumer does not want counts as applied and may open the other group's gate.
        while any(self._pump(consumer) for consumer in list(self._consumers.values())):
            pass
        applied = self._floor(None)
        if applied != self.applied:
            self.applied = applied
            self._actions.applied_upto(applied)

    def _floor(self, group: str | None) -> int:
        """What every serving consumer (of a group) has applied; the head when there is none."""
        floors = [c.applied for c in self._consumers.values() if c.serving and group in (None, c.group)]
        return min(floors, default=self._tail.head)

    def _gate(self, group: str) -> int:
        """How far a group may hear."""
        other = OTHER_GROUP.get(group)
        if other is None:
            return self._tail.head
        firsts, floor = self._firsts[other], self._floor(other)
        while firsts and firsts[0] <= floor:
            firsts.popleft()
        return firsts[0] - 1 if firsts else self._tail.head

    def _pump(self, consumer: _Consumer) -> bool:
        """Send what a consumer may have; True when it has applied more by not wanting it."""
        if consumer.expected or consumer.dying:
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
        elif consumer.waits_to_serve and backlog_bytes <= NEAR_BYTES_MAX:
            consumer.waits_to_serve, consumer.serving, consumer.serve_at = False, True, tail.head
        if consumer.serve_at is not None:
            self._let_serve(consumer, consumer.serve_at)
        return skipped

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
        consumer.unacked.append((consumer.told, False))
        self._actions.send(consumer.id, message)

    def _let_serve(self, consumer: _Consumer, head: int) -> None:
        """Say so as soon as it was sent everything up to the head of the moment when writes began to wait."""
        if consumer.loading or min(consumer.sent, self._gate(consumer.group)) < head:
            return
        if consumer.told < head:  # it wanted none of the last changes: say that it misses nothing
            self._tell(consumer, ())
        consumer.serve_at = None
        self._actions.send(consumer.id, Serve(head))

    def _load(self, consumer: _Consumer) -> None:
        consumer.loading, consumer.snapshot, consumer.withheld_ms = True, None, 0
        self._actions.make_snapshot(consumer.id, consumer.kinds)

    def _offer_snapshot(self, consumer: _Consumer) -> None:
        """Send a snapshot as soon as its turn has come.

        It holds every change up to its sequence, so for a consumer that answers it is withheld like the last
        of them. But not for ever: a snapshot may hold a change that the other group waits for together with
        one that has to wait for the other group. Then order gives way.
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
