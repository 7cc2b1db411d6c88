"""Writing down when tokens were used, and who used what a date ended.

Owns  when it happens.
Not   noting a use (`rest.pipeline`).
"""

import asyncio
import logging

from edgestead.model.refusals import Unavailable
from edgestead.rest.context import Barrier
from edgestead.store.control import Reader, Transaction
from edgestead.usecases.access import token_uses
from edgestead.usecases.access.token_uses import TokenUses
from edgestead.usecases.account import dated_uses
from edgestead.usecases.account.dated_uses import DatedUses

WRITE_SECONDS = 60

log = logging.getLogger(__name__)


class UsesPart:
    """Make, open and close it on one loop."""

    def __init__(self, data: Barrier) -> None:
        self._data = data
        self._writing: asyncio.Task[None] | None = None
        self.uses = TokenUses()
        self.dated = DatedUses()

    def open(self) -> None:
        """Read what is written down; write from now on."""
        self._data.read(self._load)
        self._writing = asyncio.create_task(self._write_for_ever())

    async def close(self) -> None:
        """Write what is left."""
        if self._writing is not None:
            self._writing.cancel()
            await self._write_once()

    async def write(self) -> None:
        """Raises Unavailable."""
        new, dated = self.uses.unwritten(), self.dated.unwritten()

        def write(tx: Transaction) -> None:
            token_uses.write(tx, new)
            dated_uses.write(tx, dated)

        def written(reader: Reader) -> None:
            self.uses.written(new, reader)
            self.dated.written(dated, reader)

        if new or dated:
            await self._data.write(write)
            self._data.read(written)

    def _load(self, reader: Reader) -> None:
        self.uses.load(reader)
        self.dated.load(reader)

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self._write_once()

    async def _write_once(self) -> None:
        try:
            await self.write()
        except Unavailable as error:
            log.warning("the last uses of tokens could not be written: %r", error)
