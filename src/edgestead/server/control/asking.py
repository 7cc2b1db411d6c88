"""Asking a primary from control's loop.

Owns  the key that a transfer is signed with; asking again for all of a zone.
Not   a transfer (`server.control.incoming`); who is asked when (`server.control.secondaries`,
      `server.control.followed`).
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from edgestead.dns.tsig import Key
from edgestead.model.refusals.tsig import TsigSealed
from edgestead.server.control import incoming
from edgestead.server.control.apart import apart
from edgestead.server.control.incoming import Found
from edgestead.server.control.signers import signer
from edgestead.tables.tsig_keys import TsigRow
from edgestead.usecases.platform import Platform
from edgestead.usecases.zone.secondary import Peer, Rr, Unfit

_THREAD: Final = "transfer-in"

Present = Callable[[], frozenset[Rr]]
Fetch = Callable[[Peer, bytes, int | None, Present, bool, Key | None], Found]


def ask(peer: Peer, apex: bytes, serial: int | None, present: Present, whole: bool, key: Key | None) -> Found:
    return incoming.fetch(peer, apex, serial, present, whole=whole, key=key)


class Asking:
    def __init__(self, platform: Platform, fetch: Fetch = ask) -> None:
        self._platform = platform
        self._fetch = fetch

    async def found(
        self,
        peer: Peer,
        keys: Mapping[str, TsigRow],
        apex: bytes,
        serial: int | None,
        present: Present,
        *,
        whole: bool,
    ) -> Found:
        """Raises Unfit, OSError."""
        key = self._key(peer, keys)
        try:
            return await apart(_THREAD, self._fetch, peer, apex, serial, present, whole, key)
        except Unfit:  # of changes alone: a primary that cannot do it right may give the whole zone
            if whole or serial is None or not peer.ixfr_enable:
                raise
            without_changes = msgspec.structs.replace(peer, ixfr_enable=False)
            return await apart(_THREAD, self._fetch, without_changes, apex, serial, present, False, key)

    def _key(self, peer: Peer, keys: Mapping[str, TsigRow]) -> Key | None:
        """What the transfer is signed with. Raises Unfit: without a key that is wanted nothing is asked."""
        if peer.tsig_id is None:
            return None
        row = keys.get(peer.tsig_id)
        if row is None:
            raise Unfit("the TSIG key that it wants is gone")
        try:
            return signer(self._platform, row)
        except TsigSealed as refusal:
            raise Unfit(refusal.message) from None


def words(error: Exception) -> str:
    """Why a primary gave nothing."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
