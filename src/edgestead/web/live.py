"""Streams of server-sent events: what a page shows, sent again when it has changed.

Owns  how many streams there are, and when one ends.
Not   what is sent.

    asked for   there is a place                 → streaming
                its session has 16, all have 64  → 429, 503
    streaming   a sample was taken     → sent, streaming
                its session is over, the server ends, its browser went away → closed

A browser that goes away is noticed with the next sample.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final

from edgestead.http1.messages import Response
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.table import DASHBOARD_STREAMS, DASHBOARD_STREAMS_SESSION
from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.request import unreadable
from edgestead.web.samples import Samples

_TYPE: Final = b"text/event-stream; charset=utf-8"
RETRY_MS: Final = 10_000  # after which a browser asks again


Make = Callable[[], Coroutine[None, None, str]]


class Live:
    """Used by one event loop. What is sent is the same for all, so it is made once a sample."""

    def __init__(self, samples: Samples, ledger: Ledger) -> None:
        self._samples = samples
        self._made: dict[str, tuple[int, asyncio.Future[bytes]]] = {}
        self._open = Levels(ledger, DASHBOARD_STREAMS_SESSION, DASHBOARD_STREAMS)
        self._is_ending = False

    def response(self, whose: str, name: str, make: Make, is_on: Callable[[], bool]) -> Response:
        """A stream of what `make` gives, which is the same for each `name`.

        `whose` names the session in logs. Raises OverBudget, ServerFull, Unavailable.
        """
        if self._is_ending:
            raise Unavailable
        refusal = self._open.draw(whose, 1)
        if refusal is not None:
            raise unreadable(refusal.budget.status, refusal.reason)
        return Response(
            200,
            [(b"content-type", _TYPE)],
            self._events(name, make, is_on),
            done=lambda error: self._open.release(whose, 1),
        )

    async def _events(self, name: str, make: Make, is_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % RETRY_MS
        while True:
            await self._samples.next()
            if self._is_ending or not is_on():
                return
            yield await self._event(name, make)

    async def _event(self, name: str, make: Make) -> bytes:
        made = self._made.get(name)
        if made is None or made[0] != self._samples.taken:
            made = self._made[name] = (self._samples.taken, asyncio.ensure_future(_message(make)))
        return await asyncio.shield(made[1])

    def end(self) -> None:
        """Every stream ends now, and there is no other."""
        self._is_ending = True
        self._samples.wake()

    @property
    def count(self) -> int:
        return self._open.total


async def _message(make: Make) -> bytes:
    return b"".join(b"data: %b\n" % line.encode() for line in (await make()).splitlines()) + b"\n"
