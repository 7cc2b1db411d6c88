"""Secrets that machines without control need: those of DNS, and the keys of clearances.

Owns  giving them to the feed, and again when they are others.
Not   certificates (`certificates`); who gets them, and where they are kept there (`feed`, `server.relay`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edgestead.model import tsig
from edgestead.server import framed, seal
from edgestead.server.dns import secret_memory
from edgestead.server.dns.secret_memory import DnsSecrets
from edgestead.server.edge.challenge_key_memory import MEMORY_OCTETS
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, ControlStart
from edgestead.server.nodes.kinds import CHALLENGE_KEYS, DNS_SECRETS
from edgestead.server.rounds import Rounds

LOOK_SECONDS: Final = 1.0  # how late a new key of clearances is: its predecessor signs on for ten


class NodeSecrets:
    """Make and `open` it on control's loop. `tell` takes group, name and content."""

    def __init__(self, start: ControlStart, tell: Callable[[str, str, bytes], None]) -> None:
        self._start, self._tell = start, tell
        self._keys = framed.Reader(start.challenge_keys_fd, MEMORY_OCTETS)
        self._untold: bytes | None = None
        # Without looks other machines would go on with keys that are void.
        self._looks = Rounds("a look at the keys of clearances", LOOK_SECONDS, self._look)
        self.close = self._looks.close

    async def open(self) -> None:
        start = self._start
        opens = await asyncio.to_thread(seal.derived_or_none, Path(start.data_dir), tsig.PURPOSE)
        content = secret_memory.encode(DnsSecrets(opens, start.cookie_secret))
        self._tell(DNS_GROUP, DNS_SECRETS, content)
        self._looks.open()

    async def _look(self) -> None:
        if (content := self._keys.changed()) is not None:
            self._untold = content
        if self._untold is not None:
            self._tell(EDGE_GROUP, CHALLENGE_KEYS, self._untold)
            self._untold = None
