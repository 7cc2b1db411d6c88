"""A request's body as it arrives, for routes that do not keep all of it in memory.

Owns  its limits of size and time.
Asks  ASGI's receive.
Tells handlers that take `upload`.
Not   what the bytes mean.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from edgestead.api.asgi import Receive
from edgestead.api.body import Disconnected
from edgestead.api.limits import UPLOAD_IDLE_SECONDS_MAX, UPLOAD_SECONDS_MAX
from edgestead.model.request_errors import BodyTooLarge, BodyTooSlow

_LENGTH_DIGITS_MAX = 12


class Upload:
    """Read it once. `length` is what the head announces, None when it does not."""

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes]) -> None:
        self._receive = receive
        self.content_type = headers.get(b"content-type", b"").decode("latin-1")
        announced = headers.get(b"content-length")
        if announced is None:
            self.length = None if b"transfer-encoding" in headers else 0
        else:
            self.length = int(announced) if len(announced) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX

    async def chunks(self, bytes_max: int) -> AsyncIterator[bytes]:
        """The body in the portions that arrive, each at most 64 KiB or so.

        Raises BodyTooLarge, before anything is read when the head says so; BodyTooSlow; Disconnected.
        """
        if self.length is not None and self.length > bytes_max:
            raise BodyTooLarge(limit=bytes_max)
        deadline = asyncio.get_running_loop().time() + UPLOAD_SECONDS_MAX
        length, more = 0, True
        while more:
            try:
                async with asyncio.timeout(UPLOAD_IDLE_SECONDS_MAX):
                    message = await self._receive()
            except TimeoutError:
                raise BodyTooSlow(seconds=round(UPLOAD_IDLE_SECONDS_MAX)) from None
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            length += len(chunk)
            if length > bytes_max:
                raise BodyTooLarge(limit=bytes_max)
            if more and asyncio.get_running_loop().time() > deadline:
                raise BodyTooSlow(seconds=round(UPLOAD_SECONDS_MAX))
            if chunk:
                yield chunk

    async def whole(self, bytes_max: int) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(bytes_max)])
