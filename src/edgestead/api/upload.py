"""A request's body as it arrives, for routes that do not keep all of it in memory.

Owns  its limits of size and time.
Asks  ASGI's receive.
Tells handlers that take `upload`.
Not   what the bytes mean.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NoReturn

from edgestead.api.asgi import Receive
from edgestead.api.body import Disconnected
from edgestead.api.limits import DRAINED_BYTES_MAX, UPLOAD_IDLE_SECONDS_MAX, UPLOAD_SECONDS_MAX
from edgestead.model.request_errors import BodyTooLarge, BodyTooSlow, ServerEnds

_LENGTH_DIGITS_MAX = 12


class Upload:
    """Read it once. `length` is what the head announces, None when it does not."""

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes]) -> None:
        self._receive = receive
        self._more = True
        self._deadline: float | None = None
        self.content_type = headers.get(b"content-type", b"").decode("latin-1")
        self._asked_first = b"expect" in headers
        announced = headers.get(b"content-length")
        if announced is None:
            self.length = None if b"transfer-encoding" in headers else 0
        else:
            self.length = int(announced) if len(announced) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX

    async def chunks(self, bytes_max: int) -> AsyncIterator[bytes]:
        """The body in the portions that arrive, each at most 64 KiB or so.

        Raises BodyTooLarge, BodyTooSlow, Disconnected, ServerEnds.
        """
        if self.length is not None and self.length > bytes_max:
            await self._refuse(bytes_max, self.length)
        length = 0
        async for chunk in self._messages():
            length += len(chunk)
            if length > bytes_max:
                await self._refuse(bytes_max, length)
            if chunk:
                yield chunk

    async def _refuse(self, bytes_max: int, length: int) -> NoReturn:
        """Read what else comes, as far as that is bearable, and raise BodyTooLarge.

        A connection that is closed with bytes unread is reset, and the client loses the answer. A client
        that asked first (RFC 9110 §10.1.1) has sent nothing yet, and never will.
        """
        left = bytes_max + DRAINED_BYTES_MAX - length
        if left >= 0 and not self._asked_first:
            async for chunk in self._messages():
                left -= len(chunk) if self.length is None else 0
                if left < 0:
                    break
        raise BodyTooLarge(limit=bytes_max)

    async def _messages(self) -> AsyncIterator[bytes]:
        """What is left of the body."""
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + UPLOAD_SECONDS_MAX
        while self._more:
            try:
                async with asyncio.timeout(UPLOAD_IDLE_SECONDS_MAX):
                    message = await self._receive()
            except TimeoutError:
                raise BodyTooSlow(seconds=round(UPLOAD_IDLE_SECONDS_MAX)) from None
            except asyncio.CancelledError:  # only the end of the server cancels a request
                raise ServerEnds from None
            if message["type"] == "http.disconnect":
                raise Disconnected
            self._more = message.get("more_body", False)
            if self._more and loop.time() > self._deadline:
                raise BodyTooSlow(seconds=round(UPLOAD_SECONDS_MAX))
            yield message.get("body", b"")

    async def whole(self, bytes_max: int) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(bytes_max)])
