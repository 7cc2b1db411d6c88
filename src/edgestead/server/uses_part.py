"""Writing down when tokens were used.

Owns  when it happens.
Asks  `services.token_uses` what is new.
Tells nobody.
Not   noting a use (`api.pipeline`).
"""

import asyncio
import logging

from edgestead.api.context import Barrier
from edgestead.model.errors import Unavailable
from edgestead.services import token_uses
from edgestead.services.token_uses import TokenUses

WRITE_SECONDS = 60

log = logging.getLogger(__name__)


class UsesPart:
    """Make, open and close it on one loop."""

    def __init__(self, data: Barrier) -> None:
        self._data = data
        self._writing: asyncio.Task[None] | None = None
        self.uses = TokenUses()

    def open(self) -> None:
        """Read what is written down; write from now on."""
        self._data.read(self.uses.load)
        self._writing = asyncio.create_task(self._write_for_ever())

    async def close(self) -> None:
        """Write what is left."""
        if self._writing is not None:
            self._writing.cancel()
            await self._write_once()

    async def write(self) -> None:
        """Raises Unavailable."""
        new = self.uses.unwritten()
        if new:
            await self._data.write(lambda tx: token_uses.write(tx, new))
            self._data.read(lambda reader: self.uses.written(new, reader))

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self._write_once()

    async def _write_once(self) -> None:
        try:
            await self.write()
        except Unavailable as error:
            log.warning("the last uses of tokens could not be written: %r", error)
