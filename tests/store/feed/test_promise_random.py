"""The promise under random schedules: writes, acks, joins, deaths and restarts of control in any order.

A model of the consumers knows what each could answer. After every step, whatever order things came in:
no write counts as applied while a process that may serve could answer without it, no process of the second
group shows a change before all of the first do, and at the end everybody shows everything.
"""

from random import Random

import pytest

from edgestead.store.changes import Change
from edgestead.store.feed.promise import BARRIER_MS, OTHER_GROUP, TICK_MS, Promise
from edgestead.store.feed.protocol import Changes, Register, Serve

FEED = "the-feed"
STEPS = 400
BACKLOG_BYTES = 600  # small, so that falling behind happens


class Process:
    """What a consumer holds: messages that it has not read, what it shows, whether it may serve."""

    def __init__(self, group, kinds):
        self.group, self.kinds = group, kinds
        self.inbox, self.acks = [], []
        self.applied, self.may_serve, self.alive, self.linked = -1, False, True, True
        self.order_gave_way_upto = -1

    def hello(self):
        return Register(self.group, "sim", self.kinds, FEED, self.applied, self.may_serve)

    def read_one(self, world):
        message = self.inbox.pop(0)
        if isinstance(message, Serve):
            assert self.applied >= message.head
            assert self.applied >= world.head_wanted(self, world.answered), (
                "it would serve older than an answered write"
            )
            self.may_serve = True
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
        self.acks.append(self.applied)


class World:
    """Plays the actions, the processes and the clock; control can be started again."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.log = []
        self.processes = {}
        self.snapshots, self.ready_ms, self.killed = [], {}, set()
        self.numbers = iter(range(1, 10_000))
        self.now_ms = 0.0
        self.answered = 0  # the newest write that some client saw succeed
        self.promise = Promise(FEED, 0, [], self, backlog_bytes_max=BACKLOG_BYTES)

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
        pass

    def applied_upto(self, sequence):
        for process in self.serving():
            assert process.applied >= self.head_wanted(process, sequence), "an answer is older"
        self.answered = max(self.answered, sequence)

    # Judges.

    def serving(self):
        return [p for p in self.processes.values() if p.alive and p.may_serve]

    def head_wanted(self, process, sequence):
        """The last change up to `sequence` that the process wants at all."""
        wanted = [
            c.sequence for c in self.log[: max(sequence, 0)] if not process.kinds or c.kind in process.kinds
        ]
        return max(wanted, default=0)

    def check_order(self, process, change):
        if change.sequence <= process.order_gave_way_upto or not process.may_serve:
            return
        if change.first == OTHER_GROUP[process.group]:
            for other in self.serving():
                if other.group == change.first and (not other.kinds or change.kind in other.kinds):
                    assert other.applied >= change.sequence, "the second group shows it first"

    # Steps.

    def step(self):
        choices = [self.write, self.read, self.read, self.ack, self.ack, self.snapshot, self.tick, self.bury]
        rare = [self.join, self.stop_or_die, self.restart_control]
        self.random.choice(rare if self.random.random() < 0.04 else choices)()

    def write(self):
        group = []
        for _ in range(self.random.randint(1, 3)):
            first = self.random.choice(["", "", "", "edge", "dns"])
            kind = self.random.choice(["name", "rule"])
            group.append(Change(len(self.log) + 1, "zone", kind, "k", bytes(20), first))
            self.log.append(group[-1])
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

    def join(self):
        if len(self.processes) < 5:
            consumer = next(self.numbers)
            kinds = self.random.choice([(), ("name",)])
            self.processes[consumer] = Process(self.random.choice(["dns", "edge"]), kinds)
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
        self.snapshots.clear()
        keep = max(0, len(self.log) - 100)
        self.promise = Promise(FEED, len(self.log), self.log[keep:], self, backlog_bytes_max=BACKLOG_BYTES)
        old, self.processes = self.processes, {}
        back = []
        for process in old.values():
            process.inbox.clear()
            process.acks.clear()
            consumer = next(self.numbers)
            self.processes[consumer] = process
            self.promise.expect(consumer, process.group)
            back.append((consumer, process))
        for consumer, process in back:
            if process.linked:
                again = next(self.numbers)
                self.processes[again] = self.processes.pop(consumer)
                self.promise.register(again, process.hello(), replaces=consumer)

    def finish(self):
        """No more faults: whoever is stopped gets killed, everybody else comes to the end."""
        for _ in range(20_000):
            self.random.choice([self.read, self.ack, self.snapshot, self.bury, self.tick])()
            reading = any(p.inbox or p.acks for p in self.processes.values())
            if not (reading or self.snapshots or self.killed or self.promise.watching):
                return
        raise AssertionError("somebody waits for ever")


@pytest.mark.parametrize("seed", range(150))
def test_no_schedule_breaks_the_promise(seed):
    world = World(seed)
    for _ in range(STEPS):
        world.step()

    world.finish()

    assert world.promise.applied == len(world.log)
    assert world.promise.recovered
    for process in world.processes.values():
        assert process.may_serve
        assert process.applied >= world.head_wanted(process, len(world.log))
