"""The promise under random schedules: writes, acks, joins, deaths and restarts of control in any order.

A model of the consumers knows what each could answer. After every step, whatever order things came in:
no write counts as applied while a process that may serve could answer without it, no process of the second
group shows a change before all of the first do, no process with leases lets a caller in without a change that
was answered, by its lease or by what control shows that it tells, and at the end everybody shows everything.
"""

from random import Random

import pytest

from edgestead.feed.lease import LEASE_MS
from edgestead.feed.promise import BARRIER_MS, OTHER_GROUP, TICK_MS, Leased, Promise
from edgestead.feed.protocol import Beat, Changes, Register, Serve
from edgestead.store.changes import Change

FEED = "the-feed"
LEASES = {"objects": Leased(frozenset({"token"}), silence_ms=20 * BARRIER_MS)}
STEPS = 400
BACKLOG_BYTES = 600  # small, so that falling behind happens


class Process:
    """What a consumer holds: messages that it has not read, what it shows, whether it may serve."""

    def __init__(self, group, kinds):
        self.group, self.kinds = group, kinds
        self.inbox, self.acks = [], []
        self.applied, self.may_serve, self.alive, self.linked, self.cut = -1, False, True, True, False
        self.order_gave_way_upto = -1
        self.upto = -1  # it has everything up to here that it wants
        self.leased_until_ms, self.signs = 0.0, 0
        self.hears = None  # the control that it is connected to

    def hello(self):
        return Register(self.group, "sim", self.kinds, FEED, self.applied, self.may_serve)

    def forget_what_was_said(self):
        self.inbox.clear()
        self.acks.clear()
        self.signs = 0

    def read_one(self, world):
        message = self.inbox.pop(0)
        if isinstance(message, Serve):
            assert self.applied >= message.head
            assert self.group in LEASES or self.applied >= world.head_wanted(self, world.answered), (
                "it would serve older than an answered write"
            )
            self.may_serve = True
            return
        if isinstance(message, Beat):
            self.leased_until_ms = message.until_us / 1000
            self.upto = max(message.upto, self.applied)
            self.signs += 1
            return
        if isinstance(message, Changes):
            assert message.after == self.applied
            for change in message.changes:
                world.check_order(self, change)
            self.applied = message.upto
        else:
            assert message >= self.applied, "a snapshot goes backwards"
            for change in world.log[max(self.applied, 0) : message]:
                world.check_order(self, change)
            self.applied = message
        self.upto = self.applied
        self.acks.append(self.applied)


class World:
    """Plays the actions, the processes and the clock; control can be started again."""

    def __init__(self, seed, *, tells):
        self.tells, self.told = self.tell if tells else None, 0
        self.random = Random(seed)
        self.admitted = 0
        self.waiting, self.cut = set(), set()  # writes about leases: not answered yet, cut off by a restart
        self.log = []
        self.processes = {}
        self.snapshots, self.ready_ms, self.killed = [], {}, set()
        self.numbers = iter(range(1, 10_000))
        self.now_ms = 0.0
        self.answered = 0  # the newest write that some client saw succeed
        self.expected = set()
        self.promise = self.new_promise([])
        self.join("objects")

    def new_promise(self, tail):
        self.cut |= self.waiting
        self.waiting.clear()
        return Promise(
            FEED,
            len(self.log),
            tail,
            self,
            now_ms=lambda: self.now_ms,
            leases=LEASES,
            tells=self.tells,
            backlog_bytes_max=BACKLOG_BYTES,
        )

    def tell(self, sequence):
        assert sequence >= self.told
        self.told = sequence

    def admits(self, process):
        return self.told <= process.upto if self.tells else self.now_ms < process.leased_until_ms

    # Actions.

    def send(self, consumer, message):
        self.processes[consumer].inbox.append(message)

    def make_snapshot(self, consumer, kinds):
        self.snapshots.append((consumer, self.random.choice([len(self.log), max(0, len(self.log) - 1)])))

    def send_snapshot(self, consumer, sequence):
        process = self.processes[consumer]
        process.inbox.append(sequence)
        if self.now_ms - self.ready_ms[consumer] >= BARRIER_MS:
            process.order_gave_way_upto = sequence  # two groups waited for one another

    def kill(self, consumer):
        self.killed.add(consumer)

    def disconnect(self, consumer):
        self.expected.discard(consumer)

    def applied_upto(self, sequence):
        for process in self.serving():
            if process.group not in LEASES:
                assert process.applied >= self.head_wanted(process, sequence), "an answer is older"
        self.answered = max(self.answered, sequence)

    def leased_upto(self, sequence):
        pass

    # Judges.

    def serving(self):
        return [p for p in self.processes.values() if p.alive and p.may_serve]

    def head_wanted(self, process, sequence):
        """The last change up to `sequence` that the process wants at all."""
        wanted = [
            c.sequence for c in self.log[: max(sequence, 0)] if not process.kinds or c.kind in process.kinds
        ]
        return max(wanted, default=0)

    def check_leases(self):
        """Writes are answered when nobody waits for them; then no caller gets in by what was before."""
        self.waiting -= {s for s in self.waiting if not self.promise.leased_wants(s - 1, s)}
        unanswered = self.waiting | self.cut
        revoked = [c.sequence for c in self.log if c.kind == "token" and c.sequence not in unanswered]
        for process in self.serving():
            if process.group in LEASES and self.admits(process):
                late = [sequence for sequence in revoked if sequence > process.applied]
                assert not late, f"a caller gets in without {late}"
                self.admitted += 1

    def check_order(self, process, change):
        if process.group in LEASES:
            return
        if change.sequence <= process.order_gave_way_upto or not process.may_serve:
            return
        if change.first == OTHER_GROUP[process.group]:
            for other in self.serving():
                if other.group == change.first and (not other.kinds or change.kind in other.kinds):
                    assert other.applied >= change.sequence, "the second group shows it first"

    # Steps.

    def step(self):
        choices = [self.write, self.read, self.read, self.ack, self.ack, self.snapshot, self.tick, self.bury]
        choices += [self.sign, self.promise.beat, self.reconnect]
        rare = [self.join, self.stop_or_die, self.restart_control, self.wake, self.lose, self.stand_still]
        self.random.choice(rare if self.random.random() < 0.06 else choices)()
        self.check_leases()

    def write(self):
        group = []
        for _ in range(self.random.randint(1, 3)):
            first = self.random.choice(["", "", "", "edge", "dns"])
            kind = self.random.choice(["name", "rule", "token"])
            group.append(Change(len(self.log) + 1, "zone", kind, "k", bytes(20), first))
            self.log.append(group[-1])
            if kind == "token":
                self.waiting.add(len(self.log))
        self.promise.committed(group)

    def pick(self, condition):
        found = [(n, p) for n, p in self.processes.items() if p.alive and p.linked and condition(p)]
        return self.random.choice(found) if found else None

    def read(self):
        if picked := self.pick(lambda p: p.inbox):
            picked[1].read_one(self)

    def ack(self):
        if picked := self.pick(lambda p: p.acks):
            self.promise.acked(picked[0], picked[1].acks.pop(0))

    def sign(self):
        if picked := self.pick(lambda p: p.signs):
            picked[1].signs -= 1
            self.promise.beaten(picked[0])

    def wake(self):
        """SIGCONT: what it was told meanwhile lies before it, unless whoever said it is gone."""
        stopped = [p for p in self.processes.values() if not p.linked and not p.cut]
        if stopped:
            woken = self.random.choice(stopped)
            woken.linked, woken.cut = woken.hears is self.promise, woken.hears is not self.promise

    def lose(self):
        """A connection ends; who has a lease goes on by it, others get killed for it."""
        if picked := self.pick(lambda p: True):
            consumer, process = picked
            process.linked, process.cut = False, True
            process.forget_what_was_said()
            self.promise.lost(consumer)

    def reconnect(self):
        cut = [n for n, p in self.processes.items() if p.cut and p.alive and n not in self.killed]
        if cut:
            self.register_again(self.random.choice(cut))

    def register_again(self, consumer):
        replaces = consumer if consumer in self.expected else None
        self.expected.discard(consumer)
        process, again = self.processes.pop(consumer), next(self.numbers)
        process.linked, process.cut, process.hears = True, False, self.promise
        self.processes[again] = process
        self.promise.register(again, process.hello(), replaces=replaces)

    def stand_still(self):
        """Control, or the whole machine, is paused."""
        self.now_ms += self.random.choice([TICK_MS, LEASE_MS / 2, LEASE_MS])

    def snapshot(self):
        if self.snapshots:
            consumer, sequence = self.snapshots.pop(0)
            self.ready_ms[consumer] = self.now_ms
            self.promise.snapshot_ready(consumer, sequence)

    def tick(self):
        self.now_ms += TICK_MS
        self.promise.tick(self.now_ms)

    def bury(self):
        for consumer in sorted(self.killed):
            self.die(consumer)
        self.killed.clear()

    def die(self, consumer):
        if process := self.processes.pop(consumer, None):
            process.alive = False
            self.promise.died(consumer)

    def join(self, group=""):
        if len(self.processes) < 6:
            consumer = next(self.numbers)
            group = group or self.random.choice(["dns", "edge", "objects"])
            kinds = ("token",) if group in LEASES else self.random.choice([(), ("name",)])
            self.processes[consumer] = Process(group, kinds)
            self.processes[consumer].hears = self.promise
            self.promise.register(consumer, self.processes[consumer].hello())

    def stop_or_die(self):
        if picked := self.pick(lambda p: True):
            if self.random.random() < 0.5:
                self.die(picked[0])
            else:
                picked[1].linked = False  # SIGSTOP: reads and acknowledges nothing any more

    def restart_control(self):
        """Everything in control's memory is gone; the processes and the log are not."""
        self.bury()
        self.expected.clear()
        self.snapshots.clear()
        keep = max(0, len(self.log) - 100)
        self.promise = self.new_promise(self.log[keep:])
        old, self.processes = self.processes, {}
        back = []
        for process in old.values():
            process.forget_what_was_said()
            consumer = next(self.numbers)
            self.processes[consumer] = process
            self.expected.add(consumer)
            self.promise.expect(consumer, process.group)
            back.append((consumer, process))
        for consumer, process in back:
            if process.linked or process.cut:
                self.register_again(consumer)

    def finish(self):
        """No more faults: whoever is stopped gets killed, everybody else comes to the end."""
        for _ in range(20_000):
            steps = [self.read, self.ack, self.sign, self.snapshot, self.bury, self.tick, self.reconnect]
            self.random.choice(steps)()
            self.check_leases()
            reading = any(p.linked and (p.inbox or p.acks or p.signs) for p in self.processes.values())
            cut = any(p.cut for p in self.processes.values())
            if not (reading or cut or self.snapshots or self.killed or self.promise.watching):
                return
        raise AssertionError("somebody waits for ever")


@pytest.mark.parametrize("tells", [False, True], ids=["leases", "tells"])
@pytest.mark.parametrize("seed", range(150))
def test_no_schedule_breaks_the_promise(seed, tells):
    world = World(seed, tells=tells)
    for _ in range(STEPS):
        world.step()

    world.finish()

    assert world.promise.applied == len(world.log)
    assert world.promise.recovered
    for process in [p for p in world.processes.values() if p.linked or p.group not in LEASES]:
        assert process.may_serve
        assert process.applied >= world.head_wanted(process, len(world.log))


@pytest.mark.parametrize("tells", [False, True], ids=["leases", "tells"])
def test_callers_are_let_in_under_these_schedules(tells):
    worlds = [World(seed, tells=tells) for seed in range(10)]
    for world in worlds:
        for _ in range(STEPS):
            world.step()

    assert sum(world.admitted for world in worlds) > STEPS
