"""What carries out a connection's actions on a transport of asyncio.

Owns  the order of actions, reading on and pausing, what is put off to its turn, the deadline of a state.
Not   what happens when (`connection`); what serving is, and slow readers: those are of who inherits
      (`protocol`, and the edge's client).
"""

import asyncio
from functools import partial
from typing import Any, Generic, Protocol

from edgestead.http1.connection import Action, Connection, R
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.turns import Turns

_WRITE, _SERVE, _READ_SOON, _PAUSE, _RESUME, _END_WRITING, _, _ABORT = Action
NEVER = float("inf")


class Sweeper(Protocol):
    """Looks at its connections every second. `soon` is when it does so next.

    Deadlines count from then: exact enough for seconds, never too early, and no request asks for the time.
    """

    soon: float
    processor: Turns


class Driver(asyncio.Protocol, Generic[R]):
    """Drives `_connection`, which is there from `connection_made` on."""

    __slots__ = (
        "_connection",
        "_deadline",
        "_entered",
        "_is_acting",
        "_processor",
        "_subject",
        "_sweeper",
        "_transport",
    )
    _connection: Connection[R]

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper, self._processor = sweeper, sweeper.processor
        self._subject: object = self  # whose turns it takes
        self._transport: asyncio.Transport | None = None
        self._entered = -1  # the state whose deadline this is
        self._deadline = NEVER
        self._is_acting = False

    def _serve(self, request: R) -> None:
        """It is the turn of this request, unless its connection has ended meanwhile."""
        raise NotImplementedError

    def _take_turns(self, address: str) -> None:
        """With others of its address. Who has none, or speaks for many clients, takes turns by itself."""
        if address:
            self._subject = network_of(address)

    def data_received(self, data: bytes) -> None:
        if self._processor.must_wait(len(data)):
            self._put_off(data)
            return
        request = self._connection.receive(data)
        if request is not None:
            self._serve(request)
        self._act()

    def _put_off(self, data: bytes) -> None:
        """Read it when the turn has come, and until then no more."""
        self._connection.hold(data)
        self._processor.wait(self._subject, self._read_on)
        self._act()

    def _read_on(self) -> None:
        request = self._connection.read_on()
        if request is not None:
            self._serve(request)
        self._act()

    def _act(self) -> None:
        """Whatever is to be done. From within an action: when that is over."""
        if self._is_acting:
            return
        connection = self._connection
        if connection.entered != self._entered:
            self._note_state()
        self._is_acting = True
        try:
            while connection.actions and self._transport is not None:
                actions, connection.actions = connection.actions, []
                for action, value in actions:
                    if action is _WRITE:
                        self._transport.write(value)
                    else:
                        self._do(action, value, self._transport)
        finally:
            self._is_acting = False
        if connection.entered != self._entered:
            self._note_state()

    def _note_state(self) -> None:
        """Its deadline; a state without one leaves that to who serves."""
        self._entered, seconds = self._connection.entered, self._connection.seconds
        self._deadline = NEVER if seconds is None else self._sweeper.soon + seconds

    def _do(self, action: Action, value: Any, transport: asyncio.Transport) -> None:
        if action is _SERVE:
            self._processor.wait(self._subject, partial(self._serve, value))
        elif action is _READ_SOON:
            self._processor.wait(self._subject, self._read_on)
        elif action is _ABORT:
            transport.abort()
        elif transport.is_closing():
            return
        elif action is _PAUSE:
            transport.pause_reading()
        elif action is _RESUME:
            self._resume(transport)
        elif action is _END_WRITING:
            if transport.can_write_eof():  # not within TLS
                transport.write_eof()
        else:
            self._close(transport)

    def _resume(self, transport: asyncio.Transport) -> None:
        transport.resume_reading()

    def _close(self, transport: asyncio.Transport) -> None:
        transport.close()

    def finish(self) -> None:
        """The server ends: close once what is being served is answered."""
        self._connection.finish()
        self._act()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
