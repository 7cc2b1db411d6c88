"""A cluster of control processes on invented time: their database, their links, and every fault there is.

Owns  a model of PostgreSQL's rows and of what a node does around `cluster.seat`; the judge of each read.
Not   the decisions: these are the product's own.

The judge: no read that may be answered is older than a write that was answered before it; nothing answered is
missing from the log; one process appends at a time.
"""

from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

from edgestead.cluster.lease import RENEW_MS
from edgestead.cluster.members import ADMITTED, FENCED, JOINING, Row
from edgestead.cluster.office import Holder, State
from edgestead.cluster.seat import (
    Admit,
    Claim,
    Delete,
    Failed,
    Fence,
    Forget,
    Poll,
    Register,
    Renew,
    Seat,
    View,
)
from tests.cluster.invented import LOST, Invented

LINK_MS = 1_000  # without a byte
STEPS_MS = (1, 5, 20, 60)
SETTLED_MS_MAX = 40_000  # after the last fault: a pause of 10 s, a lease, and joining again


class Append:
    def __init__(self, number: int, sequence: int, value: int) -> None:
        self.number, self.sequence, self.value = number, sequence, value


class ReadLog:
    def __init__(self, after: int) -> None:
        self.after = after


class Database:
    """Statements are atomic, and happen when they arrive."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}  # number → node, kind, renewed
        self.holder: int | None = None
        self.log: list[tuple[int, int]] = []  # value, incarnation
        self.newest = 0
        self.has_edges = False

    def execute(self, node: str, ask: Any) -> Any:
        return getattr(self, f"_{type(ask).__name__.lower()}")(node, ask)

    def _register(self, node: str, ask: Register) -> int:
        is_ours = self.holder is not None and self.rows.get(self.holder, [""])[0] in (node, "")
        if is_ours and not self.has_edges and self.holder is not None:
            self._drop(self.holder)
        if ask.former is not None:
            self._drop(ask.former)
        self.newest += 1
        self.rows[self.newest] = [node, JOINING, 0]
        return self.newest

    def _renew(self, node: str, ask: Renew) -> bool:
        row = self.rows.get(ask.number)
        if row is None or row[1] == FENCED:
            return False
        row[2] += 1
        return True

    def _poll(self, node: str, ask: Poll) -> View:
        return View(self._holder(), {number: Row(row[2], row[1]) for number, row in self.rows.items()})

    def _admit(self, node: str, ask: Admit) -> bool:
        row = self.rows.get(ask.number)
        if row is None or row[1] == FENCED or self.holder != ask.leader:
            return False
        row[1] = ADMITTED
        return True

    def _claim(self, node: str, ask: Claim) -> bool:
        if self._holder() != ask.holder or self.rows.get(ask.number, ["", FENCED])[1] == FENCED:
            return False
        if ask.holder is not None:
            self._drop(ask.holder.number)
        self.rows[ask.number][1] = ADMITTED
        self.holder = ask.number
        return True

    def _fence(self, node: str, ask: Fence) -> None:
        for number in ask.numbers:
            if number in self.rows and ask.leader in self.rows:
                self.rows[number][1] = FENCED

    def _delete(self, node: str, ask: Delete) -> list[int]:
        if ask.leader not in self.rows:
            return []
        gone = [n for n, row in ask.rows.items() if n not in self.rows or self.rows[n][2] == row.renewed]
        for number in gone:
            self._drop(number)
        return gone

    def _forget(self, node: str, ask: Forget) -> None:
        for other in [n for n, row in self.rows.items() if row[0] == node and n != ask.number]:
            if not self.has_edges:
                self._drop(other)

    def _readlog(self, node: str, ask: ReadLog) -> list[tuple[int, int]]:
        return self.log[ask.after :]

    def _append(self, node: str, ask: Append) -> bool:
        if ask.number not in self.rows or ask.sequence != len(self.log) + 1:
            return False
        self.log.append((ask.value, ask.number))
        return True

    def _holder(self) -> Holder | None:
        if self.holder is None:
            return None
        row = self.rows.get(self.holder)
        return Holder(self.holder, row[2] if row else None)

    def _drop(self, number: int) -> None:
        self.rows.pop(number, None)
        if self.holder == number:
            self.holder = None


class Process:
    """One life of a control process, around its seat."""

    def __init__(self, world: "World", node: str, copy: list[tuple[int, int]]) -> None:
        self.world, self.node, self.copy = world, node, copy
        self.rate = world.random.uniform(0.99, 1.01)
        self.seat = Seat(self.now_ms)
        self.office = self.seat.office
        self.seat.has_grants = lambda: world.database.has_edges
        self.alive, self.paused_until = True, 0.0
        self.lent_until = 0.0  # to nodes without control, by its lease
        self.leader: Process | None = None  # that its link goes to
        self.linked_number: int | None = None
        self.link = 0  # which of its links this is: nothing arrives over another than it was sent over
        self.admitted_at: tuple[int, int] | None = None
        self.followers: dict[int, Process] = {}
        self.is_appending = self.is_taking = self.is_reading = False
        self.unanswered: list[tuple[int, int]] = []
        self.round()

    def now_ms(self) -> float:
        return self.world.now * self.rate

    def lend(self) -> None:
        """Nodes without control may answer for as long as it may itself."""
        self.lent_until = max(self.lent_until, self.office.answers_until_ms / self.rate)

    # Its rounds.

    def round(self) -> None:
        self._advance(self.seat.round(), None, None)

    def _advance(self, generator: Any, answer: Any, error: Exception | None) -> None:
        before = self.office.number
        try:
            ask = generator.send(answer) if error is None else generator.throw(error)
        except StopIteration:
            self._after_round()
            return

        def answered(result: Any) -> None:
            self._advance(generator, None if result is LOST else result, Failed() if result is LOST else None)

        if before != self.office.number or not self.office.leads:
            self._drop_followers()
        self.world.ask(self, ask, answered)

    def _after_round(self) -> None:
        if not self.office.leads:
            self._drop_followers()
        if self.office.state is State.CLAIMING:
            self._take_office()
        elif self.office.state in (State.JOINING, State.FOLLOWING):
            self._dial()
        self.world.after(self, RENEW_MS, self.round)

    def _lose(self) -> None:
        self.seat.lost()
        self.unanswered.clear()
        self._drop_followers()

    # Leading.

    def _take_office(self) -> None:
        if self.is_taking or self.is_appending:
            return
        self.is_taking, number = True, self.office.number

        def read(entries: Any) -> None:
            self.is_taking = False
            if entries is LOST or self.office.number != number:
                return
            self.copy.extend(entries)
            self._append(0, number, self._took_office)

        self.world.ask(self, ReadLog(len(self.copy)), read)

    def _took_office(self) -> None:
        self.unlink_self()
        self.seat.took_office()

    def write(self, value: int) -> None:
        if self.office.leads and not self.is_appending:
            self._append(value, self.office.number, lambda: None)

    def _append(self, value: int, number: int | None, then: Callable[[], None]) -> None:
        assert number is not None
        sequence, self.is_appending = len(self.copy) + 1, True

        def done(result: Any) -> None:
            self.is_appending = False
            if self.office.number != number or self.office.state is State.OUTSIDE:
                return
            if result is not True:
                self._lose()
                return
            assert len(self.copy) == sequence - 1
            self.copy.append((value, number))
            self.seat.wanted = sequence
            self.unanswered.append((sequence, value))
            then()
            self._push()
            self.answer()

        self.world.ask(self, Append(number, sequence, value), done)

    def answer(self) -> None:
        """Writes that every member has applied."""
        while self.unanswered and self.seat.members.applied >= self.unanswered[0][0]:
            if not (self.office.leads and self.seat.may_answer()):
                return
            sequence, value = self.unanswered.pop(0)
            self.world.answered(sequence, value)

    def accept(self, follower: "Process", number: int, applied: int) -> bool:
        """A process dials."""
        link = follower.link
        if not self.office.leads or not self.seat.members.link(number, applied, self.now_ms()):
            return False
        self.followers[number] = follower
        leader, head = self.office.number, len(self.copy)
        self.world.send(self, follower, lambda: follower.hear_admitted(link, number, leader, head))
        self._push()
        return True

    def _push(self) -> None:
        head = len(self.copy)
        for number, follower in self.followers.items():
            self.world.send(self, follower, partial(follower.hear, self, number, self.copy[:head]))

    def _drop_followers(self) -> None:
        for number in list(self.followers):
            self.cut(number)

    def cut(self, number: int) -> None:
        """A link ends; both ends learn of it, whenever they run."""
        follower = self.followers.pop(number, None)
        if follower is None:
            return
        self.seat.members.unlink(number)
        if follower.leader is self and follower.linked_number == number:
            follower.leader = None

    def acked(self, number: int, applied: int) -> None:
        if number in self.followers:
            self.seat.members.acked(number, applied)
            self.answer()

    # Following.

    def _dial(self) -> None:
        holder, number = self.office.holder, self.office.number
        if self.leader is not None and (
            self.linked_number != number or holder is None or self.leader.office.number != holder.number
        ):
            self.unlink_self()
        if self.leader is None and holder is not None:
            leader = self.world.process_of(holder.number)
            if leader is not None and leader is not self and self.world.reaches(self, leader):
                self.leader, self.linked_number = leader, number
                self.link += 1
                applied, link = len(self.copy), self.link

                def arrive() -> None:
                    if self._has(link) and not leader.accept(self, number, applied):
                        self.leader = None

                self.world.send(self, leader, arrive)
        if self.leader is None and not self.is_reading:
            self._read_log()

    def _read_log(self) -> None:
        """Without a link it follows the log in the database."""
        self.is_reading, number = True, self.office.number

        def read(entries: Any) -> None:
            self.is_reading = False
            if entries is not LOST and self.office.number == number and not self.office.leads:
                self._apply(self.world.database.log[: len(self.copy) + len(entries)])

        self.world.ask(self, ReadLog(len(self.copy)), read)

    def unlink_self(self) -> None:
        if self.leader is not None and self.linked_number is not None:
            leader, self.leader = self.leader, None
            leader.cut(self.linked_number)

    def unlink_from(self, leader: "Process") -> None:
        """The link was silent for too long."""
        if self.leader is leader:
            self.unlink_self()

    def _has(self, link: int) -> bool:
        return self.leader is not None and self.link == link

    def hear_admitted(self, link: int, number: int, leader_number: int, head: int) -> None:
        if self._has(link) and self.linked_number == number == self.office.number:
            self.admitted_at = (leader_number, head)
            self._check_admission()

    def hear(self, leader: "Process", number: int, entries: list[tuple[int, int]]) -> None:
        if self.leader is leader and self.linked_number == number == self.office.number:
            self._apply(entries)
            self._check_admission()
            applied = len(self.copy)
            self.world.send(self, leader, lambda: leader.acked(number, applied))

    def _apply(self, entries: list[tuple[int, int]]) -> None:
        if self.is_taking or self.is_appending:
            return
        assert self.copy == entries[: len(self.copy)] or entries == self.copy[: len(entries)], "it diverged"
        self.copy.extend(entries[len(self.copy) :])

    def _check_admission(self) -> None:
        if self.admitted_at is not None and len(self.copy) >= self.admitted_at[1]:
            self.seat.admitted(self.admitted_at[0])
            self.admitted_at = None


class World(Invented):
    """The links, the deaths and the judge."""

    NODES = ("a", "b", "c")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.database = Database()
        self.database.has_edges = seed % 2 == 1
        self.ghosts: list[tuple[int, float]] = []  # what edges of processes that died have, and until when
        self.answered_upto = 0
        self.answered_values: dict[int, int] = {}
        self.reads = self.answers = self.refused_reads = 0
        self.values = 0
        self.processes = {node: Process(self, node, []) for node in self.NODES}

    # Messages.

    def send(self, source: Process, to: Process, fn: Callable[[], None]) -> None:
        """Over a link. Messages of one link keep their order by being whole: each has all that is known."""
        if self.reaches(source, to):
            self.at(self._latency(), to, fn)
        else:
            self.at(LINK_MS, None, lambda: (source.unlink_from(to), to.unlink_from(source)))

    def reaches(self, source: Process, to: Process) -> bool:
        return to.alive and (source.node, to.node) not in self.cut_pairs

    def process_of(self, number: int) -> Process | None:
        for process in self.processes.values():
            if process.office.number == number and process.alive:
                return process
        return None

    # The judge.

    def answered(self, sequence: int, value: int) -> None:
        assert self.database.log[sequence - 1][0] == value, "what was answered is not in the log"
        self.answered_upto = max(self.answered_upto, sequence)
        self.answers += 1

    def read(self) -> None:
        process = self.processes[self.NODES[int(self.random.random() * len(self.NODES))]]
        if not process.alive or process.paused_until > self.now:
            return
        if not process.seat.may_answer():
            self.refused_reads += 1
            return
        self.reads += 1
        assert len(process.copy) >= self.answered_upto, "a read is older than an answered write"

    def read_at_edges(self) -> None:
        """Nodes without control answer by the lease of the process they follow, after its end, too."""
        for process in self.processes.values():
            if not process.alive:
                continue
            if process.paused_until <= self.now:
                process.lend()
            if process.lent_until > self.now:
                assert len(process.copy) >= self.answered_upto, "an edge is older than an answered write"
        self.ghosts = [ghost for ghost in self.ghosts if ghost[1] > self.now]
        for applied, _ in self.ghosts:
            assert applied >= self.answered_upto, "an edge of a dead process is older than an answered write"

    def write(self) -> None:
        self.values += 1
        for process in self.processes.values():
            if process.alive and process.paused_until <= self.now:
                process.write(self.values)

    # Faults.

    def step(self) -> None:
        fault = self.random.random()
        if fault < 0.70:
            self.read()
            if self.database.has_edges:
                self.read_at_edges()
        if fault < 0.35:
            self.write()
        elif fault > 0.97:
            self.random.choice([self.die, self.pause, self.cut_one_way, self.heal, self.heal, self.flap])()
        self.run_until(self.now + STEPS_MS[int(self.random.random() * len(STEPS_MS))])

    def die(self) -> None:
        process = self.random.choice(list(self.processes.values()))
        if not process.alive:
            return
        process.lend()
        self.ghosts.append((len(process.copy), process.lent_until))
        process.alive = False
        process.unlink_self()
        process._drop_followers()
        kept = process.copy[: self.random.choice((0, len(process.copy), len(process.copy)))]
        self.at(self.random.uniform(50, 4_000), None, lambda: self._start(process.node, kept))

    def _start(self, node: str, copy: list[tuple[int, int]]) -> None:
        self.processes[node] = Process(self, node, copy)

    def _is_settled(self) -> bool:
        """One process leads, waits for the two others alone, and each answers. `finish` holds them to it."""
        processes = self.processes.values()
        leading = [one for one in processes if one.office.leads]
        if not self.is_up or len(leading) != 1:
            return False
        others = {one.office.number for one in processes if one not in leading}
        return set(leading[0].followers) == set(leading[0].seat.members.numbers) == others and all(
            one.alive and one.paused_until <= self.now and one.seat.may_answer() for one in processes
        )

    def finish(self) -> None:
        """No more faults: one leads, the others follow, and a write is answered."""
        self.is_faulty = False
        self.heal()
        end, since = self.now + SETTLED_MS_MAX, self.now
        while self.now - since <= LINK_MS and self.now < end:  # links that are cut already end meanwhile
            self.run_until(self.now + RENEW_MS)
            if not self._is_settled():
                since = self.now
        before = self.answers
        for _ in range(40):
            self.write()
            self.run_until(self.now + 50)
        assert self.answers > before, "no process answers writes"
        assert [p.office.state for p in self.processes.values()].count(State.LEADING) == 1
        for _ in range(20):
            self.read()
            assert all(p.seat.may_answer() for p in self.processes.values())
        for process in self.processes.values():
            assert process.copy == self.database.log[: len(process.copy)]
            assert len(process.copy) >= self.answered_upto
        offices = [number for number, _ in groupby(number for _, number in self.database.log)]
        assert len(offices) == len(set(offices)), "a process appended after another had taken its office"
