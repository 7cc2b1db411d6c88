"""Nodes and control under random schedules: cuts in one or both directions, pauses, deaths, restarts.

Control's `Promise` and each node's `Relay` are the real ones; connections, files, processes and time are
invented. After every step: no process answers older than an answered write unless its node serves stale by
its policy and knows that it does; and at the end, without faults, everybody shows everything.
"""

import math
from random import Random

import pytest

from edgestead.feed.follower import Position
from edgestead.feed.promise import BARRIER_MS, TICK_MS, Node, Promise
from edgestead.feed.protocol import (
    Ack,
    Changes,
    Hello,
    Loading,
    ProtocolError,
    Register,
    Renew,
    Snapshot,
    SnapshotPart,
    frame,
    frame_changes,
)
from edgestead.feed.relay import APART_MS, Relay
from edgestead.store.changes import Change

FEED, LEASE_MS, STEPS = "the-feed", 1_500, 1_500
BACKLOG_BYTES = 900  # small, so that falling behind happens
STALE_MS = 20_000
SCHEDULES, PIECE = 1_000, 100  # each is 14 ms of a core
SCHEDULES_LONG = 50_000


class Link:
    """One connection. What is sent in a direction that is cut waits, as it does in TCP."""

    def __init__(self):
        self.up, self.down = [], []
        self.cut_up = self.cut_down = False
        self.consumer = None  # of control, until it sees the end
        self.order = (0, 0)
        self.relay_sees_end = False


class Machine:
    """A node: its relay, its file, the processes that may answer. Plays the relay's actions."""

    def __init__(self, world, name, *, stops, kinds):
        self.world, self.name, self.stops, self.kinds = world, name, stops, kinds
        self.file = []  # [i]: the sequence of control that change i + 1 of the file came with
        self.position = None
        self.processes = []  # each: how much of the file it shows
        self.before = {}  # what those that show nothing of a new file show of the one before it
        self.stuck = set()
        self.work = []  # of the thread that writes
        self.link, self.links = None, []
        self.asleep, self.dying = False, False
        self.start()

    def start(self):
        """The relay begins, again: what it knew is gone, the file and the processes are not."""
        self.close_link()
        self.work.clear()
        self.dying, self.replacing = False, False
        if self.stops:
            self.processes.clear()
        self.is_open = bool(self.processes)
        self.relay = Relay(
            self,
            group="dns",
            name=self.name,
            kinds=self.kinds,
            position=self.position,
            stops=self.stops,
            stale_ms=STALE_MS,
            now_ms=lambda: self.world.now_ms,
            open_at=len(self.file) if self.is_open else None,
            began_us=next(self.world.numbers),
        )

    def send(self, message):
        if self.link is not None:
            self.link.up.append(message)

    def store(self, changes, position):
        self.work.append((position, len(changes), False))

    def begin(self):
        pass

    def load(self, changes):
        pass

    def swap(self, position):
        self.replacing = True
        self.work.append((position, 0, True))

    def open(self):
        self.is_open = True
        # Who answers from before is expected; others begin with all of the file.
        self.processes = self.processes or [len(self.file)] * self.world.random.randint(0, 2)
        self.tell_applied()

    def shut(self):
        self.is_open, self.dying = False, True

    def finish_shut(self):
        if self.dying:
            self.dying = False
            self.processes.clear()
            self.relay.is_shut()

    def write(self):
        if not self.work:
            return
        position, count, is_new_file = self.work.pop(0)
        if is_new_file:
            self.before = {one: self.shown(shows, one) for one, shows in enumerate(self.processes)}
            self.file = [position.sequence]
            self.processes = [0 for _ in self.processes]
            self.replacing = False
        else:
            self.file += [position.sequence] * count
        self.position = position
        self.relay.stored(len(self.file))
        self.tell_applied()

    def apply(self):
        if self.processes:
            one = self.world.random.randrange(len(self.processes))
            if one not in self.stuck and self.processes[one] < len(self.file):
                self.processes[one] += 1
        self.tell_applied()

    def bury_stuck(self):
        """The publisher here kills who makes no progress; the next one begins with all of the file."""
        kept = [one for one in range(len(self.processes)) if one not in self.stuck]
        self.before = {new: self.before.get(old, -1) for new, old in enumerate(kept)}
        self.processes = [self.processes[one] for one in kept]
        self.stuck.clear()
        self.tell_applied()

    def tell_applied(self):
        if self.is_open and not self.replacing:
            self.relay.applied_upto(min(self.processes, default=len(self.file)))

    def shown(self, process, number):
        """The sequence of control that a process shows all of."""
        if process == len(self.file):
            return self.position.sequence if self.position else -1
        return self.file[process] - 1 if process else self.before.get(number, -1)

    def connect(self):
        if self.link is None and self.relay.may_connect and not self.dying:
            self.link = Link()
            self.links.append(self.link)
            self.relay.connected()

    def close_link(self):
        if self.link is not None:
            self.link.relay_sees_end = True
            self.link = None
            self.relay.disconnected()


class World:
    def __init__(self, seed):
        self.random = Random(seed)
        self.now_ms, self.log, self.answered = 0.0, [], 0
        self.numbers, self.consumers, self.snapshots = iter(range(1, 100_000)), {}, []
        self.stale_seen = self.live_seen = self.answers_seen = 0
        self.machines = []
        for name in ("a", "b", "c"):
            kinds = self.random.choice([("name",), ("name", "rule")])
            self.machines.append(Machine(self, name, stops=self.random.random() < 0.5, kinds=kinds))
        self.nodes = {
            m.name: Node(m.name, LEASE_MS, awaited=m.name != "c" or seed % 3 > 0) for m in self.machines
        }
        self.registered, self.orders = {}, {}
        self.promise = self.new_promise(())

    def new_promise(self, expected):
        made = Promise(
            FEED,
            len(self.log),
            self.log[max(0, len(self.log) - 60) :],
            self,
            now_ms=lambda: self.now_ms,
            backlog_bytes_max=BACKLOG_BYTES,
        )
        for node in expected:
            self.registered[node.name] = number = next(self.numbers)
            made.expect_node(number, "dns", node)
        return made

    # Control's actions.

    def send(self, consumer, message):
        if (link := self.consumers.get(consumer)) is not None:
            link.down.append(message)

    def make_snapshot(self, consumer, kinds):
        self.snapshots.append(consumer)

    def send_snapshot(self, consumer, sequence):
        octets = frame_changes([Change(sequence, "z", "name", "k", b"x")])
        for message in (Snapshot(FEED, sequence), SnapshotPart(octets, False), SnapshotPart(b"", True)):
            self.send(consumer, message)

    def kill(self, consumer):
        raise AssertionError("a node cannot be killed from elsewhere")

    def disconnect(self, consumer):
        if (link := self.consumers.pop(consumer, None)) is not None:
            link.consumer = None
        self.registered = {name: one for name, one in self.registered.items() if one != consumer}

    def applied_upto(self, sequence):
        self.answered = max(self.answered, sequence)

    def leased_upto(self, sequence):
        pass

    # The judge.

    def wanted(self, machine):
        found = [c.sequence for c in self.log[: self.answered] if c.kind in machine.kinds]
        return max(found, default=0)

    def check(self):
        for machine in self.machines:
            awaited = self.nodes[machine.name].awaited
            for number, process in enumerate(machine.processes):
                shown = machine.shown(process, number)
                if machine.asleep or not awaited:
                    continue
                self.answers_seen += 1
                is_old = shown < self.wanted(machine)
                live = machine.relay.is_live
                self.live_seen += live
                if is_old and not machine.stops and not live:
                    self.stale_seen += 1
                    continue
                assert not is_old, f"{machine.name} answers {shown} after {self.answered}"

    # Steps.

    def step(self):
        often = [
            self.write,
            self.up,
            self.up,
            self.down,
            self.down,
            self.file,
            self.apply,
            self.apply,
            self.tick,
        ]
        often += [self.tick, self.connect, self.snapshot, self.bury]
        rare = [
            self.cut,
            self.heal,
            self.end,
            self.sleep,
            self.wake,
            self.restart_relay,
            self.restart_control,
        ]
        rare += [self.get_stuck, self.heal, self.wake, self.long_pause]
        self.random.choice(rare if self.random.random() < 0.04 else often)()
        self.check()

    def machine(self):
        awake = [m for m in self.machines if not m.asleep]
        return self.random.choice(awake or self.machines[:1])

    def write(self):
        if self.promise.recovered:
            self.log.append(
                Change(len(self.log) + 1, "z", self.random.choice(["name", "rule"]), "k", bytes(20))
            )
            self.promise.committed(self.log[-1:])

    def up(self):
        machine = self.random.choice(self.machines)
        for link in machine.links:
            if link.up and not link.cut_up:
                self.heard(machine, link, link.up.pop(0))

    def heard(self, machine, link, message):
        if isinstance(message, Hello):
            link.order = (message.began_us, message.number)
            link.consumer = next(self.numbers)
            self.consumers[link.consumer] = link
        elif link.consumer not in self.consumers:
            return  # control has closed it, or began again
        elif isinstance(message, Register):
            before = self.registered.get(machine.name)
            if self.orders.get(before, (0, 0)) > link.order:
                self.lose(link)  # what it said was on its way for long
                return
            self.orders[link.consumer] = link.order
            self.registered[machine.name] = link.consumer
            self.promise.register(link.consumer, message, replaces=before, node=self.nodes[machine.name])
            if before is not None:
                self.disconnect(before)
        elif isinstance(message, Ack):
            self.promise.acked(link.consumer, message.sequence)
        elif isinstance(message, Renew):
            self.promise.renew(link.consumer, message.number)
        else:
            assert isinstance(message, Loading)

    def down(self):
        machine = self.machine()
        link = machine.link
        if link is not None and link.down and not link.cut_down and not machine.asleep:
            try:
                machine.relay.received(frame(link.down.pop(0))[4:])
            except ProtocolError:
                machine.close_link()

    def file(self):
        machine = self.machine()
        if not machine.asleep:
            machine.write()

    def apply(self):
        machine = self.machine()
        if not machine.asleep:
            machine.apply()

    def bury(self):
        machine = self.machine()
        if not machine.asleep:
            machine.bury_stuck()

    def connect(self):
        machine = self.machine()
        if not machine.asleep:
            machine.connect()

    def tick(self, ms=TICK_MS):
        """Whoever is awake looks at the clock; processes that have to die do so within the guard."""
        self.now_ms += ms
        for machine in self.machines:
            if not machine.asleep:
                machine.relay.tick()
                machine.finish_shut()
        self.promise.tick(self.now_ms)
        if self.random.random() < 0.1:
            self.promise.beat()

    def long_pause(self):
        """Of control alone: nobody is to blame for it, and every lease of the others may end."""
        for _ in range(self.random.randint(1, 2 * LEASE_MS // 100)):
            self.now_ms += 100
            for machine in self.machines:
                if not machine.asleep:
                    machine.relay.tick()
                    machine.finish_shut()
        self.promise.tick(self.now_ms)

    def snapshot(self):
        if self.snapshots:
            consumer = self.snapshots.pop(0)
            self.promise.snapshot_ready(consumer, max(0, len(self.log) - self.random.randint(0, 1)))

    def cut(self):
        machine = self.machine()
        for link in machine.links:
            both = self.random.random() < 0.4
            up = self.random.random() < 0.5
            link.cut_up |= up or both
            link.cut_down |= not up or both

    def heal(self):
        for link in self.random.choice(self.machines).links:
            link.cut_up = link.cut_down = False

    def end(self):
        """One end finds out that the connection is over; the other may take long."""
        machine = self.machine()
        if self.random.random() < 0.5:
            machine.close_link()
        elif links := [link for link in machine.links if link.consumer is not None]:
            self.lose(self.random.choice(links))

    def lose(self, link):
        consumer, link.consumer = link.consumer, None
        if consumer in self.consumers:
            del self.consumers[consumer]
            self.promise.lost(consumer)

    def sleep(self):
        self.machine().asleep = True

    def wake(self):
        for machine in self.machines:
            if machine.asleep:
                machine.asleep = False
                machine.relay.tick()
                machine.finish_shut()

    def restart_relay(self):
        machine = self.machine()
        if not machine.asleep:
            machine.start()

    def get_stuck(self):
        machine = self.machine()
        if machine.processes:
            machine.stuck.add(self.random.randrange(len(machine.processes)))

    def restart_control(self):
        """Everything in control's memory is gone; it knows which nodes there are."""
        for machine in self.machines:
            for link in machine.links:
                link.consumer = None
                link.up.clear()
        self.consumers.clear()
        self.registered.clear()
        self.snapshots.clear()
        self.promise = self.new_promise(node for node in self.nodes.values() if node.awaited)

    def finish(self):
        """No more faults, and dead connections are noticed."""
        self.wake()
        steps = [self.up, self.down, self.file, self.apply, self.bury, self.tick, self.connect, self.snapshot]
        for turn in range(40_000):
            self.random.choice([*steps, self.notice])()
            self.check()
            if turn % 100 == 0 and self.promise.recovered and self.promise.applied == len(self.log):
                if all(map(self.is_done, self.machines)) and len(self.promise.nodes("dns")) == 3:
                    return
        raise AssertionError("somebody waits for ever")

    def notice(self):
        """Each end sees that the other has closed, or is silent."""
        for machine in self.machines:
            for link in machine.links:
                link.cut_up = link.cut_down = False
                if link is machine.link and link.consumer is None and Hello not in map(type, link.up):
                    machine.close_link()
                if link is not machine.link and link.consumer is not None:
                    self.lose(link)

    def is_done(self, machine):
        shown = [machine.shown(process, number) for number, process in enumerate(machine.processes)]
        everything = max((c.sequence for c in self.log if c.kind in machine.kinds), default=0)
        return (
            machine.relay.is_open and machine.relay.is_leased and min(shown, default=everything) >= everything
        )


def played(seed):
    world = World(seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.finish()
    except Exception as error:
        error.add_note(f"schedule {seed}")
        raise
    return world


@pytest.mark.parametrize("first", range(0, SCHEDULES, PIECE))
def test_no_schedule_makes_a_node_answer_older(first):
    for seed in range(first, first + PIECE):
        played(seed)


@pytest.mark.long
def test_many_more_schedules():
    for seed in range(SCHEDULES, SCHEDULES_LONG):
        played(seed)


def test_these_schedules_meet_leases_and_stale_answers():
    worlds = [played(seed) for seed in range(10)]

    assert sum(world.live_seen for world in worlds) > STEPS
    assert sum(world.stale_seen for world in worlds) > 10
    assert sum(len(world.log) for world in worlds) > 300


def lone(stops=False):
    """One node that is connected and live, and nothing else happens."""
    world = World(1)
    machine = world.machines[0]
    world.machines = [machine]
    machine.stops = stops
    world.nodes = {"a": Node("a", LEASE_MS)}
    machine.start()
    run(world, machine, lambda: machine.relay.is_open)
    return world, machine


def run(world, machine, until=lambda: False, ms=60_000):
    """Everything that is possible happens, tick by tick."""
    for _ in range(ms // TICK_MS):
        for _ in range(4):
            machine.connect()
            world.up()
            world.snapshot()
            world.down()
            machine.write()
            machine.apply()
        world.tick()
        world.check()
        if until():
            return
    assert until() is False or until() is None, "it does not come to that"


@pytest.mark.parametrize("stops", [False, True])
def test_a_write_waits_for_a_cut_off_node_for_one_lease_and_later_ones_do_not(stops):
    world, machine = lone(stops)
    machine.link.cut_up = machine.link.cut_down = True

    began = world.now_ms
    world.log.append(Change(len(world.log) + 1, "z", "name", "k", b"new"))
    world.promise.committed(world.log[-1:])
    run(world, machine, lambda: world.answered == len(world.log))
    assert world.now_ms - began <= LEASE_MS + 2 * BARRIER_MS + TICK_MS
    assert bool(machine.processes) is not stops or not machine.processes

    world.log.append(Change(len(world.log) + 1, "z", "name", "k", b"newer"))
    world.promise.committed(world.log[-1:])
    assert world.answered == len(world.log)


def test_what_a_node_said_of_its_lease_counts_for_nothing_when_that_is_over():
    """It was on its way while the network was cut; a write was answered without the node meanwhile."""
    world, machine = lone(stops=True)
    machine.close_link()
    machine.connect()
    world.heard(machine, machine.link, machine.link.up.pop(0))  # its Hello; its Register waits
    assert machine.link.up[0].serving
    for _ in range(2 * LEASE_MS // TICK_MS):
        world.tick()
    world.log.append(Change(len(world.log) + 1, "z", "name", "k", bytes(20)))
    world.promise.committed(world.log[-1:])
    assert world.answered == len(world.log)
    assert not machine.relay.is_open

    while machine.link.up:
        world.heard(machine, machine.link, machine.link.up.pop(0))
    while machine.link.down:
        world.down()

    assert not machine.relay.is_open, "it answers without the write that was answered"
    run(world, machine, lambda: machine.relay.is_live)
    assert machine.relay.applied == world.answered


def test_who_comes_back_is_waited_for_again():
    world, machine = lone()
    machine.link.cut_up = machine.link.cut_down = True
    world.log.append(Change(len(world.log) + 1, "z", "name", "k", b"new"))
    world.promise.committed(world.log[-1:])
    run(world, machine, lambda: world.answered == len(world.log))
    assert world.promise.nodes("dns") == {}

    world.heal()
    run(world, machine, lambda: machine.relay.is_leased)

    assert world.promise.nodes("dns") == {"a": len(world.log)}


def test_a_stale_node_ends_after_its_hours():
    world, machine = lone()
    machine.processes = [len(machine.file)]
    machine.link.cut_up = machine.link.cut_down = True
    machine.connect = lambda: None

    run(world, machine, lambda: not machine.relay.is_open)

    assert machine.processes == []
    assert world.now_ms >= STALE_MS


def test_how_long_a_node_is_cut_off_counts_from_its_last_lease_also_of_the_life_before():
    world, machine = lone()
    run(world, machine, lambda: machine.relay.is_leased)
    assert machine.relay.cut_off_ms == 0

    machine.link.cut_up = machine.link.cut_down = True
    run(world, machine, ms=3 * LEASE_MS)
    assert LEASE_MS < machine.relay.cut_off_ms <= 3 * LEASE_MS
    position, clock = machine.position, lambda: world.now_ms
    later = Relay(
        machine,
        group="dns",
        name="a",
        kinds=(),
        position=position,
        stops=False,
        stale_ms=STALE_MS,
        now_ms=clock,
        cut_off_ms=70_000,
    )
    assert later.cut_off_ms == 70_000
    world.now_ms += 500
    assert later.cut_off_ms == 70_500


def test_a_node_that_begins_alone_answers_from_its_file_only_if_it_serves_stale():
    for stops in (False, True):
        world, machine = lone(stops)
        machine.connect = lambda: None
        machine.start()
        run(world, machine, lambda m=machine: m.relay.is_open, ms=int(APART_MS) + 100) if not stops else run(
            world, machine, ms=5_000
        )
        assert machine.relay.is_open is not stops


def test_no_lease_is_longer_than_that_of_control_itself():
    own = {"until": 0.0}
    world, _ = lone()
    sent = []
    promise = Promise(
        FEED, 0, [], world, now_ms=lambda: world.now_ms, own_until_ms=lambda: world.now_ms + own["until"]
    )
    world.send = lambda consumer, message: sent.append(message)
    promise.register(1, Register("dns", "a", ("name",), FEED, 0, True), node=Node("a", LEASE_MS))
    for until, granted in ((0.0, 0), (400.0, 400), (9_000.0, LEASE_MS), (-5.0, 0), (-math.inf, 0)):
        own["until"] = until
        promise.renew(1, 7)
        assert (sent[-1].number, sent[-1].lease_ms) == (7, granted)


def test_a_gap_is_followed_by_a_snapshot():
    _, machine = lone()
    with pytest.raises(ProtocolError, match="gap"):
        machine.relay.received(frame(Changes(90, 91, ()))[4:])
    machine.close_link()
    machine.connect()

    register = machine.link.up[1]
    assert (register.feed_id, register.after) == ("", machine.position.sequence)


def test_a_file_remembers_where_it_stands():
    _, machine = lone()
    assert machine.relay.position == Position(FEED, machine.position.sequence)


def test_processes_that_outlive_their_relay_catch_up_before_control_hears_of_their_file():
    """Found by schedule 100,025: what the file had and they had not was taken for applied."""
    _, machine = lone()
    machine.processes = [len(machine.file)]
    machine.file += [machine.position.sequence] * 3
    machine.start()

    machine.connect()
    assert machine.link is None
    for _ in range(3):
        machine.apply()
    machine.connect()
    assert machine.link is not None
