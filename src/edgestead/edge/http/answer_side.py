"""The side of an exchange that faces its answer: from the origin's head to the client's last byte.

Owns  what is said to the client and when, an answer that is looked at first, tunnels.
Not   which origin (`machine`); bytes on a wire (`client_stream`, `origin`).
"""

from edgestead.edge import limits
from edgestead.edge.exchanges import answers
from edgestead.edge.exchanges.exchange import Response, ResponseHead
from edgestead.edge.exchanges.later import Later
from edgestead.edge.http.ends import Ends
from edgestead.edge.http.states import Body, State
from edgestead.http1.head import Headers

_ASKED, _HOLDING, _JUDGING, _ANSWERING, _TUNNELLING, _DONE = (
    *(State.ASKED, State.HOLDING, State.JUDGING, State.ANSWERING, State.TUNNELLING, State.DONE),
)
_ENDED = Body.ENDED


class AnswerSide(Ends, eq=False):
    """Events of the origin, and what follows for the client."""

    def interim(self, status: int, headers: Headers) -> None:
        """RFC 9110 §15.2: passed on to those who know them; 100 was asked for by nobody."""
        if self.state is _ASKED and status != 100:
            self.client.interim(status, headers)

    def answer_head(
        self,
        status: int,
        headers: Headers,
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
            self._give(piece)
        elif state is _TUNNELLING:
            self.sent_bytes += len(piece)
            self.client.piece(piece)
            self.client.flush()
            self.client.wait(limits.TUNNEL_SECONDS_MAX)
        elif self._held is not None:
            self._held.add(piece)
            self._look()

    def flush(self) -> None:
        """Everything of one read of the origin was said."""
        if self._coder is not None and self._is_streamed:
            self._say_piece(self._coder.flush())
        if self.client.flush():
            self.client.wait(limits.ORIGIN_BODY_SECONDS_MAX)

    def answer_trailers(self, headers: Headers) -> None:
        """Behind the body, right before its end."""
        if self.state is _ANSWERING:
            self.client.trailers(headers)
        elif self._held is not None:
            self._held.trailers = headers

    def answer_end(self) -> None:
        if self.state is _ANSWERING:
            self.state = _DONE
            self._release_origin()
            if self._waiting:
                self._leave_turns()
            if self._coder is not None:
                self._say_piece(self._coder.finish())
                self._drop_coder()
            self.client.end(drained=self.body is _ENDED)
            self._note(self.status)
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

    def client_full(self, *, full: bool) -> None:
        """The client does not take what it is sent, or does again."""
        self._client_is_full = full
        self._balance_origin()
        if not full:
            tunnels = self.state is _TUNNELLING
            self.client.wait(limits.TUNNEL_SECONDS_MAX if tunnels else limits.ORIGIN_BODY_SECONDS_MAX)

    # an answer that is looked at

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
            self._give(piece)
        if held.ended:
            if held.trailers:
                self.client.trailers(held.trailers)
            self.answer_end()
        else:
            self._balance_origin()

    def _judged_later(self, answer: Response | None) -> None:
        self._judged(answer)
        if self.state is _ANSWERING:
            self.flush()

    def _give(self, piece: bytes) -> None:
        """A piece of the content, compressed where the answer is."""
        if self._coder is not None:
            piece = self._coder.pack(piece)
        self._say_piece(piece)

    def _say_piece(self, piece: bytes) -> None:
        if piece:
            self.sent_bytes += len(piece)
            self.client.piece(piece)

    def _tell(self, status: int, headers: Headers, length: int | None, bodyless: bool) -> None:
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
        if self.route.compression and status != 101:
            packed = self.worker.packers.begin(
                self.exchange, self.route.compression, status, headers, length, bodyless=bodyless
            )
            if packed is not None:
                self._is_streamed = length is None
                headers, self._coder, length = packed.headers, packed.coder, None
        self.state, self.status = _ANSWERING, status
        self.client.head(status, headers, length, bodyless=bodyless, drained=self.body is _ENDED)
        self.worker.count(status)
        self.worker.took(self.exchange.arrived_us)
