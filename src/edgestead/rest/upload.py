"""A request's body as it arrives, for routes that do not keep all of it in memory.

Owns  its limits of size and time.
Not   what the bytes mean.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from edgestead.http1.messages import Body, BodyBroken
from edgestead.model.refusals.request import BodyTooLarge, BodyTooSlow, ServerEnds
from edgestead.rest.body import Disconnected
from edgestead.rest.limits import UPLOAD_IDLE_SECONDS_MAX, UPLOAD_SECONDS_MAX

_LENGTH_DIGITS_MAX = 12


class Upload:
    """Read it once. `length` is what the head announces, None when it does not.

    `still_permitted` is asked when all of it is there.
    """

    def __init__(
        self, incoming: Body, headers: Mapping[bytes, bytes], still_permitted: Callable[[], None]
    ) -> None:
        self._incoming = incoming
        self._still_permitted = still_permitted
        self.content_type = headers.get(b"content-type", b"").decode("latin-1")
        announced = headers.get(b"content-length")
        if announced is None:
            self.length = None if b"transfer-encoding" in headers else 0
        else:
            self.length = int(announced) if len(announced) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX

    async def chunks(self, bytes_max: int) -> AsyncIterator[bytes]:
        """The body in the portions that arrive, each at most 64 KiB or so.

        Raises BodyTooLarge, BodyTooSlow, Disconnected, ServerEnds, what `still_permitted` raises.
        """
        if self.length is not None and self.length > bytes_max:
            raise BodyTooLarge(limit=bytes_max)
        length, deadline = 0, asyncio.get_running_loop().time() + UPLOAD_SECONDS_MAX
        while portion := await self._next(deadline):
            length += len(portion)
            if length > bytes_max:
                raise BodyTooLarge(limit=bytes_max)
            yield portion
        self._still_permitted()

    async def _next(self, deadline: float) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(UPLOAD_IDLE_SECONDS_MAX):
                portion = await self._incoming.portion()
        except TimeoutError:
            raise BodyTooSlow(seconds=round(UPLOAD_IDLE_SECONDS_MAX)) from None
        except asyncio.CancelledError:  # only the end of the server cancels a request
            raise ServerEnds from None
        except BodyBroken:
            raise Disconnected from None
        if portion and loop.time() > deadline:
            raise BodyTooSlow(seconds=round(UPLOAD_SECONDS_MAX))
        return portion

    async def whole(self, bytes_max: int) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(bytes_max)])
