"""What carries out a connection's actions on a transport of asyncio.

Owns  the order of actions, reading on and pausing, the deadline of a state.
Not   what happens when (`connection`); what serving is, and slow readers: those are of who inherits
      (`protocol`, and the edge's client).
"""

import asyncio
from typing import Any, Generic, Protocol

from edgestead.http1.connection import Action, Connection, R

_WRITE, _SERVE, _READ_SOON, _PAUSE, _RESUME, _END_WRITING, _, _ABORT = Action
NEVER = float("inf")


class Sweeper(Protocol):
    """Looks at its connections every second. `soon` is when it does so next.

    Deadlines count from then: exact enough for seconds, never too early, and no request asks for the time.
    """

    soon: float
    loop: asyncio.AbstractEventLoop


class Driver(asyncio.Protocol, Generic[R]):
    """Drives `_connection`, which is there from `connection_made` on."""

    __slots__ = ("_connection", "_deadline", "_entered", "_is_acting", "_sweeper", "_transport")
    _connection: Connection[R]

    def __init__(self, sweeper: Sweeper) -> None:
        self._sweeper = sweeper
        self._transport: asyncio.Transport | None = None
        self._entered = -1  # the state whose deadline this is
        self._deadline = NEVER
        self._is_acting = False

    def _serve(self, request: R) -> None:
        """It is the turn of this request, unless its connection has ended meanwhile."""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        request = self._connection.receive(data)
        if request is not None:
            self._serve(request)
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
            self._sweeper.loop.call_soon(self._serve, value)
        elif action is _READ_SOON:
            self._sweeper.loop.call_soon(self._read_on)
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
