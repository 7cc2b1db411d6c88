"""The first account's credentials in a cluster: one file on all of its control nodes, by its vault.

Owns  which file is the cluster's: publishing this node's, or taking the other.
Not   renewing them, and letting in who has them (`server.control.main`); the file (`server.credentials`).

The database has hashes and lets nobody else in, so it says which of two is old:

    the vault's      this node's     then
    let in           another one     this node takes the vault's
    none, or old     let in          the vault gets it: it was renewed here, or is the first
    none, or old     old             nothing; the next look may know more

A renewal writes the file before its commit. Nobody looks meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from edgestead.server import credentials
from edgestead.server.credentials import Credentials
from edgestead.server.errors import StartError
from edgestead.server.nodes.vault import Vault
from edgestead.server.rounds import Rounds

NAME: Final = "credentials"  # in the vault
LOOK_SECONDS: Final = 5.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Credentials).decode
_log = logging.getLogger("edgestead.server")


class SharedCredentials:
    """Make and `open` it on control's loop. `is_let_in` reads the control data, `is_current` says whether
    that is the cluster's; `changed` is called on a thread, when the file is another one.
    """

    def __init__(
        self,
        folder: Path,
        vault: Vault,
        *,
        renewing: asyncio.Lock,
        is_current: Callable[[], bool],
        is_let_in: Callable[[Credentials], bool],
        changed: Callable[[], None],
    ) -> None:
        self._folder, self._vault, self._renewing = folder, vault, renewing
        self._is_current, self._is_let_in, self._changed = is_current, is_let_in, changed
        rounds = Rounds(
            "the look for the cluster's credentials",
            LOOK_SECONDS,
            self._look_unless_renewing,
            away=(OSError,),
        )
        self.open, self.close = rounds.open, rounds.close

    async def _look_unless_renewing(self) -> None:
        async with self._renewing:
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Blocks. Raises OSError: the vault cannot be read or written."""
        if not self._is_current():
            return
        try:
            own = credentials.read(self._folder)
            content = self._vault.read(NAME)
            shared = None if content is None else _decode(content)
            if shared is not None and self._is_let_in(shared):
                if shared != own:
                    credentials.write(self._folder, shared)
                    self._changed()
            elif own is not None and self._is_let_in(own):
                self._vault.write(NAME, _encode(own))
        except (StartError, ValueError) as error:
            _log.error("this node's credentials.json is not the cluster's: %s", error)
