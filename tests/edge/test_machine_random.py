"""Exchanges under random schedules: bytes, ends, losses, full buffers, turns and timers in any order.

The world plays the client, its origins, the pool, the phases and the clock, and judges every action as it is
asked for. Whatever order things come in: a client gets one final answer or its connection is cut, and nothing
behind that; what origins got is what the client sent, in order, and each attempt begins at the first byte; a
request is sent again only while nothing of an answer has come; no more is held than the limit and one read;
no connection goes back with its reading paused; and when it is over nobody works, waits or connects for it.
"""

import zlib
from random import Random
from types import SimpleNamespace

import pytest

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges import turns as inspection_turns
from edgestead.edge.exchanges.answer_watch import AnswerWatch
from edgestead.edge.exchanges.exchange import OriginChoice, Response
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.origins import HTTP_1, Origins
from edgestead.edge.exchanges.packing import Packers
from edgestead.edge.exchanges.turns import Owner, Turns
from edgestead.edge.http.machine import ExchangeMachine
from edgestead.edge.http.states import BODY_MOVES, MOVES, Body, State
from edgestead.edge.phases.pipeline import Pipeline
from tests.edge.made import ask

SEEDS = 4_000
READ_BYTES_MAX = 60_000  # what one read of a client holds
BODY_BYTES_MAX = 400_000  # of the zone
OVER = (State.DONE, State.CUT)
TEXT = [(b"content-type", b"text/plain")]


class Watched(ExchangeMachine):
    """Holds every move to the drawing."""

    def __setattr__(self, name, value):
        if name == "state" and value is not self.state:
            assert value in MOVES[self.state] or (value in OVER and self.state not in OVER)
            self.client.moves.add((self.state, value))
        elif name == "body" and value is not self.body:
            assert value in BODY_MOVES[self.body]
            self.client.moves.add((self.body, value))
        super().__setattr__(name, value)


class Origin:
    """One connection to an origin, and the answer that it gives."""

    def __init__(self, world, *, reused):
        self.world, self.reused = world, reused
        self.got, self.ended, self.left, self.paused, self.full = b"", False, "", False, False
        self.said, self.head_said, self.whole = b"", False, False
        self.trailers = []
        self.length = None

    @property
    def is_open(self):
        return not self.left

    def begin(self, exchange, pieces, *, ended):
        assert not self.got
        assert ended or self.world.went_on, "the client may wait until it is told to send the body"
        self.got, self.ended = b"".join(pieces), ended
        self.world.begun += 1
        self.world.may_fill(self)

    def piece(self, piece):
        assert self.is_open
        assert not self.ended or self.world.tunnels
        self.got += piece
        self.world.may_fill(self)

    def end(self):
        assert self.is_open
        assert not self.ended
        self.ended, self.world.timer = True, None  # now it is the answer that is waited for

    def pause(self, *, paused):
        assert self.is_open
        self.paused = paused

    def takes(self):
        return self.world.chance(0.5)

    def release(self, *, usable):
        assert self.is_open
        assert self.whole
        assert not self.paused, "nobody would read the next answer"
        assert not usable or self.ended
        self.left = "released"

    def abort(self):
        assert self.is_open
        self.left = "aborted"


class Late:
    """Of a body: some of its pieces take turns to be inspected, and one may be refused."""

    def __init__(self, world, first):
        self.world, self.first, self.busy = world, first, False

    def feed(self, piece):
        assert not self.busy, "pieces are inspected one after the other"
        outcome = Response(403, [], b"late") if self.world.chance(0.04) else piece
        if self.world.chance(0.5):
            return outcome
        self.busy = True
        return Later(self._steps(outcome))

    def _steps(self, outcome):
        for _ in range(self.world.random.randint(0, 3)):
            yield
        self.busy = False
        return outcome

    def end(self):
        assert not self.busy
        return Response(403, [], b"late") if self.world.chance(0.04) else None


class World:
    """Is the machine's client, worker and pool."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.moves = set()
        self.soon, self.date, self.origin_port, self.access = 1_000.0, b"now", None, None
        self.soon_calls, self.counted, self.failures = [], [], 0
        self.turns, self.observer, self.count, self.pool = (
            Turns(self.soon_calls.append),
            self,
            self.counted.append,
            self,
        )
        self.origin, self.job, self.begun, self.tunnels = None, None, 0, False
        self.timer, self.over, self.heads, self.interims, self.got, self.unsent = None, "", 0, 0, b"", 0
        self.full = self.is_gone = self.went_on = False
        self.trailers_said, self.is_packed, self.packers = [], False, Packers()
        self.watches = self.chance(0.3)
        self.body = self.random.randbytes(self.random.choice([0, 0, 10, 3_000, 200_000, 500_000]))
        self.sent = 0
        self.has_ended = not self.body
        self.machine = self.new_machine()
        self.crowd = self.chance(0.1)
        if self.crowd:
            for _ in range(inspection_turns.PER_ADDRESS_MAX):
                self.turns.wait("192.0.2.7", Later(self.forever()), Owner(lambda outcome: None, lambda: None))

    def took(self, arrived_us):
        pass

    def forever(self):
        while not self.over:
            yield

    def new_machine(self):
        upgrades = not self.body and self.chance(0.2)
        methods = [b"GET"] if upgrades else [b"GET", b"PUT", b"POST"]
        accepts = [(b"accept-encoding", b"gzip")] if self.chance(0.5) else []
        facts = ask(method=self.random.choice(methods), headers=accepts)
        length = self.random.choice([None, len(self.body)]) if self.body else 0
        if self.watches:
            facts.watch = AnswerWatch(1_000)
            facts.watch.add(
                lambda held: self.steps(Response(403, [], b"looked") if self.chance(0.2) else None)
            )
        if self.chance(0.3):
            facts.origin = OriginChoice(host=b"elsewhere.example")
        response = (self.shape,) if self.chance(0.3) else ()
        wanted = self.random.choice([0, 0, 100, 100_000])
        self.late = wanted and self.body and self.chance(0.6)
        route = SimpleNamespace(
            pipeline=Pipeline(facts.zone, (self.decide,), response, wanted),
            body_bytes_max=BODY_BYTES_MAX,
            head_seconds=100.0,
            origins=Origins([bytes((192, 0, 2, 1))]),
            tls_mode="",
            speaks=HTTP_1,
            compression=self.random.choice(("", "on")),
        )
        body = Body.COMING if self.body else Body.ENDED
        read = SimpleNamespace(length=length)
        return Watched(facts, self, self, route, read, b"", upgrades, body)

    def chance(self, share):
        return self.random.random() < share

    def steps(self, outcome):
        for _ in range(self.random.randint(0, 3)):
            yield
        return outcome

    # The phases.

    def decide(self, facts):
        assert self.body.startswith(facts.body)
        assert facts.body_complete == (len(facts.body) == len(self.body) and self.has_ended)
        if self.late:
            facts.late = Late(self, facts.body)
        answer = Response(403, [], b"decided") if self.chance(0.1) else None
        return Later(self.steps(answer)) if self.chance(0.4) else answer

    def shape(self, facts):
        facts.response.headers.append((b"content-length", b"1"))  # no rule may say that
        return Response(451, [], b"shaped") if self.chance(0.2) else None

    # The worker.

    def decided(self, facts, decision):
        assert not self.over

    def failed(self, facts, status, reason):
        assert not self.over
        assert (reason == faults.NOT_TAKEN.reason) <= self.origin_is_full
        assert (reason == faults.NO_ANSWER.reason) <= (not self.origin_is_full)
        self.failures += 1

    @property
    def origin_is_full(self):
        return self.origin is not None and self.origin.is_open and self.origin.full

    def kept(self, aim):
        if self.chance(0.5):
            return None
        return self.new_origin(reused=True)

    def new_origin(self, *, reused):
        before = self.origin
        if before is not None:
            assert not before.head_said, "a request is sent again behind an answer"
            assert before.left
        self.origin = Origin(self, reused=reused)
        return self.origin

    def seek(self, aim, exchange, *, is_again):
        assert self.job is None
        self.job = SimpleNamespace(cancel=self.cancel)
        return self.job

    def cancel(self):
        assert self.job is not None
        self.job = None

    # The client.

    def go_on(self):
        assert not self.over
        assert not self.has_ended or self.machine.body is not Body.ENDED
        self.went_on = True

    def interim(self, status, headers):
        assert not self.over
        assert not self.heads
        assert status != 100
        self.interims += 1
        self.unsent += 1

    def head(self, status, headers, length, *, bodyless, drained):
        assert not self.over
        assert not self.heads
        assert not drained or self.has_ended
        self.is_packed = (b"content-encoding", b"gzip") in headers
        lengths = [value for name, value in headers if name == b"content-length"]
        assert lengths in ([], [b"%d" % (length or 0)])
        assert [name for name, _ in headers].count(b"date") == 1
        self.heads += 1
        self.unsent += 1

    def piece(self, piece):
        assert not self.over
        assert self.heads == 1
        self.got += piece
        self.unsent += 1

    def trailers(self, headers):
        assert not self.over
        self.trailers_said = headers

    def flush(self):
        assert not self.over
        sent, self.unsent = self.unsent, 0
        if sent and self.chance(0.1):  # the transport says it from within the write
            self.full = True
            self.machine.client_full(full=True)
        return sent > 0

    def end(self, *, drained):
        assert self.heads == 1
        got = zlib.decompress(self.got, 31) if self.is_packed else self.got
        assert got == self.origin.said
        assert self.trailers_said == self.origin.trailers
        self.finish_client("ended")

    def answer(self, response, *, drained):
        assert self.heads == 0
        assert not self.got
        assert b"content-length" not in dict(response.headers)
        self.finish_client("answered")

    def close(self):
        assert self.tunnels
        self.finish_client("closed")

    def abort(self):
        self.finish_client("aborted")

    def finish_client(self, how):
        assert not self.over, "one answer, or an abort, and nothing behind it"
        self.over, self.timer = how, None

    def switch(self):
        assert not self.over
        self.tunnels = True

    def wait(self, seconds):
        assert not self.over, "a timer that nobody clears"
        self.timer = seconds

    def balance(self):
        assert not self.over

    # Events.

    def may_fill(self, origin):
        if self.chance(0.1):
            origin.full = True
            self.machine.origin_full(full=True)

    def step(self):
        choices = [
            self.send,
            self.send,
            self.turn,
            self.turn,
            self.connect,
            self.origin_speaks,
            self.origin_speaks,
        ]
        choices += [self.take_all]
        rare = [self.lose, self.fire, self.leave, self.fill]
        self.random.choice(rare if self.chance(0.02) else choices)()
        self.judge()

    def send(self):
        exchange = self.machine
        if self.tunnels and exchange.state is State.TUNNELLING:
            exchange.body_piece(b"raw")
            self.body += b"raw"
            self.sent += 3
        elif not self.has_ended and (exchange.state in OVER or not exchange.is_full):
            size = self.random.choice([1, 500, READ_BYTES_MAX])
            data = self.body[self.sent : self.sent + size]
            cut = self.random.randint(1, len(data))
            for piece in (data[:cut], data[cut:]):
                if piece:
                    self.sent += len(piece)
                    exchange.body_piece(piece)
            if self.sent == len(self.body):
                self.has_ended = True
                exchange.body_end()
        exchange.proceed()

    def turn(self):
        if self.soon_calls:
            self.soon_calls.pop(0)()

    def connect(self):
        if self.job is None:
            return
        self.job = None
        if self.chance(0.85):
            self.machine.connected(self.new_origin(reused=self.chance(0.3)))
        else:
            self.machine.unconnected(faults.REFUSED)

    def origin_speaks(self):
        """What one read of it holds."""
        origin, exchange = self.origin, self.machine
        if origin is None or not origin.is_open or origin.paused or origin.whole:
            return
        if not origin.head_said:
            if self.chance(0.1):
                before, status = self.interims, self.random.choice([100, 103])
                exchange.interim(status, [])
                assert self.interims == before + (status == 103)
            elif exchange.upgrades and self.chance(0.7):
                self.say_head(origin, 101, None)
                if origin.is_open:
                    assert exchange.switched()
            else:
                self.say_head(origin, 200, self.random.choice([None, 3_000]))
        while origin.is_open and origin.head_said and not origin.whole and self.chance(0.7):
            self.say_piece(origin)
        if origin.is_open and origin.whole:
            if self.chance(0.3):
                origin.trailers = [(b"grpc-status", b"0")]
                exchange.answer_trailers(origin.trailers)
            exchange.answer_end()
        elif origin.is_open:
            exchange.flush()

    def say_head(self, origin, status, length):
        origin.head_said, origin.length = True, length
        headers = [*TEXT, (b"date", b"then")] if self.chance(0.5) else list(TEXT)
        self.machine.answer_head(status, headers, dict(headers), length, False)

    def say_piece(self, origin):
        piece = self.random.randbytes(500)
        origin.said += piece
        self.machine.answer_piece(piece)
        if not self.tunnels:
            origin.whole = len(origin.said) == (origin.length or 2_000)

    def take_all(self):
        if self.full:
            self.full = False
            if not self.over and not self.is_gone:
                self.machine.client_full(full=False)
        if self.origin is not None and self.origin.full:
            self.origin.full = False
            if self.origin.is_open:
                self.machine.origin_full(full=False)

    def fill(self):
        if not self.over and not self.full:
            self.full = True
            self.machine.client_full(full=True)

    def lose(self):
        origin = self.origin
        if origin is not None and origin.is_open and not origin.whole:
            origin.left = "lost"
            found = [faults.BROKE_OFF, faults.BROKE_OFF, faults.UNREADABLE]
            if not origin.head_said:
                found.append(faults.UNTAKEN)
            self.machine.origin_lost(self.random.choice(found))

    def fire(self):
        if not self.over and self.timer is not None and not self.full:
            self.timer = None
            self.machine.late()

    def leave(self):
        if not self.over and self.chance(0.3):
            self.is_gone = True
            self.machine.client_gone()
            self.over, self.timer = "gone", None

    # The judge.

    def judge(self):
        exchange, origin = self.machine, self.origin
        held = sum(map(len, exchange._pieces or ())) + sum(map(len, exchange._behind))
        assert held <= limits.INSPECTED_BYTES_MAX + READ_BYTES_MAX
        assert self.begun <= 1 + limits.RETRIES_MAX
        assert (exchange.state in OVER) == bool(self.over)
        if origin is not None:
            assert self.body[: self.sent].startswith(origin.got)
            assert not origin.ended or origin.got == self.body[: len(origin.got)]
            assert not origin.ended or self.tunnels or len(origin.got) == len(self.body)
            if origin.is_open:
                assert origin.paused == (self.full or exchange.state is State.JUDGING)
                assert exchange.is_full == (origin.full or exchange.held_bytes > limits.INSPECTED_BYTES_MAX)
        if self.over:
            self.judge_end()
        elif exchange.state is not State.GATHERING and not self.full:
            assert self.timer is not None, "somebody is waited for without an end"

    def judge_end(self):
        assert self.origin is None or self.origin.left
        assert self.job is None
        assert self.timer is None
        assert not self.machine._waiting
        assert self.turns.waiting == 0 or self.crowd
        if self.over == "answered":
            assert (self.heads, self.interims and self.got) in ((0, 0), (0, b""))
        if self.over in ("answered", "ended") or self.tunnels:
            assert len(self.counted) == 1
        assert len(self.counted) <= 1

    def poke(self):
        """What comes when it is over finds nothing to do."""
        exchange, state = self.machine, self.machine.state
        exchange.body_piece(b"late")
        exchange.body_end()
        exchange.proceed()
        exchange.late()
        exchange.refuse(400, "late")
        exchange.answer_piece(b"late")
        exchange.answer_trailers([(b"late", b"late")])
        exchange.answer_end()
        exchange.origin_lost(faults.BROKE_OFF)
        exchange.client_gone()
        assert exchange.state is state

    def finish(self):
        """No more faults: everybody sends, takes, works and answers to the end."""
        for _ in range(5_000):
            if self.over:
                return
            if self.machine.state is State.TUNNELLING:
                self.lose()
                self.judge()
                continue
            for step in (self.take_all, self.send, self.turn, self.connect, self.origin_speaks):
                step()
                self.judge()
        raise AssertionError("somebody waits for ever")


def played(seed):
    try:
        world = World(seed)
        for _ in range(world.random.choice([0, 20, 200])):
            world.step()
        world.finish()
        world.poke()
        world.judge_end()
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise
    return world


@pytest.fixture(autouse=True, scope="module")
def one_step_a_turn():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection_turns, "SLICE_SECONDS", 0)
        patch.setattr(inspection_turns, "TURN_SECONDS", 0)
        patch.setattr(inspection_turns, "PER_ADDRESS_MAX", 3)
        yield


def test_no_schedule_breaks_an_exchange_and_all_moves_and_ends_of_the_drawing_occur():
    made, ends, begun = set(), set(), set()
    for seed in range(SEEDS):
        world = played(seed)
        made |= world.moves
        ends.add(world.over)
        begun.add(world.begun)

    drawn = {(state, to) for state, row in (*MOVES.items(), *BODY_MOVES.items()) for to in row}
    assert drawn <= made
    assert ends == {"ended", "answered", "closed", "aborted", "gone"}
    assert begun == {0, 1, 2}


@pytest.mark.long
def test_no_schedule_of_many_breaks_an_exchange():
    for seed in range(SEEDS, 25 * SEEDS):
        played(seed)
