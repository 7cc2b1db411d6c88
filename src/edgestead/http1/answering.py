"""A connection whose requests an application answers: the API's, and that of objects.

Owns  requests as an application gets them, answers as bytes, the go-ahead for a body that is waited for.
Not   the connection (`connection`); tasks and the transport (`protocol`).
"""

from collections.abc import Callable

from edgestead.http1 import limits
from edgestead.http1.connection import Action, Connection, Event, State
from edgestead.http1.connections import Account
from edgestead.http1.head import Headers, Refused, read
from edgestead.http1.messages import NO_BODY, Body, Request, Response

COPIED_BYTES_MAX = 64 * 1024  # of a body, to be sent together with its head
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
Refuse = Callable[[int, str, str], Response]
"""Words a refusal: (status, reason, the client's address). Its body is bytes."""


def _nobody() -> None:
    """There is nobody to wake any more."""


_SERVING, _SENDING, _WRITE = State.SERVING, State.SENDING, Action.WRITE


class Answering(Connection[Request]):
    """`refuse` words what is refused before there is a request.

    `wake` is called when there are actions outside of a call of the driver's: a body was read.
    """

    __slots__ = ("_chunks", "_client", "_date_line", "_keeps_alive", "_left", "_wake", "_words")

    def __init__(
        self,
        refuse: Refuse,
        client: str = "",
        *,
        account: Account | None = None,
        turned_away: Refused | None = None,
        wake: Callable[[], None] = lambda: None,
        date_line: Callable[[], bytes] = lambda: b"",
        headers_max: int = limits.HEADERS_MAX,
    ) -> None:
        super().__init__(
            self._made, self._refused, account=account, turned_away=turned_away, headers_max=headers_max
        )
        self._words, self._client, self._wake, self._date_line = refuse, client, wake, date_line
        self._keeps_alive = False  # after the answer that is sent
        self._left: int | None = None  # of a streamed answer whose length is known
        self._chunks = False  # one whose length is not

    def lost(self) -> None:
        super().lost()
        self._wake = _nobody  # who drove this: each would keep the other until garbage is collected

    # requests

    def _made(
        self, version: str, method: bytes, target: bytes, headers: Headers, keep_alive: bool
    ) -> tuple[Request, int | None]:
        """Raises Refused."""
        head = read(version, method, target, headers, self._headers_max)
        found, length = head.found, head.length
        expects = b"expect" in found and found[b"expect"].lower() == b"100-continue" and version == "1.1"
        body = Body(self._took, self._go_ahead if expects else None, ended=length == 0)
        return Request(
            method.decode(),
            head.target,
            headers,
            self._client,
            body,
            found,
            keep_alive,
            version == "1.0",
        ), length

    def _refused(self, status: int, reason: str) -> bytes:
        response = self._words(status, reason, self._client)
        assert isinstance(response.body, bytes)
        return response.head(keep_alive=False, date_line=self._date_line()) + response.body

    def _go_ahead(self) -> None:
        if self.state is _SERVING:
            self.interim(CONTINUE)
            self._wake()

    def _took(self) -> None:
        self.balance()
        if self.actions:
            self._wake()

    # answers

    def is_serving(self, request: Request) -> bool:
        return self.current is request

    def answer(self, response: Response) -> None:
        """The answer to the request that is served; of one that is streamed, the head."""
        request = self.current
        if request is None or self.state is not _SERVING:
            return  # the connection is gone, or said already why the request cannot be read
        body, is_old = response.body, request.is_old
        # a client that asked whether to send its body, and was not told to, may send it or not
        is_certain = request.body.ended or request.body.wanted is None
        keeps_alive = request.keep_alive and is_certain and not (response.close or self._ends)
        if not isinstance(body, bytes):
            self._begin_stream(request, response, keeps_alive)
            return
        head = response.head(keep_alive=keeps_alive, is_old=is_old, date_line=self._date_line())
        if request.method == "HEAD" or response.status in NO_BODY:
            self.actions.append((_WRITE, head))
        elif len(body) <= COPIED_BYTES_MAX:
            self.actions.append((_WRITE, head + body))
        else:
            self.actions += ((_WRITE, head), (_WRITE, body))
        self.answered(keeps_alive=keeps_alive)

    def _begin_stream(self, request: Request, response: Response, keeps_alive: bool) -> None:
        if request.is_old and response.length is None:
            keeps_alive = False  # the end of the connection is the end of the answer
        self._keeps_alive = keeps_alive
        head = response.head(keep_alive=keeps_alive, is_old=request.is_old, date_line=self._date_line())
        self.actions.append((_WRITE, head))
        self._go(Event.STREAM)
        self._left, self._chunks = response.length, response.length is None and not request.is_old
        if request.method == "HEAD" or response.status in NO_BODY:
            self.answered(keeps_alive=keeps_alive)

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
                self.actions.append((_WRITE, LAST_CHUNK))
            self.answered(keeps_alive=self._keeps_alive)
