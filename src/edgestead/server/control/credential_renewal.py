"""Renewing the first account's credentials while the server runs.

Owns  which secrets `credentials.json` has, whatever becomes of the write that lets them in.
Not   that write (`first_account`); the files of the other nodes of a cluster (`shared_credentials`).

The new ones are in the file first, because a start makes the database follow the file:

    the write                             then the file has
    is done                               the new ones
    failed, and the database has it       the new ones: it was made, and what came after it failed
    failed, and the database has it not   the old ones
    nobody knows, ATTEMPTS_MAX times      the new ones, which are nowhere else: the cluster's vault has the
                                          old ones, and the nodes take those that are let in

Letting the same secrets in twice is letting them in once. So what nobody knows is asked for again: the next
answer also tells what became of the first.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from edgestead.server import credentials
from edgestead.server.control import first_account
from edgestead.server.credentials import Credentials
from edgestead.server.supervisor.renewal import REVOKES_OTHERS
from edgestead.store.control import Reader
from edgestead.store.controllog import Unknown

ATTEMPTS_MAX: Final = 3  # of a write that nobody knows of

T = TypeVar("T")
encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(tuple[str, Credentials]).decode


class Read(Protocol):
    """Of the control data."""

    def __call__(self, fn: Callable[[Reader], T], /) -> T: ...


class CredentialRenewal:
    """Make and use it on control's loop. `let_in` writes, here or where the leader is: it takes the command
    and the secrets, by `encode`. `changed` says that the file is another one. Who holds `lock` sees no file
    that is not let in yet.
    """

    def __init__(
        self,
        folder: Path,
        read: Read,
        let_in: Callable[[bytes], Awaitable[object]],
        changed: Callable[[], None],
    ) -> None:
        self._folder, self._read, self._changed = folder, read, changed
        self.let_in = let_in
        self.lock = asyncio.Lock()

    async def renew(self, command: str) -> None:
        """Carry out a command of REVOKES_OTHERS. Raises Unavailable, and what else the write raises."""
        async with self.lock:
            kept = credentials.load_or_make(self._folder)
            renewed = credentials.renewed(kept, revoke_others=REVOKES_OTHERS[command])
            owned = self._read(lambda reader: first_account.owner_of(reader, renewed))
            credentials.write(self._folder, owned)
            try:
                await self._let_in_surely(encode((command, owned)))
            except Unknown:
                self._changed()
                raise
            except Exception:
                if self._read(lambda reader: first_account.is_let_in(reader, owned)):
                    self._settle(owned)
                else:
                    credentials.write(self._folder, kept)
                raise
            self._settle(owned)

    async def _let_in_surely(self, content: bytes) -> None:
        """Raises Unknown where one attempt may have let them in, and none is known to have."""
        unknown: Unknown | None = None
        for _ in range(ATTEMPTS_MAX):
            try:
                await self.let_in(content)
                return
            except Unknown as error:
                unknown = error
            except Exception:
                if unknown is None:
                    raise
        assert unknown is not None
        raise unknown

    def _settle(self, owned: Credentials) -> None:
        self._changed()
        first_account.settle_file(self._folder, owned, owned)
