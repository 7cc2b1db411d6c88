"""The objects' own address as an application that pages can ask.

Owns  one request over loopback and its whole answer; that a token's addresses are those of the browser.
Not   permissions: the objects' address asks for them, as of any client.
"""

import asyncio
from typing import Final

from edgestead.http1.client import ExchangeError, Tcp, exchange
from edgestead.http1.messages import BodyBroken, Request, Response
from edgestead.model import envelope
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.object import WasReset
from edgestead.rest import credentials
from edgestead.rest.context import AppContext
from edgestead.usecases.access.authorise import PLATFORM, check_usable

BODY_BYTES_MAX: Final = 1 << 20  # of a request: a statement of SQL
ANSWER_BYTES_MAX: Final = 16 << 20  # rows of a query, as JSON
ANSWER_SECONDS_MAX: Final = 60.0  # an object may be busy


class Remote:
    """Used by one event loop."""

    def __init__(self, address: tuple[str, int], context: AppContext) -> None:
        self._to, self._context = Tcp(*address), context

    async def __call__(self, request: Request) -> Response:
        """Never raises: an address that does not answer is a refusal."""
        context = self._context
        try:
            identity = credentials.identify(request.found, context.access, PLATFORM)
            if identity.actor.token_id is not None:
                check_usable(identity, context.now_us(), request.client)
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._exchange(request)
        except EdgeError as refused:
            error = refused
        except (ExchangeError, BodyBroken, OSError, TimeoutError) as failed:
            error = WasReset(reason=f"The objects did not answer: {failed or 'it took too long'}.")
        return Response(error.status, [], envelope.failure(error))

    async def _exchange(self, request: Request) -> Response:
        body = await request.body.read(BODY_BYTES_MAX)
        headers = [*request.headers, (b"host", self._to.host.encode())]
        answer = await exchange(self._to, request.method, request.target, headers, body)
        octets = bytearray()
        async for chunk in answer.body:
            octets += chunk
            if len(octets) > ANSWER_BYTES_MAX:
                raise ExchangeError(f"its answer is larger than {ANSWER_BYTES_MAX >> 20} MiB")
        return Response(answer.status, [], bytes(octets))
