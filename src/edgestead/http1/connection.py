"""One HTTP/1.1 connection of a server: requests in order, answers in order. No transport, no clock.

Owns  the states of a connection, parsing, keep-alive, pipelining, what is read on and what is not.
Not   sockets, tasks and time (`protocol`, and the edge's client); what an answer says (`answering`, and the
      edge's stream); routing and meaning; which heads may be read (`head`).

Bytes and the ends of answers go in; requests get their bodies at once, and `actions` come out, for a driver
to carry out in order. The API, objects and the edge have one and the same.

             a head begins        it is complete            its answer has begun
    WAITING ───────────────▶ HEAD ───────────────▶ SERVING ─────────────────────▶ SENDING
       ▲ └────────── a whole head ───────────────────▶ │                             │ └──▶ TUNNELLED (101)
       │                                               │                             │
       └───────────────────────────────────────────────┴─────────────────────────────┘
         an answer is complete: WAITING for a request, HEAD if one has begun, SERVING the next that is here

    DRAINING   it is answered, and its body has not ended: what comes of it is dropped, then WAITING
    LINGERING  the last answer is out; what still comes is dropped, so that the client sees that answer: a
               connection that is closed with bytes unread is reset
    TUNNELLED  no HTTP any more: what comes is a piece of the last request
    CLOSED     nothing happens any more

TABLE has every step; docs/design/0026-one-http1.md draws it.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import httptools

from edgestead.http1 import limits
from edgestead.http1.connections import Account, refused
from edgestead.http1.head import (
    Headers,
    Refused,
    is_too_large,
    refusal_of,
    too_large,
    too_many_headers,
    too_much_overhead,
)
from edgestead.http1.limits import HEAD_BYTES_MAX, PIECE_BYTES
from edgestead.http1.overhead import Overhead
from edgestead.http1.request_line import Line, line_behind, readable
from edgestead.model.budgets import table
from edgestead.model.budgets.table import Budget


class _Named(Enum):
    __hash__ = object.__hash__  # Enum's own is written in Python; a request looks up a dozen


class State(_Named):
    WAITING = "WAITING"
    HEAD = "HEAD"
    SERVING = "SERVING"
    SENDING = "SENDING"
    DRAINING = "DRAINING"
    LINGERING = "LINGERING"
    TUNNELLED = "TUNNELLED"
    CLOSED = "CLOSED"


class Event(_Named):
    """What happens to a connection, in words that the diagram uses."""

    BYTE = "a head begins"
    REQUEST = "a head is complete"
    UNREADABLE = "what came cannot be read"
    BROKEN = "the body of what is answered cannot be read"
    INTERIM = "an interim answer"
    STREAM = "an answer begins"
    SWITCHED = "another protocol begins"
    NEXT = "answered, and the next is here"
    BEGUN = "answered, and a head has begun"
    IDLE = "answered"
    UNREAD = "answered, with its body unread"
    DRAINED = "that body has ended"
    LAST = "answered for the last time"
    LAST_UNREAD = "answered for the last time, with bytes unread"
    BEHIND = "answered, and what came behind cannot be read"
    BROKE_OFF = "there is no answer, or no end of it"
    LATE = "too late"
    FLOOD = "too much"
    ENDS = "the server ends"
    LOST = "the client is gone"


_ANSWERED = {
    Event.NEXT: State.SERVING,
    Event.BEGUN: State.HEAD,
    Event.IDLE: State.WAITING,
    Event.UNREAD: State.DRAINING,
    Event.LAST: State.CLOSED,
    Event.LAST_UNREAD: State.LINGERING,
    Event.BEHIND: State.LINGERING,
    Event.BROKE_OFF: State.CLOSED,
    Event.LOST: State.CLOSED,
}
TABLE: dict[State, dict[Event, State]] = {
    State.WAITING: {
        Event.BYTE: State.HEAD,
        Event.REQUEST: State.SERVING,
        Event.UNREADABLE: State.LINGERING,
        Event.LATE: State.CLOSED,
        Event.ENDS: State.CLOSED,
        Event.LOST: State.CLOSED,
    },
    State.HEAD: {
        Event.REQUEST: State.SERVING,
        Event.UNREADABLE: State.LINGERING,
        Event.LATE: State.LINGERING,
        Event.ENDS: State.CLOSED,
        Event.LOST: State.CLOSED,
    },
    State.SERVING: {
        **_ANSWERED,
        Event.INTERIM: State.SERVING,
        Event.STREAM: State.SENDING,
        Event.BROKEN: State.LINGERING,
    },
    State.SENDING: {**_ANSWERED, Event.SWITCHED: State.TUNNELLED, Event.BROKEN: State.CLOSED},
    State.DRAINING: {
        Event.DRAINED: State.WAITING,
        Event.BROKEN: State.CLOSED,
        Event.FLOOD: State.CLOSED,
        Event.LATE: State.CLOSED,
        Event.ENDS: State.CLOSED,
        Event.LOST: State.CLOSED,
    },
    State.LINGERING: {
        Event.LATE: State.CLOSED,
        Event.FLOOD: State.CLOSED,
        Event.ENDS: State.CLOSED,
        Event.LOST: State.CLOSED,
    },
    State.TUNNELLED: {
        Event.LAST: State.CLOSED,
        Event.BROKE_OFF: State.CLOSED,
        Event.LOST: State.CLOSED,
    },
    State.CLOSED: {Event.LATE: State.CLOSED, Event.LOST: State.CLOSED},
}
_WAITING, _HEAD, _SERVING, _SENDING, _DRAINING, _LINGERING, _TUNNELLED, _CLOSED = (
    State  # a member of an enum is found slowly
)


_DROPPING = frozenset({_DRAINING, _LINGERING, _CLOSED})
SECONDS: dict[State, float | None] = {
    State.WAITING: limits.IDLE_SECONDS_MAX,
    State.HEAD: limits.HEAD_SECONDS_MAX,
    State.SERVING: None,
    State.SENDING: None,
    State.DRAINING: limits.UNREAD_BODY_SECONDS_MAX,
    State.LINGERING: limits.LINGER_SECONDS_MAX,
    State.TUNNELLED: None,
    State.CLOSED: limits.STALL_SECONDS_MAX,  # that the client has to take what was sent
}


class Action(_Named):
    """What a driver has to do, with the value beside it."""

    WRITE = "send these bytes"
    SERVE = "it is this request's turn, when that of its address has come"
    READ_SOON = "call `read_on`, when the turn of its address has come"
    PAUSE = "read no more"
    RESUME = "read again"
    END_WRITING = "tell the client that nothing more comes"
    CLOSE = "close when all is sent"
    ABORT = "close at once"


_BYTE, _REQUEST, _IDLE = Event.BYTE, Event.REQUEST, Event.IDLE
_AWAITED = Line.AWAITED
_HEAD_END = b"\r\n\r\n"


class Incoming(Protocol):
    """A request, as its connection knows it. Bodies of no length are given neither pieces nor an end."""

    @property
    def upgrades(self) -> bool:
        """Whether it may get another protocol: then what follows it is not read before it is answered."""
        ...

    @property
    def held_bytes(self) -> int:
        """Of its body, received and not passed on."""
        ...

    @property
    def drawn_bytes(self) -> int:
        """The same, and what is passed on and not taken: the account is drawn on for it."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether the client should send no more of its body for now."""
        ...

    def body_piece(self, piece: bytes) -> None: ...

    def body_end(self) -> None: ...

    def unreadable(self, status: int, reason: str) -> None:
        """Its body has no end that can be read. Unless it is answered by then, the connection refuses it."""
        ...

    def client_gone(self) -> None: ...


R = TypeVar("R", bound=Incoming)
Make = Callable[[str, bytes, bytes, Headers, bool], tuple[R, int | None]]
"""A request of (version, method, target, headers, keep-alive), and the length of its body; None is chunked.
Raises Refused."""
Refuse = Callable[[int, str], bytes]
"""The answer to what is refused before there is a request, of (status, reason)."""


def _no_request(*_: object) -> NoReturn:
    raise Refused(400, "the client is gone")


def _no_words(*_: object) -> bytes:
    return b""


_NO_PARSER = httptools.HttpRequestParser(None)  # calls nobody


class Connection(Generic[R]):
    """`make` and `refuse` are the application's. With `turned_away` the first head is refused.

    `account` is drawn on for what is held in memory of the client's; without one there is no limit of that.
    The driver calls `late` when a state that `entered` counts has lasted for `seconds`; None is as long as it
    takes. `current` is the request that is to be answered.

    Whose turn has come with what was received, `receive` and `read_on` return: no action, since that is so
    nearly every time.
    """

    __slots__ = (
        "_begun",
        "_droppable_bytes",
        "_ends",
        "_fault",
        "_head_bytes",
        "_headers",
        "_headers_max",
        "_held",
        "_hidden_length",
        "_is_paused",
        "_is_primed",
        "_is_stopped",
        "_left_bytes",
        "_line",
        "_make",
        "_overhead",
        "_parser",
        "_queued",
        "_reads_on",
        "_receiving",
        "_refuse",
        "_target",
        "_trailers",
        "_turn",
        "_turned_away",
        "_unsent_bytes",
        "_waiting",
        "account",
        "actions",
        "current",
        "entered",
        "seconds",
        "state",
    )

    def __init__(
        self,
        make: Make[R],
        refuse: Refuse,
        *,
        account: Account | None = None,
        turned_away: Refused | None = None,
        headers_max: int = limits.HEADERS_MAX,
    ) -> None:
        self.account = account
        self._headers_max = headers_max
        self._make, self._refuse, self._turned_away = make, refuse, turned_away
        self.state = _WAITING
        self.seconds = SECONDS[_HEAD]  # to say something at all
        self.entered = 0
        self.actions: list[tuple[Action, Any]] = []
        self.current: R | None = None
        self._turn: R | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: Headers = []
        self._begun = False  # a head has, and is not complete
        self._head_bytes = 0  # of the head that is being read; 0 between heads
        self._line = _AWAITED
        self._receiving: R | None = None  # whose body is being read
        self._left_bytes = 0  # of a body whose length is known
        self._overhead: Overhead | None = None  # of one whose length is not
        self._trailers = 0
        self._hidden_length: int | None = 0  # of the body of a request to upgrade: llhttp does not see that
        self._is_primed = True  # False while the parser is told of such a body
        self._is_stopped = False  # behind a request that may get another protocol
        self._waiting: deque[R] = deque()  # complete heads behind the request that is served
        self._queued: deque[int] = deque()  # what each of them takes in memory
        self._unsent_bytes = 0  # of answers that the client has not taken, where they are many
        self._held = b""  # not parsed yet
        self._fault: Refused | None = None  # why nothing behind them can be read
        self._reads_on = True  # no request has been read that is the last one
        self._is_paused = self._ends = False
        self._droppable_bytes = 0

    # bytes

    def receive(self, data: bytes) -> R | None:
        if self._held:
            self._held += data  # at most what was read already when reading was paused
        elif self.state is _WAITING and len(data) <= PIECE_BYTES:  # the usual case
            if left := self._feed(data):
                self._parse(data[-left:])
            elif self._receiving is not None or self._waiting or self._head_bytes:
                self.balance()
        else:
            self._parse(data)
        turn, self._turn = self._turn, None
        return turn

    def hold(self, data: bytes) -> None:
        """Received, and not to be read before `read_on`. What would be dropped is dropped at once."""
        if self.state is _LINGERING or self.state is _CLOSED:
            self._parse(data)
        else:
            self._held += data
            self.balance()

    def read_on(self) -> R | None:
        """Go on with what was held."""
        held, self._held = self._held, b""
        self._parse(held)
        turn, self._turn = self._turn, None
        return turn

    def _parse(self, data: bytes) -> None:
        """As much as may be parsed; what follows is dropped, held, or no HTTP, as the state says."""
        at, end = 0, len(data)
        while at < end:
            state, left = self.state, end - at
            if state is _LINGERING:
                self._drop(left)
                break
            if state is _TUNNELLED:
                assert self.current is not None
                self.current.body_piece(data[at:])
                break
            if state is _CLOSED or self._fault is not None or not (self._reads_on or self._receiving):
                break  # nothing is read behind what cannot be read, or behind the last request
            if self._is_stopped or len(self._waiting) > limits.REQUESTS_WAITING_MAX:
                self._held = data[at:]
                break
            if left > PIECE_BYTES and not 0 < left <= self._left_bytes:
                left = PIECE_BYTES  # of many small requests each costs a hundred times its own bytes
            if at and self._overhead is not None:
                self._held = data[at:]  # so do chunks, and of them nothing else makes an end
                self._act(Action.READ_SOON)
                break
            at += left
            at -= self._feed(data[at - left : at])
        if (
            self._receiving is not None
            or self._waiting
            or self._is_paused
            or self._held
            or self._fault is not None
            or self.account is not None
        ):
            self.balance()

    def _feed(self, data: bytes) -> int:
        """Parse; how many bytes are left: where it has to stop at an upgrade, or before a request line.

        Of many small requests one at a time: parsed, each takes fifty times its bytes in memory, as objects
        that every collection of garbage looks at.
        """
        overhead, left = self._overhead, 0
        if self._receiving is None:
            end = data.find(_HEAD_END) + len(_HEAD_END)
            if (
                len(_HEAD_END) <= end < len(data) and data.find(_HEAD_END, end) >= 0
            ):  # another request follows
                data, left = data[:end], len(data) - end
            if self._line is not _AWAITED or not data.isascii():
                data, rest, self._line = readable(data, self._line)
                left += len(rest)
            self._head_bytes += len(data)
        elif 0 < self._left_bytes < len(data):
            data, left = data[: self._left_bytes], len(data) - self._left_bytes
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._stopped_at_upgrade()
            return left + len(data) - int(pause.args[0])
        except httptools.HttpParserError as error:
            if self._reads_on or self._receiving is not None:  # else it is bytes behind the last request
                self._fail(refusal_of(error, data))
            return 0
        if self._head_bytes:
            self._head_goes_on(data)
        elif overhead is not None and overhead is self._overhead and overhead.is_too_much(len(data)):
            self._fail(too_much_overhead())
        return left

    def _head_goes_on(self, data: bytes) -> None:
        if self._head_bytes > HEAD_BYTES_MAX:
            self._fail(too_large())
            return
        if len(self._headers) > self._headers_max and self._begun:
            self._fail(too_many_headers())
            return
        if self._line is _AWAITED:
            self._line = line_behind(data)
        if self._begun and self.state is _WAITING:
            self._go(_BYTE)

    def _stopped_at_upgrade(self) -> None:
        """Upgrades are ignored (RFC 9110 §7.8) unless the request may have one. llhttp stops in either case.

        A new parser goes on; it is told of the body, if there is one, by a head without the upgrade.
        """
        length, self._hidden_length = self._hidden_length, 0
        newest = self._waiting[-1] if self._waiting else self.current
        self._is_stopped = length == 0 and newest is not None and newest.upgrades
        self._parser = httptools.HttpRequestParser(self)
        if length != 0:
            framing = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
            self._is_primed = False
            self._parser.feed_data(b"POST / HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n" % framing)
            self._is_primed = True

    # the parser

    def on_message_begin(self) -> None:
        if self._is_primed:
            self._target, self._headers = b"", []
            self._head_bytes = self._head_bytes or 1
            self._begun = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers end here (RFC 9110 §6.5.1). Raises Refused: there are more than headers may be."""
        if self._receiving is None:
            self._headers.append((name.lower(), value))
            return
        self._trailers += 1
        if self._trailers > limits.HEADERS_MAX:
            raise too_many_headers("trailers")

    def on_headers_complete(self) -> None:
        """Raises Refused."""
        if not self._is_primed:
            return
        if self._turned_away is not None:
            raise self._turned_away
        parser, headers, target = self._parser, self._headers, self._target
        if self._head_bytes + PIECE_BYTES > HEAD_BYTES_MAX and is_too_large(target, headers):
            raise too_large()
        keeps_alive = parser.should_keep_alive()
        request, length = self._make(
            parser.get_http_version(), parser.get_method(), target, headers, keeps_alive
        )
        head_bytes, self._head_bytes, self._begun = self._head_bytes, 0, False
        self._reads_on, self._line = keeps_alive, _AWAITED
        if length != 0:
            self._receiving, self._trailers = request, 0
            self._left_bytes, self._overhead = (0, Overhead()) if length is None else (length, None)
            if parser.should_upgrade():
                self._hidden_length = length
        if self.current is None:
            self.current = self._turn = request
            self._go(_REQUEST)
        else:
            self._waiting.append(request)
            self._queued.append(limits.REQUEST_BYTES + head_bytes)

    def on_body(self, chunk: bytes) -> None:
        receiving = self._receiving
        if receiving is None:
            return
        if self._overhead is None:
            self._left_bytes -= len(chunk)
        else:
            self._overhead.content_bytes += len(chunk)
        if self.state is _DRAINING:
            self._drop(len(chunk))
        else:
            receiving.body_piece(chunk)
            if receiving is not self.current:
                self._queued[-1] += len(chunk) + limits.CHUNK_BYTES

    def on_message_complete(self) -> None:
        receiving = self._receiving
        if receiving is None or self._hidden_length != 0:
            return
        self._receiving = self._overhead = None
        if self.state is _DRAINING:
            self._go(Event.DRAINED)
        else:
            receiving.body_end()

    @property
    def unread_head(self) -> tuple[bytes, bytes, Headers]:
        """Method, target and headers of what is refused, as far as they were read."""
        return self._parser.get_method() if self._target else b"", self._target, self._headers

    # what is read on

    def balance(self) -> None:
        """Read on only while what is here already is worked off. For who is no longer full, too."""
        if self.account is not None:
            self._draw(self.account)
        current, receiving, waiting = self.current, self._receiving, self._waiting
        full = self.state not in _DROPPING and (
            (current is not None and current.is_full)
            or (receiving is not None and receiving is not current and receiving.is_full)
            or (bool(waiting) and (len(waiting) > limits.REQUESTS_WAITING_MAX or waiting[-1].held_bytes > 0))
            or self._fault is not None
        )
        if self._held and self.state is not _LINGERING:
            full = True
        if full != self._is_paused and self.state is not _CLOSED:
            self._is_paused = full
            self._act(Action.PAUSE if full else Action.RESUME)

    # memory

    def _held_bytes(self) -> int:
        held = limits.CONNECTION_BYTES + self._head_bytes + len(self._held) + self._unsent_bytes
        if self._queued:
            held += sum(self._queued)
        return held if self.current is None else held + limits.REQUEST_BYTES + self.current.drawn_bytes

    def _draw(self, account: Account) -> None:
        """Draw on the account for what is held now. What is over the budget is refused."""
        refusal = account.hold(self._held_bytes())
        if refusal is not None and self._fault is None and self.state not in _DROPPING:
            self._forget_waiting()
            self._fail(refused(refusal))

    def _forget_waiting(self) -> None:
        """What has not begun is not served: the client meets the refusal in its place."""
        self._waiting.clear()
        self._queued.clear()
        self._held = b""
        if self._receiving is not self.current:
            self._receiving = None

    def unsent(self, octets: int) -> None:
        """So many octets of answers are not taken by the client. Over the budget it is given up."""
        self._unsent_bytes = octets
        if self.account is not None and self.account.hold(self._held_bytes()) is not None:
            self._act(Action.ABORT)

    def stalled(self) -> None:
        """The client did not take enough of its answers in time."""
        self._count(table.HTTP_STALL_SECONDS)

    def _count(self, budget: Budget | None) -> None:
        if budget is not None and self.account is not None:
            self.account.refuse(budget)

    # answers

    def interim(self, data: bytes) -> None:
        """Send an answer before the answer (RFC 9110 §15.2)."""
        self._go(Event.INTERIM)
        self._act(Action.WRITE, data)

    def stream(self) -> None:
        """The answer has begun, and what is still to come of it is sent by the driver."""
        self._go(Event.STREAM)

    def switch(self) -> None:
        """The answer was another protocol: what comes is none of HTTP from now on."""
        self._go(Event.SWITCHED)
        if self._held:
            self.read_on()
        self.balance()

    def answered(self, *, keeps_alive: bool) -> None:
        """The answer to the current request is complete, and sent: the next one, or the end."""
        is_whole = self._receiving is None or self._receiving is not self.current
        self.current = None
        if not keeps_alive or self._ends or self.state is _TUNNELLED:
            self._end(is_whole=is_whole)
            return
        if not is_whole:
            self._go(Event.UNREAD)
            self._droppable_bytes = limits.UNREAD_BODY_BYTES_MAX
        elif self._waiting:
            self.current = self._waiting.popleft()
            self._queued.popleft()
            self._go(Event.NEXT)
            self._act(Action.SERVE, self.current)
        elif self._fault is not None:
            self._say_refusal(Event.BEHIND, self._fault)
        else:
            self._go(Event.BEGUN if self._begun else _IDLE)
            self._is_stopped = False
        if self._held and not self._waiting:
            self._act(Action.READ_SOON)
        if self._is_paused:
            self.balance()
        elif self.account is not None and self.account.drawn > self.account.least:
            self._draw(self.account)

    def break_off(self) -> None:
        """There is no answer, or no end of the one that has begun: the client sees that by the end."""
        state = self.state
        if state is _SERVING or state is _SENDING or state is _TUNNELLED:
            self._go(Event.BROKE_OFF)
            self._act(Action.CLOSE if state is _SERVING else Action.ABORT)

    # the end

    def _end(self, *, is_whole: bool) -> None:
        """Close behind the last answer; where bytes are unread, or may still come, after they are dropped."""
        is_read = self._receiving is None and not self._waiting and not self._held and self._fault is None
        if is_read or self.state is _TUNNELLED:
            self._go(Event.LAST)
            self._act(Action.CLOSE)
            return
        self._go(Event.LAST_UNREAD)
        self._act(Action.END_WRITING)
        self._droppable_bytes = limits.LINGER_BYTES_MAX
        if not is_whole:
            self._droppable_bytes = limits.UNREAD_BODY_BYTES_MAX
            self.seconds = SECONDS[_DRAINING]
        if self._is_paused:
            self.balance()

    def _drop(self, octets: int) -> None:
        self._droppable_bytes -= octets
        if self._droppable_bytes < 0:
            self._count(table.HTTP_UNREAD_BYTES)
            self._go(Event.FLOOD)
            self._act(Action.ABORT)

    def _fail(self, refused: Refused) -> None:
        """Nothing more can be read: it is not known where the next request begins."""
        broken, self._receiving = self._receiving, None
        state, current = self.state, self.current
        if state is _LINGERING or state is _CLOSED:
            return
        self._count(refused.budget)
        if state is _DRAINING:
            self._go(Event.BROKEN)
            self._act(Action.CLOSE)
        elif current is None:
            self._say_refusal(Event.UNREADABLE, refused)
        else:
            self._fault = refused
            if broken is current:
                self._break_current(current, refused)
            elif broken is not None:
                self._waiting.pop()
                self._queued.pop()

    def _break_current(self, current: R, refused: Refused) -> None:
        """The body that cannot be read is that of the request that is being answered."""
        current.unreadable(*refused.args)
        if self.current is not current or self.state is _CLOSED:
            return  # it has answered that itself, or ended the connection
        self.current = None
        if self.state is _SERVING:
            self._say_refusal(Event.BROKEN, refused)
        else:
            self._go(Event.BROKEN)
            self._act(Action.ABORT)

    def _say_refusal(self, event: Event, refused: Refused) -> None:
        self._act(Action.WRITE, self._refuse(*refused.args))
        self._go(event)
        self._forget_waiting()
        self._headers, self._head_bytes = [], 0
        self._parser = httptools.HttpRequestParser(self)  # it has kept what it could not read to its end
        self._act(Action.END_WRITING)
        self._droppable_bytes = limits.LINGER_BYTES_MAX
        self.balance()

    def late(self) -> None:
        """The state has lasted for `seconds`."""
        if self.state is _HEAD:
            self._count(table.HTTP_HEAD_SECONDS)
            reason = f"its head did not arrive within {SECONDS[_HEAD]:g} seconds"
            self._say_refusal(Event.LATE, Refused(408, reason))
        else:
            is_over = self.state in (_LINGERING, _CLOSED)
            self._go(Event.LATE)
            self._act(Action.ABORT if is_over else Action.CLOSE)

    def finish(self) -> None:
        """The server ends: close, after the answer of what is being served."""
        self._ends = True
        if self.state not in (_SERVING, _SENDING, _TUNNELLED, _CLOSED):
            self._go(Event.ENDS)
            self._act(Action.CLOSE)

    def lost(self) -> None:
        """The client is gone, and what was drawn for it is given back."""
        self._go(Event.LOST)
        self.account = None
        self._waiting.clear()
        self._queued.clear()
        self._held, self._receiving = b"", None
        current, self.current = self.current, None
        if current is not None:
            current.client_gone()
        self.actions.clear()
        # Nothing is read any more. With these it would be garbage in a circle: 17,000 objects of a
        # thousand connections, and 25 ms of the loop when they are collected.
        self._parser, self._make, self._refuse = _NO_PARSER, _no_request, _no_words

    def _go(self, event: Event) -> None:
        state = self.state = TABLE[self.state][event]
        self.entered += 1
        self.seconds = SECONDS[state]

    def _act(self, action: Action, value: Any = None) -> None:
        self.actions.append((action, value))
