"""One HTTP/1.1 connection of a server: requests in order, answers in order. No transport, no clock.

Owns  the states of a connection, parsing, keep-alive, pipelining, what is read on and what is not.
Not   sockets, tasks and time (`protocol`); routing and meaning; which heads may be read (`head`).

Bytes and answers go in; `actions` come out, for a driver to carry out in order.

              a byte            a head is complete          its head is sent
    WAITING ─────────▶ HEAD ─────────────────────▶ SERVING ─────────────────▶ SENDING
       ▲                                              │                          │
       └──────────────────────────────────────────────┴──────────────────────────┘
         an answer is complete: WAITING for a request, HEAD if one has begun, SERVING the next that is here

    DRAINING   it is answered, and its body has not ended: what comes of it is dropped, then WAITING
    LINGERING  the last answer is out; what still comes is dropped, so that the client sees that answer: a
               connection that is closed with bytes unread is reset
    CLOSED     nothing happens any more

TABLE has every step; docs/design/0026-one-http1.md draws it.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

import httptools

from edgestead.http1 import limits
from edgestead.http1.head import Head, Headers, Refused, is_too_large, read, refusal_of, too_large
from edgestead.http1.limits import HEAD_BYTES_MAX, PIECE_BYTES
from edgestead.http1.messages import Body, Request, Response
from edgestead.http1.overhead import Overhead


class _Named(Enum):
    __hash__ = object.__hash__  # Enum's own is written in Python; a request looks up a dozen


class State(_Named):
    WAITING = "WAITING"
    HEAD = "HEAD"
    SERVING = "SERVING"
    SENDING = "SENDING"
    DRAINING = "DRAINING"
    LINGERING = "LINGERING"
    CLOSED = "CLOSED"


class Event(_Named):
    """What happens to a connection, in words that the diagram uses."""

    BYTE = "a head begins"
    REQUEST = "a head is complete"
    UNREADABLE = "what came cannot be read"
    BROKEN = "the body of what is answered cannot be read"
    STREAM = "an answer begins"
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
    State.SERVING: {**_ANSWERED, Event.STREAM: State.SENDING, Event.BROKEN: State.LINGERING},
    State.SENDING: {**_ANSWERED, Event.BROKEN: State.CLOSED},
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
    State.CLOSED: {Event.LATE: State.CLOSED, Event.LOST: State.CLOSED},
}
_WAITING, _HEAD, _SERVING, _SENDING, _DRAINING, _LINGERING, _CLOSED = (
    State  # a member of an enum is found slowly
)


_DROPPING = (_DRAINING, _LINGERING, _CLOSED)
SECONDS: dict[State, float | None] = {
    State.WAITING: limits.IDLE_SECONDS_MAX,
    State.HEAD: limits.HEAD_SECONDS_MAX,
    State.SERVING: None,
    State.SENDING: None,
    State.DRAINING: limits.UNREAD_BODY_SECONDS_MAX,
    State.LINGERING: limits.LINGER_SECONDS_MAX,
    State.CLOSED: limits.STALL_SECONDS_MAX,  # that the client has to take what was sent
}


class Action(_Named):
    """What a driver has to do, with the value beside it."""

    WRITE = "send these bytes"
    SERVE = "give this request to the application"
    SERVE_SOON = "the same, after other connections had their turn"
    READ_SOON = "call `read_on`, after other connections had their turn"
    PAUSE = "read no more"
    RESUME = "read again"
    END_WRITING = "tell the client that nothing more comes"
    CLOSE = "close when all is sent"
    ABORT = "close at once"


_BYTE, _REQUEST, _IDLE, _WRITE, _SERVE = Event.BYTE, Event.REQUEST, Event.IDLE, Action.WRITE, Action.SERVE
COPIED_BYTES_MAX = 64 * 1024  # of a body, to be sent together with its head
Refuse = Callable[[int, str, str], Response]
"""Words a refusal: (status, reason, the client's address). Its body is bytes."""


class Connection:
    """`refuse` words what is refused before there is a request. With `turned_away` the first head is.

    `wake` is called when there are actions outside of a call of the driver's: a body was read. The driver
    calls `late` when a state that `entered` counts has lasted for `seconds`; None is as long as it takes.
    """

    def __init__(
        self,
        refuse: Refuse,
        client: str = "",
        *,
        turned_away: Refused | None = None,
        wake: Callable[[], None] = lambda: None,
        date_line: Callable[[], bytes] = lambda: b"",
    ) -> None:
        self._refuse, self._client, self._turned_away = refuse, client, turned_away
        self._wake, self._date_line = wake, date_line
        self.state = _WAITING
        self.seconds = SECONDS[_HEAD]  # to say something at all
        self.entered = 0
        self.actions: list[tuple[Action, Any]] = []
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: Headers = []
        self._head_bytes = 0  # of the head that is being read; 0 between heads
        self._body: Body | None = None  # that is being read
        self._overhead = Overhead()  # of it
        self._trailers = 0
        self._hidden_body: Head | None = None  # of a request to upgrade: llhttp does not see that body
        self._is_primed = True  # False while the parser is told of such a body
        self._current: Request | None = None  # that is being answered
        self._keeps_alive = False  # after its answer
        self._left: int | None = None  # of a streamed answer whose length is known
        self._chunks = False  # one whose length is not
        self._waiting: deque[Request] = deque()  # complete heads behind it
        self._held = b""  # not parsed yet, behind too many of them
        self._fault: Refused | None = None  # why nothing behind them can be read
        self._reads_on = True  # no request has been read that is the last one
        self._is_paused = self._ends = False
        self._droppable_bytes = 0

    # bytes

    def receive(self, data: bytes) -> None:
        if self._held:
            self._held += data  # at most what was read already when reading was paused
        elif self.state is _WAITING and len(data) <= PIECE_BYTES:  # the usual case, at a fifth of the cost
            if (taken := self._feed(data)) < len(data):
                self._parse(data[taken:])
            elif self._body is not None or self._waiting:
                self._balance()
        else:
            self._parse(data)

    def read_on(self) -> None:
        """Go on with what was held."""
        held, self._held = self._held, b""
        self._parse(held)

    def _parse(self, data: bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            if self.state is _LINGERING:
                self._drop(end - at)
                break
            if self.state is _CLOSED or self._fault is not None or not (self._reads_on or self._body):
                break  # nothing is read behind what cannot be read, or behind the last request
            if len(self._waiting) > limits.REQUESTS_WAITING_MAX:
                self._held = data[at:]
                break
            piece = data[at : at + PIECE_BYTES] if end - at > PIECE_BYTES else data[at:]
            at += self._feed(piece)
        if self._body is not None or self._waiting or self._held or self._fault is not None:
            self._balance()

    def _feed(self, data: bytes) -> int:
        """Parse; how many bytes were taken: not all where the parser stops, at a request to upgrade."""
        body, overhead = self._body, self._overhead
        if body is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._parser = self._parser_behind_upgrade()
            return int(pause.args[0])
        except httptools.HttpParserError as error:
            if self._reads_on or self._body is not None:  # else it is bytes behind the last request
                self._fail(refusal_of(error, data))
            return len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._fail(too_large())
        elif body is not None and overhead is self._overhead and overhead.is_too_much(len(data)):
            self._fail(Refused(431, "there is too much around its chunks, or too many trailers"))
        return len(data)

    def _parser_behind_upgrade(self) -> httptools.HttpRequestParser:
        """Upgrades are ignored (RFC 9110 §7.8), but llhttp stops behind a head that asks for one.

        A new parser goes on; it is told of the body, if there is one, by a head without the upgrade.
        """
        parser, head = httptools.HttpRequestParser(self), self._hidden_body
        if head is not None:
            framing = (
                b"transfer-encoding: chunked" if head.length is None else b"content-length: %d" % head.length
            )
            self._is_primed = False
            parser.feed_data(b"POST / HTTP/1.1\r\nhost: x\r\n%b\r\n\r\n" % framing)
            self._is_primed, self._hidden_body = True, None
        return parser

    # the parser

    def on_message_begin(self) -> None:
        if self._is_primed:
            self._target, self._headers = b"", []
            self._head_bytes = self._head_bytes or 1
            if self.state is _WAITING:
                self._go(_BYTE)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers end here (RFC 9110 §6.5.1). Raises Refused: there are more than headers may be."""
        if self._body is None:
            self._headers.append((name.lower(), value))
            return
        self._trailers += 1
        if self._trailers > limits.HEADERS_MAX:
            raise Refused(431, f"it has more than {limits.HEADERS_MAX} trailers")

    def on_headers_complete(self) -> None:
        """Raises Refused."""
        if not self._is_primed:
            return
        if self._turned_away is not None:
            raise self._turned_away
        parser, headers, target = self._parser, self._headers, self._target
        if self._head_bytes + PIECE_BYTES > HEAD_BYTES_MAX and is_too_large(target, headers):
            raise too_large()
        version, method = parser.get_http_version(), parser.get_method()
        head = read(version, method, target, headers)
        expects = b"expect" in head.found and head.found[b"expect"].lower() == b"100-continue"
        body = self._body = Body(self._took, self._go_ahead if expects and version == "1.1" else None)
        self._reads_on = parser.should_keep_alive()
        request = Request(
            method.decode(),
            head.target,
            headers,
            self._client,
            body,
            head.found,
            self._reads_on,
            version == "1.0",
        )
        self._head_bytes = 0
        if head.length != 0:
            self._trailers, self._overhead = 0, Overhead()
            if parser.should_upgrade():
                self._hidden_body = head
        if self.state is _HEAD:
            self._begin(_REQUEST, request, _SERVE)
        else:
            self._waiting.append(request)

    def on_body(self, chunk: bytes) -> None:
        if self._body is not None:
            self._overhead.content_bytes += len(chunk)
            if self.state is _DRAINING:
                self._drop(len(chunk))
            else:
                self._body.feed(chunk)

    def on_message_complete(self) -> None:
        if self._body is not None and self._hidden_body is None:
            self._body.end()
            self._body = None
            if self.state is _DRAINING:
                self._go(Event.DRAINED)

    # bodies

    def _go_ahead(self) -> None:
        if self.state is _SERVING:
            self._act(Action.WRITE, b"HTTP/1.1 100 Continue\r\n\r\n")
            self._wake()

    def _took(self) -> None:
        self._balance()
        if self.actions:
            self._wake()

    def _balance(self) -> None:
        """Read on only while what is here already is worked off."""
        body = self._body
        full = self.state not in _DROPPING and (
            self._fault is not None
            or bool(self._held)
            or len(self._waiting) > limits.REQUESTS_WAITING_MAX
            or (body is not None and body.waiting_bytes > limits.BODY_BUFFER_BYTES)
        )
        if full != self._is_paused:
            self._is_paused = full
            self._act(Action.PAUSE if full else Action.RESUME)

    # answers

    def is_serving(self, request: Request) -> bool:
        return self._current is request

    def answer(self, response: Response) -> None:
        """The answer to the request that is served; of one that is streamed, the head."""
        request = self._current
        if request is None or self.state is not _SERVING:
            return  # the connection is gone, or said already why the request cannot be read
        # a client that asked whether to send its body, and was not told to, may send it or not
        is_certain = request.body.ended or request.body.wanted is None
        self._keeps_alive = not (response.close or self._ends) and request.keep_alive and is_certain
        body, is_old = response.body, request.is_old
        if not isinstance(body, bytes) and is_old and response.length is None:
            self._keeps_alive = False  # the end of the connection is the end of the answer
        head = response.head(keep_alive=self._keeps_alive, is_old=is_old, date_line=self._date_line())
        if isinstance(body, bytes):
            if request.method == "HEAD":
                self._act(Action.WRITE, head)
            elif len(body) <= COPIED_BYTES_MAX:
                self.actions.append((_WRITE, head + body))
            else:
                self._act(Action.WRITE, head)
                self._act(Action.WRITE, body)
            self._answered()
        else:
            self._act(Action.WRITE, head)
            self._go(Event.STREAM)
            self._left, self._chunks = response.length, response.length is None and not is_old
            if request.method == "HEAD":
                self._answered()

    def portion(self, data: bytes) -> bytes:
        """The next bytes of a streamed answer, as they are sent. Raises ValueError: it gets too long."""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise ValueError("an answer is longer than it said")
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunks and data else data

    def end_answer(self) -> None:
        """A streamed answer is complete."""
        if self._left:
            self.break_off()
        elif self.state is _SENDING:
            if self._chunks:
                self._act(Action.WRITE, b"0\r\n\r\n")
            self._answered()

    def break_off(self) -> None:
        """There is no answer, or no end of the one that has begun: the client sees that by the end."""
        if self.state is _SERVING or self.state is _SENDING:
            begun = self.state is _SENDING
            self._go(Event.BROKE_OFF)
            self._act(Action.ABORT if begun else Action.CLOSE)

    def _answered(self) -> None:
        request, self._current = self._current, None
        assert request is not None
        if not self._keeps_alive:
            self._end(request)
        elif not request.body.ended:
            self._go(Event.UNREAD)
            self._droppable_bytes = limits.UNREAD_BODY_BYTES_MAX
        elif self._waiting:
            self._begin(Event.NEXT, self._waiting.popleft(), Action.SERVE_SOON)
        elif self._fault is not None:
            self._say_refusal(Event.BEHIND, self._fault)
        else:
            self._go(Event.BEGUN if self._head_bytes else _IDLE)
        if self._held and not self._waiting:
            self._act(Action.READ_SOON)
        if self._is_paused:
            self._balance()

    def _begin(self, event: Event, request: Request, action: Action) -> None:
        self._current = request
        self._go(event)
        self.actions.append((action, request))

    # the end

    def _end(self, request: Request) -> None:
        """Close behind the last answer; where bytes are unread, or may still come, after they are dropped."""
        is_whole = request.body.ended
        if is_whole and self._body is None and not self._waiting and not self._held and not self._fault:
            self._go(Event.LAST)
            self._act(Action.CLOSE)
            return
        self._go(Event.LAST_UNREAD)
        self._act(Action.END_WRITING)
        self._droppable_bytes = limits.LINGER_BYTES_MAX
        if not is_whole:
            self._droppable_bytes = limits.UNREAD_BODY_BYTES_MAX
            self.seconds = SECONDS[_DRAINING]

    def _drop(self, octets: int) -> None:
        self._droppable_bytes -= octets
        if self._droppable_bytes < 0:
            self._go(Event.FLOOD)
            self._act(Action.ABORT)

    def _fail(self, refused: Refused) -> None:
        """Nothing more can be read: it is not known where the next request begins."""
        broken, self._body = self._body, None
        if broken is not None:
            broken.break_off()
        if self.state is _DRAINING:
            self._go(Event.BROKEN)
            self._act(Action.CLOSE)
        elif self._current is None:
            self._say_refusal(Event.UNREADABLE, refused)
        elif broken is None or broken is not self._current.body:
            if broken is not None:
                self._waiting.pop()
            self._fault = refused
        elif self.state is _SERVING:
            self._current = None
            self._say_refusal(Event.BROKEN, refused)
        else:
            self._go(Event.BROKEN)
            self._act(Action.ABORT)

    def _say_refusal(self, event: Event, refused: Refused) -> None:
        status, reason = refused.args
        response = self._refuse(status, reason, self._client)
        assert isinstance(response.body, bytes)
        head = response.head(keep_alive=False, date_line=self._date_line())
        self._act(Action.WRITE, head + response.body)
        self._go(event)
        self._waiting.clear()
        self._act(Action.END_WRITING)
        self._droppable_bytes = limits.LINGER_BYTES_MAX
        self._balance()

    def late(self) -> None:
        """The state has lasted for `seconds`."""
        if self.state is _HEAD:
            reason = f"its head did not arrive within {SECONDS[_HEAD]:g} seconds"
            self._say_refusal(Event.LATE, Refused(408, reason))
        else:
            is_over = self.state in (_LINGERING, _CLOSED)
            self._go(Event.LATE)
            self._act(Action.ABORT if is_over else Action.CLOSE)

    def finish(self) -> None:
        """The server ends: close, after the answer of what is being served."""
        self._ends = True
        if self.state not in (_SERVING, _SENDING, _CLOSED):
            self._go(Event.ENDS)
            self._act(Action.CLOSE)

    def lost(self) -> None:
        """The client is gone."""
        self._go(Event.LOST)
        self._waiting.clear()
        self._held = b""
        current, self._current = self._current, None
        if self._body is not None:
            self._body.break_off()
            self._body = None
        if current is not None:
            current.body.break_off()
        self.actions.clear()

    def _go(self, event: Event) -> None:
        state = self.state = TABLE[self.state][event]
        self.entered += 1
        self.seconds = SECONDS[state]

    def _act(self, action: Action, value: Any = None) -> None:
        self.actions.append((action, value))
