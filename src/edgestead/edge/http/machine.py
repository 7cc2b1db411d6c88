"""One exchange as a state machine without I/O: a request, the phases, an origin, an answer.

Owns  the states of an exchange, what each event does in each of them, what is held meanwhile and how much.
Not   bytes on a wire, HTTP versions, sockets, tasks, the clock: what happens comes in as events, what is to
      be done goes out through `Client`, `Origin` and `Worker`. Every method returns at once.

    GATHERING ──▶ DECIDING ──▶ CONNECTING ──▶ ASKED ──▶ ANSWERING ──▶ DONE
     its body's       │            ▲  ▲         │ │         ▲ │
     start is         ▼            │  └─ retry ─┘ │         │ └──▶ TUNNELLING (101)
     kept for      CLEARING ───────┘              ▼         │
     the phases     parts of it             HOLDING ──▶ JUDGING
                    are inspected           the answer's    its body's start
                                            start is kept   is inspected

    From each of them: an answer of the edge's own ──▶ DONE, the client gone ──▶ CUT. Once an answer's head is
    with the client there is no other one: what fails from then on ──▶ CUT, which the client notices.

The request's body, at the same time:

    COMING ──▶ ENDED        STOPPED: a piece of it is being inspected, and what follows waits behind that;
       ▲ │       ▲ │        ENDING: so it is, and the end is here, too. ENDED goes back to that only where
       │ ▼       │ ▼        phases that had the start want to see the rest
    STOPPED ──▶ ENDING

A request is sent a second time only if all of it is still held and not a byte of an answer has come.
docs/design/0027-the-edges-exchange.md has the tables and says what each state was before.
"""

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from edgestead.edge import limits
from edgestead.edge.exchanges import answers, faults, pages
from edgestead.edge.exchanges.exchange import Exchange, Response, ResponseHead
from edgestead.edge.exchanges.faults import Fault
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.origins import Aim
from edgestead.edge.exchanges.pieces import hold
from edgestead.edge.exchanges.turns import Owner, Turns
from edgestead.edge.routing import Route
from edgestead.edge.tools.phase import Observer
from edgestead.http1.head import ASTERISK, Head
from edgestead.model.events import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgestead.edge.exchanges.answer_watch import HeldAnswer
    from edgestead.edge.exchanges.late_body import LateBody
    from edgestead.http1.head import Headers

UNINSPECTED = "The request could not be checked in time: too many others are being checked. Please try again."
_TOO_LARGE = "The request's body is larger than this zone takes."
_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})  # RFC 9110 §9.2.2


class State(Enum):
    GATHERING = "gathering"
    DECIDING = "deciding"
    CLEARING = "clearing"
    CONNECTING = "connecting"
    ASKED = "asked"
    HOLDING = "holding"
    JUDGING = "judging"
    ANSWERING = "answering"
    TUNNELLING = "tunnelling"
    DONE = "done"
    CUT = "cut"


class Body(Enum):
    COMING = "coming"
    STOPPED = "stopped"
    ENDING = "ending"
    ENDED = "ended"


# The drawing as data: the test of random schedules holds the machine to it. DONE and CUT end every row.
MOVES: dict[State, frozenset[State]] = {
    State.GATHERING: frozenset({State.DECIDING}),
    State.DECIDING: frozenset({State.CLEARING, State.CONNECTING}),
    State.CLEARING: frozenset({State.CONNECTING}),
    State.CONNECTING: frozenset({State.ASKED}),
    State.ASKED: frozenset({State.CONNECTING, State.HOLDING, State.ANSWERING}),
    State.HOLDING: frozenset({State.JUDGING}),
    State.JUDGING: frozenset({State.ANSWERING}),
    State.ANSWERING: frozenset({State.TUNNELLING}),
    State.TUNNELLING: frozenset(),
    State.DONE: frozenset(),
    State.CUT: frozenset(),
}
BODY_MOVES: dict[Body, frozenset[Body]] = {
    Body.COMING: frozenset({Body.STOPPED, Body.ENDED}),
    Body.STOPPED: frozenset({Body.COMING, Body.ENDING}),
    Body.ENDING: frozenset({Body.ENDED}),
    Body.ENDED: frozenset({Body.ENDING}),
}

# A member of an enum is found slowly, and these are asked for at every step.
_GATHERING, _DECIDING, _CLEARING, _CONNECTING = (
    *(State.GATHERING, State.DECIDING, State.CLEARING, State.CONNECTING),
)
_ASKED, _HOLDING, _JUDGING, _ANSWERING = State.ASKED, State.HOLDING, State.JUDGING, State.ANSWERING
_TUNNELLING, _DONE, _CUT = State.TUNNELLING, State.DONE, State.CUT
_COMING, _STOPPED, _ENDING, _ENDED = Body.COMING, Body.STOPPED, Body.ENDING, Body.ENDED
_OVER = (_DONE, _CUT)


class Client(Protocol):
    """The client's side of one exchange: a request on a connection of HTTP/1, a stream of HTTP/2.

    `drained` says whether all of the request's body has come: where not, it may still be coming. `end`,
    `answer`, `close` and `abort` are the last thing that is asked of it; its timer is over with them.
    """

    def go_on(self) -> None:
        """The body is wanted: say so to who waits for that. Harmless when said before."""
        ...

    def interim(self, status: int, headers: "Headers") -> None: ...

    def head(
        self, status: int, headers: "Headers", length: int | None, *, bodyless: bool, drained: bool
    ) -> None:
        """`length` None: the body's end will say it."""
        ...

    def piece(self, piece: bytes) -> None: ...

    def flush(self) -> bool:
        """Send what was said; whether there was anything."""
        ...

    def end(self, *, drained: bool) -> None: ...

    def answer(self, response: Response, *, drained: bool) -> None:
        """An answer of the edge's own, whole."""
        ...

    def switch(self) -> None:
        """Its bytes are no HTTP from now on: each read of them is a piece."""
        ...

    def close(self) -> None:
        """End a tunnel, when all was taken."""
        ...

    def abort(self) -> None:
        """End in the middle, so that it is noticed."""
        ...

    def wait(self, seconds: float) -> None:
        """Set the one timer, from now: `late` when it is over. While the client does not take what was sent,
        that is what is waited for instead.
        """
        ...

    def balance(self) -> None:
        """`is_full` may have changed: read on, or do not."""
        ...


class Origin(Protocol):
    """One connection to an origin, for one exchange at a time."""

    reused: bool
    """Whether it has served before: its origin may close it at any time."""

    def begin(self, exchange: "ExchangeMachine", pieces: list[bytes], *, ended: bool) -> None:
        """Send the request's head and what is here of its body."""
        ...

    def piece(self, piece: bytes) -> None: ...

    def end(self) -> None: ...

    def pause(self, *, paused: bool) -> None:
        """Read no more of it, or go on."""
        ...

    def takes(self) -> bool:
        """Whether it has taken some of what was sent to it since this was asked the last time."""
        ...

    def release(self, *, usable: bool) -> None: ...

    def abort(self) -> None: ...


class Job(Protocol):
    def cancel(self) -> object: ...


class Pool(Protocol):
    """Where connections to origins come from."""

    def kept(self, aim: Aim) -> Origin | None: ...

    def seek(self, aim: Aim, exchange: "ExchangeMachine") -> Job:
        """Answered by `connected` or `unconnected`, unless it is cancelled."""
        ...


class Worker(Protocol):
    """What all exchanges of a process share. `soon` is the clock: the time of its next sweep."""

    soon: float
    date: bytes
    origin_port: int | None

    @property
    def pool(self) -> Pool: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def observer(self) -> Observer: ...

    @property
    def count(self) -> "Callable[[int], None]": ...


class ExchangeMachine(msgspec.Struct, eq=False):
    """Made for every request: in C. `added` and `upgrades` are for the head that the origin gets.

    Behind what every driver may read, the fields are the machine's own.
    """

    exchange: Exchange
    client: Client
    worker: Worker
    route: Route
    read: Head
    added: bytes
    upgrades: bool
    body: Body
    state: State = _GATHERING
    held_bytes: int = 0
    body_bytes: int = 0
    _origin: Origin | None = None
    _pieces: list[bytes] | None = []  # of the body, to be sent; None when the origin has them: no second try
    _behind: list[bytes] = []  # the piece that is being inspected, and what came meanwhile
    _waiting: list[Later] = []  # for their turns: the phases, a part of the body, the answer
    _held: "HeldAnswer | None" = None
    _aim: Aim | None = None
    _connecting: Job | None = None
    _retries: int = 0
    _due: float = 0.0  # when the body is too slow, but for what came of it; 0 before it is awaited
    _origin_is_full: bool = False  # it has to take some of the body first
    _client_is_full: bool = False
    _is_origin_paused: bool = False

    # what drivers ask

    @property
    def length(self) -> int | None:
        """How long the request's body is; None where only its end will say it."""
        return self.read.length

    @property
    def is_full(self) -> bool:
        """Whether its client should send no more of the body for now."""
        return self._origin_is_full or self.held_bytes > limits.INSPECTED_BYTES_MAX

    # events of the client

    def body_piece(self, piece: bytes) -> None:
        state = self.state
        if state is _TUNNELLING:
            self._tunnel_out(piece)
            return
        if state is _DONE or state is _CUT:
            return
        self.body_bytes += len(piece)
        if state is not _GATHERING and self.body_bytes > self.route.body_bytes_max:
            self.refuse(413, _TOO_LARGE)
        else:
            self._take(piece)

    def body_end(self) -> None:
        if self.body is _ENDED:
            return
        if self.body is _STOPPED:
            self.body = _ENDING
            return
        self.body = _ENDED
        if self.state is not _GATHERING and self.state is not _DECIDING:
            self._end_body()

    def proceed(self) -> None:
        """All that has arrived was said, and it is this request's turn. Harmless when it began before."""
        if self.state is not _GATHERING:
            return
        exchange, route, length = self.exchange, self.route, self.read.length
        if (self.body_bytes if length is None else length) > route.body_bytes_max:
            self.refuse(413, _TOO_LARGE)
            return
        if exchange.target == ASTERISK:  # it asks us, not the origin (RFC 9110 §9.3.7)
            self._answer(Response(200))
            return
        wanted = route.pipeline.body_octets
        if wanted and self.body is not _ENDED and self.held_bytes < min(wanted, limits.INSPECTED_BYTES_MAX):
            self.client.go_on()
            self._await_body()
            return
        self.state = _DECIDING
        if self._pieces:
            exchange.body = b"".join(self._pieces)
            self._pieces = [exchange.body]
        exchange.body_complete = self.body is _ENDED
        self._decided(self._begun(route.pipeline.request(exchange)))

    def grant_time(self) -> None:
        """It was the client that had to wait: the time of its body begins again."""
        self._due = self.worker.soon + limits.SLOW_BODY_SECONDS_MAX - self._earned_seconds

    def client_full(self, *, full: bool) -> None:
        """The client does not take what it is sent, or does again."""
        self._client_is_full = full
        self._balance_origin()
        if not full:
            tunnels = self.state is _TUNNELLING
            self.client.wait(limits.TUNNEL_SECONDS_MAX if tunnels else limits.ORIGIN_BODY_SECONDS_MAX)

    def client_gone(self) -> None:
        if self.state not in _OVER:
            self._leave_all(_CUT)

    def unreadable(self, status: int, reason: str) -> None:
        """The end of its body cannot be found."""
        self.refuse(status, f"The request was refused: {reason}.")

    def late(self) -> None:
        """The timer is over."""
        if self.state in _OVER:
            return
        origin = self._origin
        taker = origin if self._origin_is_full else None
        if self._is_answered:
            self._cut()
        elif self._waiting:
            self.refuse(503, UNINSPECTED)
        elif taker is not None and taker.takes():
            self.client.wait(limits.STALL_SECONDS_MAX)
        elif taker is None and self.body is not _ENDED:
            self.refuse(408, "The request's body came too slowly.")
        else:
            self._fail(faults.NO_ANSWER if taker is None else faults.NOT_TAKEN)

    def refuse(self, status: int, reason: str) -> None:
        """What the request asks for, or how it is asked, is not taken: an event, and a page."""
        if self.state in _OVER:
            return
        self.worker.observer.decided(self.exchange, Decision("http", "refuse", status, reason=reason))
        self._show(status, reason)

    # the request's body

    def _take(self, piece: bytes) -> None:
        """A piece, by where the ones before it are. None is inspected before the phases have decided."""
        if self.body is _STOPPED:
            hold(self._behind, piece)
            self.held_bytes += len(piece)
        elif self.exchange.late is None or self.state is _DECIDING:
            self._pass(piece)
        else:
            self._pass_inspected(self.exchange.late, [piece], ended=False)

    def _pass(self, piece: bytes) -> None:
        if self._origin is not None:
            if piece:
                self._origin.piece(piece)
            self._await_body()
        elif piece and self._pieces is not None:
            hold(self._pieces, piece)
            self.held_bytes += len(piece)

    def _pass_inspected(self, late: "LateBody", pieces: list[bytes], *, ended: bool) -> None:
        """In order, and then the end, if that is here: the rest waits behind a piece that waits for turns."""
        for number, piece in enumerate(pieces):
            passed = self._begun(late.feed(piece))
            if passed.__class__ is Later:
                self.body = _ENDING if ended else _STOPPED
                self._behind = pieces[number:]
                self.held_bytes += sum(map(len, self._behind))
                self._wait_turn(passed, self._inspected)
                return
            if passed.__class__ is Response:
                self._stop(passed)
                return
            self._pass(passed)
        self.body = _ENDED if ended else _COMING
        if ended:
            self._end_body()

    def _inspected(self, passed: bytes | Response) -> None:
        """Then it is the turn of what came meanwhile."""
        if isinstance(passed, Response):
            self._stop(passed)
            return
        behind, self._behind = self._behind, []
        self.held_bytes -= sum(map(len, behind))
        self._pass(passed)
        assert self.exchange.late is not None
        self._pass_inspected(self.exchange.late, behind[1:], ended=self.body is _ENDING)
        self._ask_if_clear()
        if self.state not in _OVER:
            self.client.balance()

    def _end_body(self) -> None:
        if self.state in _OVER:
            return
        late = self.exchange.late
        answer = None if late is None else late.end()
        if answer is not None:
            self._stop(answer)
        elif self._origin is not None:
            self._origin.end()
            self.client.wait(self.route.head_seconds)

    def _await_body(self) -> None:
        """The next piece in time, and all of it at a rate: that until the origin answers, as then both may
        have reasons to take their time.
        """
        seconds = limits.BODY_SECONDS_MAX
        if not self._is_answered:
            if not self._due:
                self.grant_time()
            seconds = min(seconds, self._due + self._earned_seconds - self.worker.soon)
        self.client.wait(seconds)

    @property
    def _earned_seconds(self) -> float:
        return self.body_bytes / limits.BODY_BYTES_PER_SECOND_MIN

    # the phases, and whatever else takes turns

    def _begun(self, outcome: Any) -> Any:
        """An outcome; a `Later` that has had what it may have at once, and has to wait."""
        if outcome.__class__ is not Later:
            return outcome
        return self.worker.turns.begin(self.exchange.client, outcome)

    def _wait_turn(self, later: Later, settle: "Callable[[Any], None]") -> None:
        """Let others have theirs. All of the work has one deadline, its own."""

        def settled(outcome: Any) -> None:
            self._waiting.remove(later)
            settle(outcome)

        def crowded_out() -> None:
            self._waiting.remove(later)
            self.refuse(503, UNINSPECTED)

        self._waiting.append(later)
        self.client.wait(limits.INSPECTION_SECONDS_MAX)
        self.worker.turns.wait(self.exchange.client, later, Owner(settled, crowded_out))

    def _decided(self, answer: Response | Later | None) -> None:
        if answer is None:
            late = self.exchange.late
            if late is None:
                self._ask()
            else:
                self._clear(late)
        elif isinstance(answer, Later):
            self._wait_turn(answer, self._decided)
        else:
            self._answer(answer)

    def _clear(self, late: "LateBody") -> None:
        """Of what is here already, keep what may pass; or the request ends with another answer."""
        self.state = _CLEARING
        pieces = self._pieces or []
        self._pieces, self.held_bytes = [late.first] if late.first else [], len(late.first)
        self._pass_inspected(late, pieces[1:], ended=self.body is _ENDED)
        self._ask_if_clear()

    def _ask_if_clear(self) -> None:
        if self.state is _CLEARING and (self.body is _COMING or self.body is _ENDED):
            self._ask()

    # the origin

    def _ask(self) -> None:
        worker = self.worker
        if self.body is not _ENDED:
            self.client.go_on()
        self.state = _CONNECTING
        aim = self._aim = self.route.origins.aim(
            self.exchange, self.route.tls_mode, worker.origin_port, worker.soon
        )
        origin = worker.pool.kept(aim)
        if origin is None:
            self._seek(aim)
        else:
            self.connected(origin)

    def _seek(self, aim: Aim) -> None:
        self.client.wait(2 * limits.CONNECTS_SECONDS_MAX)  # the pool has a deadline of its own
        self._connecting = self.worker.pool.seek(aim, self)

    def connected(self, origin: Origin) -> None:
        self._connecting = None
        self._origin, self.state = origin, _ASKED
        self._origin_is_full = self._is_origin_paused = False  # the one before it may have been
        pieces, ended = self._pieces, self.body is _ENDED
        assert pieces is not None
        if not ended:
            self._pieces = None  # the rest is passed on as it comes: there is no second try
        if self.held_bytes:
            self.held_bytes = sum(map(len, self._behind))
        if ended:
            self.client.wait(self.route.head_seconds)
        else:
            self._await_body()
            self.client.balance()  # what was held for its inspection is on its way: read on
        origin.begin(self, pieces, ended=ended)
        if self._client_is_full:
            self._balance_origin()

    def unconnected(self, fault: Fault) -> None:
        self._connecting = None
        self._fail(fault)

    def origin_full(self, *, full: bool) -> None:
        """The origin does not take what it is sent, or does again."""
        self._origin_is_full = full
        self.client.balance()

    def origin_lost(self, fault: Fault) -> None:
        """Its connection ended before its answer did."""
        origin, self._origin = self._origin, None
        if self.state in _OVER:
            return
        if self.state is _TUNNELLING:
            self.state = _DONE
            self.client.close()
        elif self.state is _ANSWERING:
            self.client.flush()
            self._cut()
        elif self._may_retry(origin, fault):
            # Closed by its origin just as it was taken: that says nothing of this request (RFC 9112 §9.3.1).
            self._retries += 1
            self.state = _CONNECTING
            assert self._aim is not None
            self._seek(self._aim)
        else:
            self._fail(fault)

    def _may_retry(self, origin: Origin | None, fault: Fault) -> bool:
        return (
            self.state is _ASKED
            and self._pieces is not None
            and self._retries < limits.RETRIES_MAX
            and fault is faults.BROKE_OFF
            and origin is not None
            and origin.reused
            and self.exchange.method in _REPEATABLE
        )

    def _balance_origin(self) -> None:
        """Read its answer only while the client takes it and nobody looks at what is here."""
        paused = self._client_is_full or self.state is _JUDGING
        if paused is not self._is_origin_paused and self._origin is not None:
            self._is_origin_paused = paused
            self._origin.pause(paused=paused)

    def _release_origin(self) -> None:
        origin, self._origin = self._origin, None
        if origin is not None:
            if self._is_origin_paused:  # it is to be read for the next exchange
                origin.pause(paused=False)
                self._is_origin_paused = False
            origin.release(usable=self.body is _ENDED)

    def _drop_origin(self) -> None:
        origin, self._origin = self._origin, None
        if origin is not None:
            origin.abort()
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()

    # the origin's answer

    def interim(self, status: int, headers: "Headers") -> None:
        """RFC 9110 §15.2: passed on to those who know them; 100 was asked for by nobody."""
        if self.state is _ASKED and status != 100:
            self.client.interim(status, headers)

    def answer_head(
        self,
        status: int,
        headers: "Headers",
        found: dict[bytes, bytes],
        length: int | None,
        bodyless: bool,
    ) -> None:
        """`headers` without those of the origin's connection; `found` has them by name, the last of each."""
        if b"date" not in found:  # RFC 9110 §6.6.1
            headers = [*headers, (b"date", self.worker.date)]
        watch = self.exchange.watch
        if watch is None or status == 101:
            self._tell(status, headers, length, bodyless)
            return
        self._held = watch.hold(status, headers, length, bodyless)
        self.state = _HOLDING
        self._look()

    def answer_piece(self, piece: bytes) -> None:
        state = self.state
        if state is _ANSWERING:
            self.client.piece(piece)
        elif state is _TUNNELLING:
            self.client.piece(piece)
            self.client.flush()
            self.client.wait(limits.TUNNEL_SECONDS_MAX)
        elif self._held is not None:
            self._held.add(piece)
            self._look()

    def flush(self) -> None:
        """Everything of one read of the origin was said."""
        if self.client.flush():
            self.client.wait(limits.ORIGIN_BODY_SECONDS_MAX)

    def answer_end(self) -> None:
        if self.state is _ANSWERING:
            self.state = _DONE
            self._release_origin()
            if self._waiting:
                self._leave_turns()
            self.client.end(drained=self.body is _ENDED)
        elif self._held is not None:
            self._held.ended = True
            self._release_origin()
            self._look()

    def switched(self) -> bool:
        """Behind a head that says 101: bytes are passed on as they are. False when nobody asked."""
        if self.state is not _ANSWERING or not self.upgrades:
            return False
        self.client.flush()
        self.state = _TUNNELLING
        self.client.wait(limits.TUNNEL_SECONDS_MAX)
        self.client.switch()
        return True

    def _tunnel_out(self, piece: bytes) -> None:
        if self._origin is not None:
            self._origin.piece(piece)
            self.client.wait(limits.TUNNEL_SECONDS_MAX)

    def _look(self) -> None:
        """Have the answer looked at, when enough of it is here."""
        held, watch = self._held, self.exchange.watch
        assert held is not None
        assert watch is not None
        if self.state is not _HOLDING:
            return
        self.client.wait(limits.ORIGIN_BODY_SECONDS_MAX)
        if held.is_enough:
            self.state = _JUDGING
            self._balance_origin()
            self._judged(self._begun(watch.decide(held)))

    def _judged(self, answer: Response | Later | None) -> None:
        if isinstance(answer, Later):
            self._wait_turn(answer, self._judged_later)
            return
        held, self._held = self._held, None
        assert held is not None
        if answer is not None:
            self._answer(answer)
            return
        self._tell(held.status, held.headers, held.length, held.bodyless)
        if self.state is not _ANSWERING:  # a phase had another answer
            return
        for piece in held.chunks:
            self.client.piece(piece)
        if held.ended:
            self.answer_end()
        else:
            self._balance_origin()

    def _judged_later(self, answer: Response | None) -> None:
        self._judged(answer)
        if self.state is _ANSWERING:
            self.flush()

    def _tell(self, status: int, headers: "Headers", length: int | None, bodyless: bool) -> None:
        """Say the answer's head to the client, as the phases make it."""
        pipeline = self.route.pipeline
        if pipeline.has_response:
            said = self.exchange.response = ResponseHead(status, headers)
            answer = pipeline.response(self.exchange)
            if answer is not None:
                self._say(answer)
                return
            status = said.status
            headers = [header for header in said.headers if header[0] not in answers.FRAMING]
            if length is not None:
                headers.append((b"content-length", b"%d" % length))
        self.state = _ANSWERING
        self.client.head(status, headers, length, bodyless=bodyless, drained=self.body is _ENDED)
        self.worker.count(status)

    # an answer of the edge's own

    @property
    def _is_answered(self) -> bool:
        return self.state is _ANSWERING or self.state is _TUNNELLING

    def _fail(self, fault: Fault) -> None:
        self.worker.observer.failed(self.exchange, fault.status, fault.reason)
        self._show(fault.status, fault.reason)

    def _show(self, status: int, reason: str) -> None:
        exchange = self.exchange
        accept = exchange.header(b"accept")
        self._stop(pages.page(status, reason, ray=exchange.ray, host=exchange.host, accept=accept))

    def _stop(self, response: Response) -> None:
        """Answer in the place of the origin; once its answer has begun, nothing can be said behind that."""
        if self._is_answered:
            self._cut()
        else:
            self._answer(response)

    def _answer(self, response: Response) -> None:
        pipeline = self.route.pipeline
        if pipeline.has_response:
            exchange = self.exchange
            head = ResponseHead(response.status, list(response.headers), from_origin=False)
            exchange.response = head
            other = pipeline.response(exchange)
            headers = [header for header in head.headers if header[0] not in answers.FRAMING]
            response = Response(head.status, headers, response.body) if other is None else other
        self._say(response)

    def _say(self, response: Response) -> None:
        """Answer in the place of the origin, and be through."""
        self._leave_all(_DONE)
        self.worker.count(response.status)
        self.client.answer(response, drained=self.body is _ENDED)

    def _cut(self) -> None:
        self._leave_all(_CUT)
        self.client.abort()

    def _leave_all(self, state: State) -> None:
        self.state = state
        self._leave_turns()
        self._drop_origin()
        self._held = None

    def _leave_turns(self) -> None:
        waiting, self._waiting = self._waiting, []
        for later in waiting:
            self.worker.turns.leave(self.exchange.client, later)
