"""One request's side of a client's HTTP/1 connection: the answer as bytes.

Owns  how an answer's body is framed, whether the connection is kept behind it, one write for each read.
Not   the connection itself (`client`); what is said, and when (`machine`, whose `Client` this is).
"""

from typing import TYPE_CHECKING

import msgspec

from edgestead.edge.exchanges import answers
from edgestead.edge.exchanges.exchange import Response
from edgestead.http1.answering import CONTINUE, LAST_CHUNK
from edgestead.http1.head import Headers

if TYPE_CHECKING:
    from edgestead.edge.http.client import ClientConnection


class ClientStream(msgspec.Struct, eq=False):
    """`old` is HTTP/1.0: no chunks, no 1xx. `expects`: the client sends the body behind a 100."""

    connection: "ClientConnection"
    ray: bytes
    keep_alive: bool
    old: bool
    expects: bool
    head_only: bool
    is_chunked: bool = False
    out: list[bytes] = []
    has_head: bool = False
    is_streamed: bool = False  # some of the answer was sent, and more is to come

    def go_on(self) -> None:
        if self.expects:
            self.expects = False
            self.connection.interim(CONTINUE)

    def interim(self, status: int, headers: Headers) -> None:
        if not self.old:
            self.out.append(answers.head(status, headers, b""))

    def head(
        self, status: int, headers: Headers, length: int | None, *, bodyless: bool, drained: bool
    ) -> None:
        edge = self.connection.edge
        added = edge.ray_line % self.ray
        if status == 101:
            added += b"connection: upgrade\r\nupgrade: websocket\r\n"
        elif length is None and not bodyless:
            if self.old:
                self.keep_alive = False
            else:
                self.is_chunked = True
                added += answers.CHUNKED
        if not drained or edge.is_ending:
            self.keep_alive = False
        if not self.keep_alive and status != 101:
            added += answers.CLOSE
        elif self.old:
            added += answers.KEEP_ALIVE
        self.out.append(answers.head(status, headers, added))
        self.has_head = True

    def piece(self, piece: bytes) -> None:
        self.out.append(b"%x\r\n%b\r\n" % (len(piece), piece) if self.is_chunked else piece)

    def trailers(self, headers: Headers) -> None:
        """RFC 9110 §6.5.1: dropped. Who needs them, as gRPC does, speaks HTTP/2."""

    def flush(self) -> bool:
        out = self.out
        if not out:
            return False
        self.out = []
        data = out[0] if len(out) == 1 else b"".join(out)
        if not self.has_head:
            self.connection.interim(data)
            return True
        if not self.is_streamed:
            self.is_streamed = True
            self.connection.stream()
        self.connection.write(data)
        return True

    def end(self, *, drained: bool) -> None:
        if self.is_chunked:
            self.out.append(LAST_CHUNK)
        if self.out:
            self.connection.write(b"".join(self.out))
        self.connection.through(keep_alive=self.keep_alive)

    def answer(self, response: Response, *, drained: bool) -> None:
        self.keep_alive = self.keep_alive and drained
        lines = self.connection.edge.own_lines(self.ray)
        self.connection.write(
            answers.own_answer(
                response, lines, head_only=self.head_only, keep_alive=self.keep_alive, old=self.old
            )
        )
        self.connection.through(keep_alive=self.keep_alive)

    def switch(self) -> None:
        self.connection.tunnel()

    def close(self) -> None:
        self.connection.through(keep_alive=False)

    def abort(self) -> None:
        self.connection.break_off()

    def wait(self, seconds: float) -> None:
        self.connection.wait(seconds)

    def balance(self) -> None:
        self.connection.balance()
