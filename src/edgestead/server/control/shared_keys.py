"""The keys of clearances in a cluster: one list for all of its control nodes, in its vault.

Owns  which list is the cluster's: publishing this node's, or taking the other.
Not   the file of the keys and their ages (`server.edge.challenge_keys`); how edge processes hear of them.

    this node   its newest key          then
    follows     any                     it takes the vault's list
    leads       older than the vault's  the same: it was away
    leads       a month old, or void    it makes the next, and the vault gets its list
    leads       newer than the vault's  the vault gets its list

So renewed credentials, which every node has soon (`shared_credentials`), void the old keys everywhere.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from edgestead.server.edge import challenge_keys
from edgestead.server.errors import StartError
from edgestead.server.nodes.vault import Vault
from edgestead.server.rounds import Rounds

NAME: Final = "challenge-keys"  # in the vault
LOOK_SECONDS: Final = 2.0  # a key signs on for ten after its successor was made

_log = logging.getLogger("edgestead.server")


class SharedKeys:
    """Make and `open` it on control's loop. `changed` is called on a thread, when the file is another one."""

    def __init__(
        self,
        folder: Path,
        vault: Vault,
        *,
        leads: Callable[[], bool],
        changed: Callable[[], None],
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._vault, self._now_s = folder, vault, now_s
        self._leads, self._changed = leads, changed
        rounds = Rounds(
            "the look for the cluster's keys of clearances",
            LOOK_SECONDS,
            partial(asyncio.to_thread, self.look),
            away=(OSError,),
        )
        self.open, self.close = rounds.open, rounds.close

    def look(self) -> None:
        """Blocks. Raises OSError: the vault cannot be read or written."""
        leads = self._leads()
        try:
            before = own = challenge_keys.stored(self._folder)
            content = self._vault.read(NAME)
            shared = [] if content is None else challenge_keys.decode(content)
            is_late = bool(own) and _newest_s(own) < _newest_s(shared)
            if shared and (not leads or is_late) and _ids(own) != _ids(shared):
                challenge_keys.take(self._folder, shared)
            if leads:
                challenge_keys.load_or_make(self._folder, int(self._now_s()))
            own = challenge_keys.stored(self._folder)
            if leads and _ids(own) != _ids(shared):
                self._vault.write(NAME, challenge_keys.encode(own))
            if _ids(own) != _ids(before):
                self._changed()
        except (StartError, ValueError) as error:
            _log.error("this node's keys of clearances are not the cluster's: %s", error)


def _ids(keys: list[challenge_keys.StoredKey]) -> list[str]:
    return [key.id for key in keys]


def _newest_s(keys: list[challenge_keys.StoredKey]) -> int:
    return keys[0].made_s if keys else 0
