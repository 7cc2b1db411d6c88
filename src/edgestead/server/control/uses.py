"""Writing down when tokens were used, and who used what a date ended.

Owns  when it happens; in a cluster, that a follower tells the leader of the uses that it has seen.
Not   noting a use (`rest.pipeline`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import islice

import msgspec

from edgestead.model.refusals import Unavailable
from edgestead.rest.context import Barrier
from edgestead.store.control import Reader, Transaction
from edgestead.tables.dated_uses import UseRow
from edgestead.usecases.access import token_uses
from edgestead.usecases.access.token_uses import TokenUses
from edgestead.usecases.account import dated_uses
from edgestead.usecases.account.dated_uses import DatedUses

WRITE_SECONDS = 60
TOLD_MAX = 10_000  # uses in one message, of 60 bytes each; the rest comes with the next one
DATED_MAX = 2_000  # of what is dated, of 200 bytes each
Tell = Callable[[bytes], Awaitable[bytes]]

_read_uses = msgspec.json.Decoder(dict[str, int]).decode
_read_dated = msgspec.json.Decoder(list[UseRow]).decode
log = logging.getLogger(__name__)


class UsesPart:
    """Make, open and close it on one loop."""

    def __init__(self, data: Barrier, may_write: Callable[[], bool] | None = None) -> None:
        """`may_write` is asked before each write; in a cluster only one process may."""
        self._data = data
        self._may_write = may_write or (lambda: True)
        self.pass_on: Tell | None = None  # last uses of tokens, to the process that leads
        self.pass_on_dated: Tell | None = None
        self._writing: asyncio.Task[None] | None = None
        self._round: asyncio.Task[None] | None = None
        self._is_telling = False  # something is on its way to the process that leads
        self.uses = TokenUses()
        self.dated = DatedUses()

    def open(self) -> None:
        """Read what is written down; write from now on."""
        self._data.read(self._load)
        self._writing = asyncio.create_task(self._write_for_ever())

    async def close(self) -> None:
        """Write what is left. What is just being told may be counted already, and is not told again."""
        if self._writing is None:
            return
        self._writing.cancel()
        self.pass_on = self.pass_on_dated = None  # they could wait for a leader
        if self._round is not None and not self._round.done():
            if self._is_telling:
                self._round.cancel()
                return
            await asyncio.wait([self._round])
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
            self._round = asyncio.create_task(self._write_once())
            await asyncio.shield(self._round)  # a write that is under way lands, whoever waits for it

    async def take(self, content: bytes) -> bytes:
        """What a follower tells: they are written with this process's own."""
        for token_id, used_us in _read_uses(content).items():
            self.uses.note(token_id, used_us)
        return b""

    async def take_dated(self, content: bytes) -> bytes:
        for row in _read_dated(content):
            self.dated.add(row)
        return b""

    async def _tell(self) -> None:
        """Raises Unavailable: where the leader was lost behind it, uses of what is dated count twice."""
        new = dict(islice(self.uses.unwritten().items(), TOLD_MAX))
        if new and self.pass_on is not None:
            await self._pass_on(self.pass_on, msgspec.json.encode(new))
            self._data.read(lambda reader: self.uses.written(new, reader))
        dated = self.dated.unwritten()[:DATED_MAX]
        if dated and self.pass_on_dated is not None:
            await self._pass_on(self.pass_on_dated, msgspec.json.encode(dated))
            self._data.read(lambda reader: self.dated.written(dated, reader))

    async def _pass_on(self, tell: Tell, content: bytes) -> None:
        self._is_telling = True
        try:
            await tell(content)
        finally:
            self._is_telling = False

    async def _write_once(self) -> None:
        try:
            if self._may_write():
                await self.write()
            else:
                await self._tell()
        except Unavailable as error:
            log.warning("the last uses of tokens could not be written: %r", error)
        except Exception:
            log.exception("the last uses of tokens could not be written")
