"""The side of an exchange that faces its request: a body on its way from the client to the origin.

Owns  what is held of the body and how much, its inspection piece by piece, the time that it may take.
Not   deciding (`machine`); what is found in a piece (`exchanges.late_body`).

    COMING ──▶ ENDED        STOPPED: a piece of it is being inspected, and what follows waits behind that;
       ▲ │       ▲ │        ENDING: so it is, and the end is here, too. ENDED goes back to that only where
       │ ▼       │ ▼        phases that had the start want to see the rest
    STOPPED ──▶ ENDING
"""

from edgestead.edge import limits
from edgestead.edge.exchanges.exchange import Response
from edgestead.edge.exchanges.late_body import LateBody
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.pieces import hold
from edgestead.edge.http.ends import OVER, Ends
from edgestead.edge.http.states import Body, State

TOO_LARGE = "The request's body is larger than this zone takes."
_GATHERING, _DECIDING, _TUNNELLING, _DONE, _CUT = (
    *(State.GATHERING, State.DECIDING, State.TUNNELLING, State.DONE, State.CUT),
)
_COMING, _STOPPED, _ENDING, _ENDED = Body


class RequestSide(Ends, eq=False):
    """`body` says how far it is."""

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
        if state is _DONE or state is _CUT or self.body is _ENDED:
            return  # behind the end of a body nothing is its
        self.body_bytes += len(piece)
        if state is not _GATHERING and self.body_bytes > self.route.body_bytes_max:
            self.refuse(413, TOO_LARGE)
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

    def grant_time(self) -> None:
        """It was the client that had to wait: the time of its body begins again."""
        self._due = self.worker.soon + limits.SLOW_BODY_SECONDS_MAX - self._earned_seconds

    # pieces

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

    def _pass_inspected(self, late: LateBody, pieces: list[bytes], *, ended: bool) -> None:
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
        self._cleared()
        if self.state not in OVER:
            self.client.balance()

    def _cleared(self) -> None:
        """No piece is being inspected any more."""
        raise NotImplementedError

    def _end_body(self) -> None:
        if self.state in OVER:
            return
        late = self.exchange.late
        answer = None if late is None else late.end()
        if answer is not None:
            self._stop(answer)
        elif self._origin is not None:
            self._origin.end()
            self.client.wait(self.route.head_seconds)

    def _tunnel_out(self, piece: bytes) -> None:
        if self._origin is not None:
            self._origin.piece(piece)
            self.client.wait(limits.TUNNEL_SECONDS_MAX)

    # time

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
