"""The ends of an exchange, and what it has to leave then: an origin, work that waits for its turn.

Owns  what an exchange remembers, answers of the edge's own, holding on to an origin and to a turn.
Not   how it gets there (`request_side`, `answer_side`, `machine`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from edgestead.edge import limits
from edgestead.edge.exchanges import answers, pages
from edgestead.edge.exchanges.answer_watch import HeldAnswer
from edgestead.edge.exchanges.exchange import Exchange, Response, ResponseHead
from edgestead.edge.exchanges.faults import Fault
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.origins import Aim
from edgestead.edge.exchanges.packing import Coder
from edgestead.edge.exchanges.turns import Owner
from edgestead.edge.http.parties import Client, Job, Origin, Worker
from edgestead.edge.http.states import Body, State
from edgestead.edge.routing import Route
from edgestead.http1.head import Head
from edgestead.model.events import Decision

UNINSPECTED = "The request could not be checked in time: too many others are being checked. Please try again."
LEFT = 499  # in the access log: the client was gone before there was an answer
OVER = (State.DONE, State.CUT)
# A member of an enum is found slowly, and these are asked for at every step.
_ANSWERING, _TUNNELLING, _JUDGING, _DONE, _CUT, _ENDED = (
    *(State.ANSWERING, State.TUNNELLING, State.JUDGING, State.DONE, State.CUT, Body.ENDED),
)


class Ends(msgspec.Struct, eq=False):
    """Made for every request: in C, which is why all parts have their fields here.

    `added` and `upgrades` are for the head that the origin gets. Drivers read none of the fields behind
    `body_bytes`.
    """

    exchange: Exchange
    client: Client
    worker: Worker
    route: Route
    read: Head
    added: bytes
    upgrades: bool
    body: Body
    state: State = State.GATHERING
    held_bytes: int = 0
    body_bytes: int = 0
    status: int = 0  # of the answer that has begun
    sent_bytes: int = 0  # of its body
    _origin: Origin | None = None
    _pieces: list[bytes] | None = []  # of the body, to be sent; None when the origin has them: no second try
    _behind: list[bytes] = []  # the piece that is being inspected, and what came meanwhile
    _waiting: list[Later] = []  # for their turns: the phases, a part of the body, the answer
    _held: HeldAnswer | None = None
    _coder: Coder | None = None  # what compresses the answer
    _is_streamed: bool = False  # its content's length is unknown: what came of it may be all for a while
    _aim: Aim | None = None
    _connecting: Job | None = None
    _retries: int = 0
    _due: float = 0.0  # when the body is too slow, but for what came of it; 0 before it is awaited
    _origin_is_full: bool = False  # it has to take some of the body first
    _client_is_full: bool = False
    _is_origin_paused: bool = False

    # answers of the edge's own

    def refuse(self, status: int, reason: str) -> None:
        """What the request asks for, or how it is asked, is not taken: an event, and a page."""
        if self.state in OVER:
            return
        self.worker.observer.decided(self.exchange, Decision("http", "refuse", status, reason=reason))
        self._show(status, reason)

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
        self.worker.took(self.exchange.arrived_us)
        self.client.answer(response, drained=self.body is _ENDED)
        if self.worker.access is not None:
            assert isinstance(response.body, bytes)
            bodyless = self.exchange.method == b"HEAD" or response.status in answers.NO_BODY
            self.sent_bytes = 0 if bodyless else len(response.body)
            self._note(response.status)

    def _note(self, status: int) -> None:
        """Have a line of the access log, if there is one."""
        if self.worker.access is not None:
            self.worker.access.ended(self.exchange, status, self.sent_bytes)

    def _cut(self) -> None:
        self._leave_all(_CUT)
        self.client.abort()

    @property
    def _is_answered(self) -> bool:
        return self.state is _ANSWERING or self.state is _TUNNELLING

    def _leave_all(self, state: State) -> None:
        self.state = state
        if state is _CUT:
            self._note(self.status or LEFT)
        self._leave_turns()
        self._drop_origin()
        self._held = None
        if self._coder is not None:
            self._drop_coder()

    def _drop_coder(self) -> None:
        self._coder = None
        self.worker.packers.end(self.exchange.client)

    # turns

    def _begun(self, outcome: Any) -> Any:
        """An outcome; a `Later` that has had what it may have at once, and has to wait."""
        if outcome.__class__ is not Later:
            return outcome
        return self.worker.turns.begin(self.exchange.client, outcome)

    def _wait_turn(self, later: Later, settle: Callable[[Any], None]) -> None:
        """Let others have theirs. All of the work has one deadline, its own."""

        def settled(outcome: Any) -> None:
            self._waiting.remove(later)
            settle(outcome)

        def crowded_out() -> None:
            self._waiting.remove(later)
            self.refuse(503, UNINSPECTED)

        self._waiting.append(later)
        self.client.wait(limits.INSPECTION_SECONDS_MAX)
        owner = Owner(settled, crowded_out, self._inspected_bytes)
        self.worker.turns.wait(self.exchange.client, later, owner)

    @property
    def _inspected_bytes(self) -> int:
        """What an inspection holds, about: it is not known before it ends."""
        octets = max(len(self.exchange.body), self.held_bytes)
        if self._held is not None:
            octets += sum(map(len, self._held.chunks))
        return limits.INSPECTION_BYTES + limits.INSPECTION_BYTES_PER_BYTE * octets

    def _leave_turns(self) -> None:
        waiting, self._waiting = self._waiting, []
        for later in waiting:
            self.worker.turns.leave(self.exchange.client, later)

    # the origin

    @property
    def drawn_bytes(self) -> int:
        """What of the request's body is here, held for the phases or for an origin that does not take it."""
        return self.held_bytes if self._origin is None else self.held_bytes + self._origin.held_bytes

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
