"""Objects processes of a cluster on invented time: an object in each slot, calls from everywhere, all faults.

Owns  a model of PostgreSQL's rows and of what a process does around `cluster.slots`; the judge of answers.
Not   the decisions: these are the product's own.

The judge: no answer is older than a write that was answered before its call began; nothing answered is
missing from an object's log; when faults end, each slot is where it is wanted, and answers.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from edgestead.cluster.lease import RENEW_MS
from edgestead.cluster.placement import Worker, wanted
from edgestead.cluster.seat import Failed
from edgestead.cluster.slots import Claim, Give, Held, Poll, Register, Renew, Slots, View
from tests.cluster.invented import LOST, Invented

SLOTS = 6
GIVE_TICK_MS = 15


class Append:
    def __init__(self, number: int, slot: int, position: int, value: int) -> None:
        self.number, self.slot, self.position, self.value = number, slot, position, value


class ReadLog:
    def __init__(self, slot: int) -> None:
        self.slot = slot


class Database:
    """Statements are atomic, and happen when they arrive."""

    def __init__(self) -> None:
        self.workers: dict[int, Worker] = {}
        self.holders: list[int | None] = [None] * SLOTS
        self.versions = [0] * SLOTS
        self.version = 0
        self.logs: list[list[int]] = [[] for _ in range(SLOTS)]
        self._numbers = count(1)

    def execute(self, node: str, ask: Any) -> Any:
        return getattr(self, f"_{type(ask).__name__.lower()}")(node, ask)

    def _move(self, slot: int, number: int) -> None:
        self.holders[slot], self.versions[slot] = number, self.version

    def _held(self, slot: int) -> Held:
        return Held(self.holders[slot], self.versions[slot])

    def _register(self, node: str, ask: Register) -> int:
        number = next(self._numbers)
        former = [n for n, worker in self.workers.items() if worker.node == node]
        self.version += 1
        for slot, holder in enumerate(self.holders):
            if holder in former:
                self._move(slot, number)
        for one in former:
            del self.workers[one]
        self.workers[number] = Worker(number, node, 0, "", 0)
        return number

    def _renew(self, node: str, ask: Renew) -> bool:
        worker = self.workers.get(ask.number)
        if worker is None:
            return False
        self.workers[ask.number] = worker._replace(renewed=worker.renewed + 1)
        return True

    def _poll(self, node: str, ask: Poll) -> View:
        changed = {s: self._held(s) for s in range(SLOTS) if self.versions[s] > ask.after}
        return View(dict(self.workers), changed, self.version)

    def _claim(self, node: str, ask: Claim) -> dict[int, Held]:
        if ask.number not in self.workers:
            return {}
        for number, renewed in ask.silent.items():
            if number in self.workers and self.workers[number].renewed == renewed:
                del self.workers[number]
        self.version += 1
        taken = [
            s for s, holder in ask.slots.items() if self.holders[s] == holder and holder not in self.workers
        ]
        for slot in taken:
            self._move(slot, ask.number)
        return {slot: self._held(slot) for slot in taken}

    def _give(self, node: str, ask: Give) -> dict[int, Held]:
        if ask.number not in self.workers:
            return {}
        self.version += 1
        given = {
            slot: to
            for slot, (to, version) in ask.slots.items()
            if self._held(slot) == (ask.number, version) and to in self.workers
        }
        for slot, to in given.items():
            self._move(slot, to)
        return {slot: self._held(slot) for slot in given}

    def _readlog(self, node: str, ask: ReadLog) -> int:
        return len(self.logs[ask.slot])

    def _append(self, node: str, ask: Append) -> bool:
        log = self.logs[ask.slot]
        if ask.number not in self.workers or ask.position != len(log) + 1:
            return False
        log.append(ask.value)
        return True


class Process:
    """One life of an objects process, around its slots."""

    def __init__(self, world: "SlotsWorld", node: str) -> None:
        self.world, self.node = world, node
        self.rate = world.random.uniform(0.99, 1.01)
        self.alive, self.paused_until = True, 0.0
        self.heads: dict[int, int] = {}  # of the objects in memory
        self.busy: set[int] = set()
        self.is_asking = False
        self.slots = Slots(
            lambda: self.world.now * self.rate,
            is_quiet=lambda slot: slot not in self.busy,
            left=self._forget,
            slots=SLOTS,
        )
        self._register()

    def _forget(self, slots: list[int]) -> None:
        for slot in slots:
            self.heads.pop(slot, None)

    # What it asks: renewals beside everything else.

    def _run(self, generator: Any, then: Callable[[Any], None]) -> None:
        def advance(answer: Any, failed: bool = False) -> None:
            try:
                ask = generator.throw(Failed()) if failed else generator.send(answer)
            except StopIteration as end:
                then(end.value)
                return
            self.world.ask(self, ask, lambda a: advance(None if a is LOST else a, a is LOST))

        advance(None)

    def _register(self) -> None:
        def registered(done: bool) -> None:
            if not done:
                self.world.after(self, RENEW_MS, self._register)
                return
            self.world.after(self, RENEW_MS, self._renewal)
            self._round()
            self.world.after(self, GIVE_TICK_MS, self._give)

        self._run(self.slots.register(), registered)

    def _renewal(self) -> None:
        def renewed(is_there: bool) -> None:
            if not is_there:
                self.end()
            self.world.after(self, RENEW_MS, self._renewal)

        self._run(self.slots.renewal(), renewed)

    def _round(self) -> None:
        self._alone(self.slots.round)
        self.world.after(self, RENEW_MS, self._round)

    def _give(self) -> None:
        if self.slots.is_giving:
            self._alone(self.slots.give)
        self.world.after(self, GIVE_TICK_MS, self._give)

    def _alone(self, make: Callable[[], Any]) -> None:
        if not self.is_asking:
            self.is_asking = True
            self._run(make(), self._asked)

    def _asked(self, _: Any) -> None:
        self.is_asking = False

    def end(self) -> None:
        """Its row is gone, or an append's outcome is unknown."""
        if self.alive:
            self.slots.lost()
            self.world.ended(self)

    # Calls.

    def call(self, slot: int, is_write: bool, acknowledged: int, hops: int = 2) -> None:
        if not self.slots.owns(slot):
            holder = self.slots.holder(slot)
            other = None if holder is None else self.world.process_of(holder.number)
            if hops and other is not None and other is not self:
                self.world.send(self, other, lambda: other.call(slot, is_write, acknowledged, hops - 1))
            return
        if slot in self.busy:
            return
        self.busy.add(slot)
        if slot in self.heads:
            self._use(slot, is_write, acknowledged)
            return

        def read(head: Any) -> None:
            if head is LOST:
                self.busy.discard(slot)
                return
            self.heads[slot] = head
            self._use(slot, is_write, acknowledged)

        self.world.ask(self, ReadLog(slot), read)

    def _use(self, slot: int, is_write: bool, acknowledged: int) -> None:
        if not is_write:  # which takes its time
            delay_ms = self.world.random.choice((0, 1, 1, 20, 300))
            self.world.at(delay_ms, self, lambda: self._answer(slot, acknowledged))
            return
        position, number, value = self.heads[slot] + 1, self.slots.number, self.world.next_value()
        assert number is not None

        def appended(result: Any) -> None:
            if result is not True:
                self.end()
                return
            self.heads[slot] = position
            self._answer(slot, acknowledged, (position, value))

        self.world.ask(self, Append(number, slot, position, value), appended)

    def _answer(self, slot: int, acknowledged: int, written: tuple[int, int] | None = None) -> None:
        self.busy.discard(slot)
        if self.slots.may_answer() and slot in self.heads:  # those that lose their slot are reset
            self.world.answered(slot, self.heads[slot], acknowledged, written)
        else:
            self.world.refused += 1


class SlotsWorld(Invented):
    NODES = ("a", "b", "c")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.database = Database()
        self.acknowledged = [0] * SLOTS  # positions, by slot
        self.answers = self.writes = self.refused = self._values = 0
        self.processes = {node: Process(self, node) for node in self.NODES}

    def _arrival(self, ask: Any) -> float:
        """Some statements happen after their process has given up waiting."""
        is_late = self._is_lost(ask)
        return self.random.uniform(900, 3_000) if is_late else self._latency()

    def _is_lost(self, ask: Any) -> bool:
        """Of slots that move more often: they move seldom."""
        return self.is_faulty and self.random.random() < (0.1 if isinstance(ask, Claim | Give) else 0.01)

    def next_value(self) -> int:
        self._values += 1
        return self._values

    def send(self, source: Process, to: Process, fn: Callable[[], None]) -> None:
        if to.alive and (source.node, to.node) not in self.cut_pairs:
            self.at(self._latency(), to, fn)

    def process_of(self, number: int) -> Process | None:
        return next((p for p in self.processes.values() if p.alive and p.slots.number == number), None)

    # The judge.

    def answered(self, slot: int, head: int, acknowledged: int, written: tuple[int, int] | None) -> None:
        assert head >= acknowledged, "an answer is older than a write that was answered before"
        self.answers += 1
        if written is not None:
            position, value = written
            assert self.database.logs[slot][position - 1] == value, "what was answered is not in the log"
            self.acknowledged[slot] = max(self.acknowledged[slot], position)
            self.writes += 1

    # Faults.

    def step(self) -> None:
        for _ in range(self.random.choice((0, 1, 4))):
            self._call(self.random.randrange(SLOTS))
        if self.random.random() > 0.97:
            faults = [self.die, self.pause, self.cut_one_way, self.heal, self.heal, self.flap, self.drain]
            self.random.choice(faults)()
        self.run_until(self.now + self.random.choice((1, 5, 20, 60, 200)))

    def _call(self, slot: int) -> None:
        process = self.random.choice(list(self.processes.values()))
        if process.alive and process.paused_until <= self.now:
            process.call(slot, self.random.random() < 0.5, self.acknowledged[slot])

    def die(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        if process.alive:
            self.ended(process)

    def ended(self, process: Process) -> None:
        """The place has another process, now or after others have taken its slots."""
        process.alive = False
        delay_ms = self.random.choice((10, 100, 5_000))
        self.at(delay_ms, None, lambda: self._start(process.node))

    def _start(self, node: str) -> None:
        self.processes[node] = Process(self, node)

    def drain(self) -> None:
        if self.database.workers:
            number = self.random.choice(list(self.database.workers))
            self.database.workers[number] = self.database.workers[number]._replace(is_draining=True)

    def finish(self) -> None:
        """No more faults: each slot is where it is wanted, and everybody is answered."""
        self.is_faulty = False
        self.heal()
        self.run_until(self.now + 20_000)
        database = self.database
        assert database.holders == wanted(database.workers.values(), SLOTS), (
            "a slot is not where it is wanted"
        )
        for process in self.processes.values():
            for slot in range(SLOTS):
                before = self.answers
                process.call(slot, True, self.acknowledged[slot])
                self.run_until(self.now + 1_000)
                assert self.answers > before, "a call was not answered"
