"""Who an exchange deals with: a client, an origin, a pool of these, and the process that it is in.

Owns  what an exchange asks of them.
Not   who they are: `client_stream`, `origin` and `pool` for HTTP/1; `edge.http.http2.stream` for HTTP/2.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.exchanges.origins import Aim
from edgestead.edge.exchanges.packing import Packers
from edgestead.edge.exchanges.turns import Turns
from edgestead.edge.tools.phase import Observer
from edgestead.http1.head import Headers

if TYPE_CHECKING:
    from edgestead.edge.http.machine import ExchangeMachine


class Client(Protocol):
    """The client's side of one exchange: a request on a connection of HTTP/1, a stream of HTTP/2.

    `drained` says whether all of the request's body has come: where not, it may still be coming. `end`,
    `answer`, `close` and `abort` are the last thing that is asked of it; its timer is over with them.
    """

    def go_on(self) -> None:
        """The body is wanted: say so to who waits for that. Harmless when said before."""
        ...

    def interim(self, status: int, headers: Headers) -> None: ...

    def head(
        self, status: int, headers: Headers, length: int | None, *, bodyless: bool, drained: bool
    ) -> None:
        """`length` None: the body's end will say it."""
        ...

    def piece(self, piece: bytes) -> None: ...

    def trailers(self, headers: Headers) -> None:
        """What stands behind the body, right before `end`: passed on where there is a place for it."""
        ...

    def flush(self) -> bool:
        """Send what was said; whether there was anything."""
        ...

    def end(self, *, drained: bool) -> None: ...

    def answer(self, response: Response, *, drained: bool) -> None:
        """An answer of the edge's own, whole."""
        ...

    def switch(self) -> None:
        """Its bytes are no HTTP from now on: each read of them is a piece."""
        ...

    def close(self) -> None:
        """End a tunnel, when all was taken."""
        ...

    def abort(self) -> None:
        """End in the middle, so that it is noticed."""
        ...

    def wait(self, seconds: float) -> None:
        """Set the one timer, from now: `late` when it is over. While the client does not take what was sent,
        that is what is waited for instead.
        """
        ...

    def balance(self) -> None:
        """`is_full` may have changed: read on, or do not."""
        ...


class Origin(Protocol):
    """One connection to an origin, for one exchange at a time."""

    reused: bool
    """Whether it has served before: its origin may close it at any time."""

    @property
    def held_bytes(self) -> int:
        """Octets of the request that it was given, and that its origin has not taken yet."""
        ...

    def begin(self, exchange: "ExchangeMachine", pieces: list[bytes], *, ended: bool) -> None:
        """Send the request's head and what is here of its body."""
        ...

    def piece(self, piece: bytes) -> None: ...

    def end(self) -> None: ...

    def pause(self, *, paused: bool) -> None:
        """Read no more of it, or go on."""
        ...

    def takes(self) -> bool:
        """Whether it has taken some of what was sent to it since this was asked the last time."""
        ...

    def release(self, *, usable: bool) -> None: ...

    def abort(self) -> None: ...


class Job(Protocol):
    def cancel(self) -> object: ...


class Pool(Protocol):
    """Where connections to origins come from."""

    def kept(self, aim: Aim) -> Origin | None: ...

    def seek(self, aim: Aim, exchange: "ExchangeMachine", *, is_again: bool = False) -> Job:
        """Answered by `connected` or `unconnected`, unless it is cancelled. For a request that is sent again
        no connection that lay idle is taken."""
        ...


class Access(Protocol):
    """The access log."""

    def ended(self, exchange: Exchange, status: int, sent: int) -> None: ...


class Worker(Protocol):
    """What all exchanges of a process share. `soon` is the clock: the time of its next sweep."""

    soon: float
    date: bytes
    origin_port: int | None

    @property
    def access(self) -> Access | None: ...

    @property
    def pool(self) -> Pool: ...

    @property
    def packers(self) -> Packers: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def observer(self) -> Observer: ...

    @property
    def count(self) -> Callable[[int], None]: ...

    @property
    def took(self) -> Callable[[int], None]: ...
