"""One exchange as a state machine without I/O: a request, the phases, an origin, an answer.

Owns  the way through the phases to an origin, the second try, the ends of waiting for either side.
Not   the request's body (`request_side`), its answer (`answer_side`), how it ends (`ends`). Nor bytes on a
      wire, HTTP versions, sockets, tasks, the clock: what happens comes in as events, what is to be done goes
      out through `parties`. Every method returns at once.

    GATHERING ──▶ DECIDING ──▶ CONNECTING ──▶ ASKED ──▶ ANSWERING ──▶ DONE
     its body's       │            ▲  ▲         │ │         ▲ │
     start is         ▼            │  └─ retry ─┘ │         │ └──▶ TUNNELLING (101)
     kept for      CLEARING ───────┘              ▼         │
     the phases     parts of it             HOLDING ──▶ JUDGING
                    are inspected           the answer's    its body's start
                                            start is kept   is inspected

    From each of them: an answer of the edge's own ──▶ DONE, the client gone ──▶ CUT. Once an answer's head is
    with the client there is no other one: what fails from then on ──▶ CUT, which the client notices.

A request is sent a second time only if all of it is still held and not a byte of an answer has come.
docs/design/0027-the-edges-exchange.md has the tables and says what each state was before.
"""

from edgestead.edge import limits
from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.exchange import Response
from edgestead.edge.exchanges.faults import Fault
from edgestead.edge.exchanges.late_body import LateBody
from edgestead.edge.exchanges.later import Later
from edgestead.edge.exchanges.origins import HTTP_1, Aim
from edgestead.edge.http.answer_side import AnswerSide
from edgestead.edge.http.ends import OVER, UNINSPECTED
from edgestead.edge.http.parties import Origin
from edgestead.edge.http.request_side import TOO_LARGE, RequestSide
from edgestead.edge.http.states import Body, State
from edgestead.http1.head import ASTERISK

_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})  # RFC 9110 §9.2.2
# A member of an enum is found slowly, and these are asked for at every step.
_GATHERING, _DECIDING, _CLEARING, _CONNECTING, _ASKED = (
    *(State.GATHERING, State.DECIDING, State.CLEARING, State.CONNECTING, State.ASKED),
)
_ANSWERING, _TUNNELLING, _DONE, _CUT = State.ANSWERING, State.TUNNELLING, State.DONE, State.CUT
_COMING, _ENDED = Body.COMING, Body.ENDED


class ExchangeMachine(RequestSide, AnswerSide, eq=False):
    """One exchange: from the phases to an origin, and the ends of waiting for either."""

    # deciding

    def proceed(self) -> None:
        """All that has arrived was said, and it is this request's turn. Harmless when it began before."""
        if self.state is not _GATHERING:
            return
        exchange, route, length = self.exchange, self.route, self.read.length
        if (self.body_bytes if length is None else length) > route.body_bytes_max:
            self.refuse(413, TOO_LARGE)
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

    def _clear(self, late: LateBody) -> None:
        """Of what is here already, keep what may pass; or the request ends with another answer."""
        self.state = _CLEARING
        pieces = self._pieces or []
        self._pieces, self.held_bytes = [late.first] if late.first else [], len(late.first)
        self._pass_inspected(late, pieces[1:], ended=self.body is _ENDED)
        self._cleared()

    def _cleared(self) -> None:
        if self.state is _CLEARING and (self.body is _COMING or self.body is _ENDED):
            self._ask()

    # the origin

    def _ask(self) -> None:
        worker = self.worker
        if self.body is not _ENDED:
            self.client.go_on()
        self.state = _CONNECTING
        aim = self._aim = self.route.origins.aim(
            self.exchange,
            self.route.tls_mode,
            worker.origin_port,
            worker.soon,
            HTTP_1 if self.upgrades else self.route.speaks,
        )
        origin = worker.pool.kept(aim)
        if origin is None:
            self._seek(aim)
        else:
            self.connected(origin)

    def _seek(self, aim: Aim) -> None:
        self.client.wait(2 * limits.CONNECTS_SECONDS_MAX)  # each step of the pool has a deadline of its own
        self._connecting = self.worker.pool.seek(aim, self, is_again=self._retries > 0)

    def connected(self, origin: Origin) -> None:
        self._connecting = None
        self._origin, self.state = origin, _ASKED
        self._origin_is_full = self._is_origin_paused = False  # the one before it may have been
        pieces, ended = self._pieces, self.body is _ENDED
        assert pieces is not None
        if not ended:
            self._pieces = None  # the rest is passed on as it comes: there is no second try
        held_bytes = self.held_bytes
        if held_bytes:
            self.held_bytes = sum(map(len, self._behind))
        if ended:
            self.client.wait(self.route.head_seconds)
        else:
            self._await_body()
        if held_bytes or not ended:
            self.client.balance()  # what was held is on its way: read on
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
        if self.state in OVER:
            return
        if self.state is _TUNNELLING:
            self.state = _DONE
            self.client.close()
            self._note(self.status)
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
            and origin is not None
            and (
                fault is faults.UNTAKEN
                or (fault is faults.BROKE_OFF and origin.reused and self.exchange.method in _REPEATABLE)
            )
        )

    # the ends of waiting

    def client_gone(self) -> None:
        if self.state not in OVER:
            self._leave_all(_CUT)

    def unreadable(self, status: int, reason: str) -> None:
        """The end of its body cannot be found."""
        self.refuse(status, f"The request was refused: {reason}.")

    def late(self) -> None:
        """The timer is over."""
        if self.state in OVER:
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
