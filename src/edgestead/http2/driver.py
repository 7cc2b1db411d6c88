"""A client's connection of HTTP/2 on a transport of asyncio, whatever its streams are for.

Owns  reading in turns, writing, slow readers, what is drawn on the account, an orderly end.
Not   frames, windows and floods (`wire`); streams, and when they are late: those are of who inherits
      (`answering`, and the edge's connection).

              its settings came         GOAWAY: ours, its,        no stream is left
    OPENING ──────────────────▶ OPEN ─────────────────▶ ENDING ──────────────────────▶ CLOSED
       └───────────────────────────┴───────────────────────┴────────────────────────────▲
                    the client is gone, late, too much, or cannot be read

    OPEN     streams come and go; without any for IDLE_SECONDS_MAX it is ENDING
    ENDING   what was asked for is answered, further streams are refused: they may be asked for elsewhere
    CLOSED   what is to be sent is sent, and nothing is read any more
"""

import asyncio
from enum import Enum
from typing import Generic, Protocol, TypeVar

from edgestead.http1 import driver, limits
from edgestead.http1.connections import Account
from edgestead.http1.head import Headers
from edgestead.http2 import wire
from edgestead.http2.floods import Floods
from edgestead.http2.wire import Broken, Wire
from edgestead.model.budgets.table import Budget

REQUESTS_MAX = 10_000  # of a connection: then it ends in order, and with it what the compression has learned
WRITE_BYTES = 64 * 1024  # of frames, in one write
WAITING_BYTES_MAX = 64 * 1024  # received and put off to a turn: then nothing more is read
CONNECTION_BYTES = 24 * 1024  # that it takes by itself, tables of the compression and a frame included


class Sweeper(driver.Sweeper, Protocol):
    """As of HTTP/1.1, with the loop."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...


class Condition(Enum):
    OPENING = "opening"
    OPEN = "open"
    ENDING = "ending"
    CLOSED = "closed"


OPENING, OPEN, ENDING, CLOSED = Condition
S = TypeVar("S")


class Driver(asyncio.Protocol, Generic[S]):
    """Drives the frames of a server's side; who inherits is the `wire.Party`, and has the streams."""

    def __init__(self, sweeper: Sweeper, kept_out: frozenset[bytes]) -> None:
        self._sweeper = sweeper
        self._subject: object = self  # whose turns it takes
        self._account: Account | None = None
        self._transport: asyncio.Transport | None = None
        self._state = OPENING
        self._streams: dict[int, S] = {}
        self._floods = Floods()
        self._wire = Wire(self, self._floods, is_server=True, kept_out=kept_out)
        self._is_write_due = False  # when all of this turn of the loop was said
        self._is_put_off = self._is_paused = self._is_acting = self._is_stuffed = False
        self._left_bytes = 0  # of what was written, not taken when it was looked at last
        self._requests = 0
        self._deadline = sweeper.soon + limits.HEAD_SECONDS_MAX

    # what who inherits does

    def _stepped(self) -> None:
        """Some frames are read: what need not wait for the others."""

    def _go_on(self) -> None:
        """All that was received is read: what follows from it."""
        raise NotImplementedError

    def _send_ready(self) -> None:
        """Say what streams have to send, as far as windows reach and the client takes it."""
        raise NotImplementedError

    def _end_streams(self) -> None:
        """The connection ends: nothing of them goes on."""
        raise NotImplementedError

    def _held_bytes(self) -> int:
        """What streams hold."""
        raise NotImplementedError

    def head_came(self, number: int, fields: Headers, ends: bool) -> None:
        raise NotImplementedError

    def data_came(self, number: int, piece: bytes, octets: int, ends: bool) -> None:
        raise NotImplementedError

    def reset_came(self, number: int, code: int) -> None:
        raise NotImplementedError

    def window_came(self, number: int) -> None:
        raise NotImplementedError

    def priority_came(self, number: int, value: bytes) -> None: ...

    # the transport

    def data_received(self, data: bytes) -> None:
        if self._state is CLOSED:
            return
        self._wire.feed(data)
        if self._is_put_off or self._sweeper.processor.must_wait(len(data)):
            self._put_off()
        else:
            self._read()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_stuffed = True
        self._expect_taking()
        self._balance()
        self._draw()

    def resume_writing(self) -> None:
        self._is_stuffed, self._left_bytes = False, 0
        self._send_all()
        self._draw()

    def _gone(self) -> None:
        """The transport is."""
        self._transport, self._account = None, None
        self._end_streams()
        self._state = CLOSED
        self._wire.drop()

    # turns

    def _put_off(self) -> None:
        """Read on when the turn of the address has come; of much, no more before."""
        if not self._is_put_off:
            self._is_put_off = True
            self._sweeper.processor.wait(self._subject, self._read_on)
        self._balance()
        self._draw()

    def _read_on(self) -> None:
        self._is_put_off = False
        self._balance()
        self._read()

    def _balance(self) -> None:
        """Read on only while there is room, and the client takes the acknowledgements it asks for."""
        full = self._wire.held > WAITING_BYTES_MAX or self._is_stuffed
        if full != self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._is_paused = full
            (self._transport.pause_reading if full else self._transport.resume_reading)()

    def _read(self) -> None:
        read, must_wait = self._wire, self._sweeper.processor.must_wait
        self._is_acting = True
        try:
            while read.is_left and self._state is not CLOSED:
                octets = read.step()
                self._stepped()
                if read.is_left and must_wait(octets):
                    self._put_off()
                    break
            self._go_on()
        except Broken as broken:
            self._count(broken.over)
            self._calm(broken.code)
        finally:
            self._is_acting = False
        self._send_all()
        self._draw()

    def settings_came(self) -> None:
        if self._state is OPENING:
            self._state = OPEN
            self._deadline = self._sweeper.soon + limits.IDLE_SECONDS_MAX
        self.window_came(0)

    def goaway_came(self, last: int, code: int) -> None:
        """The client asks for nothing more: what it has asked for is still to be answered (RFC 9113 §6.8)."""
        if self._state is not CLOSED:
            self._state = ENDING

    def _is_taken(self) -> bool:
        """A stream begins: whether it is served."""
        if self._state is not OPEN:
            return False
        self._requests += 1
        return True

    # sending

    def _send_all(self) -> None:
        """What streams have to send, and what follows from having sent it."""
        if self._is_acting or self._transport is None or self._state is CLOSED:
            return
        self._is_acting = True
        try:
            self._send_ready()
            self._write_soon()
        finally:
            self._is_acting = False
        self._sent()
        self._balance()
        if self._state is ENDING and not self._streams:
            self._close()

    def _sent(self) -> None:
        """Who waited for room goes on."""

    def _write_soon(self) -> None:
        """Once for all that is said in this turn of the loop: a write for each answer costs more than it."""
        if not self._is_write_due:
            self._is_write_due = True
            self._sweeper.loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_write_due = False
        data = self._wire.take()
        if data and self._transport is not None:
            self._transport.write(data)
        if self._account is not None and self._account.drawn > self._account.least:
            self._draw()  # here, as it looks at all streams

    # memory

    def _draw(self) -> None:
        """Draw on the account for what is held now; who is over the budget has to leave."""
        if self._account is None:
            return
        held = CONNECTION_BYTES + self._wire.held + self._left_bytes + self._held_bytes()
        if self._account.hold(held) is not None:
            self._calm()

    def _count(self, over: Budget | None) -> None:
        if over is not None and self._account is not None:
            self._account.refuse(over)

    # the end

    def _calm(self, code: int = wire.ENHANCE_YOUR_CALM) -> None:
        if self._state is not CLOSED:
            self._wire.goaway(code)
            self._close()

    def _go_away(self) -> None:
        if self._state in (OPENING, OPEN):
            self._state = ENDING
            self._wire.goaway(wire.NO_ERROR)
            self._write_soon()
            if not self._streams:
                self._close()

    def _close(self) -> None:
        if self._state is CLOSED:
            return
        self._state = CLOSED
        self._wire.drop()
        self._end_streams()
        self._write()
        if self._transport is not None:
            self._expect_taking()
            self._transport.close()  # when all is taken
        self._draw()

    def finish(self) -> None:
        """The server ends: close once what is being served is answered."""
        self._go_away()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # time

    def _expect_taking(self) -> None:
        if self._transport is not None:
            self._left_bytes = self._transport.get_write_buffer_size()
            self._deadline = self._sweeper.soon + limits.STALL_SECONDS_MAX

    def _is_taking(self) -> bool:
        """Whether the client has taken some of what was written since the last look."""
        assert self._transport is not None
        before, self._left_bytes = self._left_bytes, self._transport.get_write_buffer_size()
        return self._left_bytes < before

    def sweep(self, now: float) -> None:
        """Look for what is late. Called every second."""
        if self._transport is None:
            return
        self._floods.begin_second()
        if self._is_stuffed or self._state is CLOSED:
            if self._is_taking():
                self._deadline = now + limits.STALL_SECONDS_MAX
            elif now > self._deadline:
                self._transport.abort()
                return
        for stream in tuple(self._streams.values()):
            self._look_at(stream, now)
        if self._is_stuffed or self._state is CLOSED:
            return
        if not self._streams and now > self._deadline:
            self._go_away() if self._state is OPEN else self._close()

    def _look_at(self, stream: S, now: float) -> None:
        """Whether a stream is late."""
        raise NotImplementedError
