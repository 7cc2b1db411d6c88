"""Secrets that machines without control need: those of DNS, and the keys of clearances.

Owns  giving them to the feed, and again when they are others.
Not   certificates (`certificates`); who gets them, and where they are kept there (`feed`, `server.relay`).
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edgestead.model import tsig
from edgestead.model.seldom import Seldom
from edgestead.server import framed, seal
from edgestead.server.dns import secret_memory
from edgestead.server.dns.secret_memory import DnsSecrets
from edgestead.server.edge.challenge_key_memory import MEMORY_OCTETS
from edgestead.server.messages import DNS_GROUP, EDGE_GROUP, ControlStart
from edgestead.server.nodes.kinds import CHALLENGE_KEYS, DNS_SECRETS

LOOK_SECONDS: Final = 1.0  # how late a new key of clearances is: its predecessor signs on for ten

_log = logging.getLogger("edgestead.server")


class NodeSecrets:
    """Make and `open` it on control's loop. `tell` takes group, name and content."""

    def __init__(self, start: ControlStart, tell: Callable[[str, str, bytes], None]) -> None:
        self._start, self._tell = start, tell
        self._keys = framed.Reader(start.challenge_keys_fd, MEMORY_OCTETS)
        self._untold: bytes | None = None
        self._failed = Seldom()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        start = self._start
        opens = await asyncio.to_thread(seal.derived_or_none, Path(start.data_dir), tsig.PURPOSE)
        content = secret_memory.encode(DnsSecrets(opens, start.cookie_secret))
        self._tell(DNS_GROUP, DNS_SECRETS, content)
        self._look()
        self._task = asyncio.create_task(self._watch())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._look()
            except Exception:  # without looks other machines would go on with keys that are void
                if times := self._failed.happened():
                    _log.exception("a look at the keys of clearances failed (%d since the last line)", times)

    def _look(self) -> None:
        if (content := self._keys.changed()) is not None:
            self._untold = content
        if self._untold is not None:
            self._tell(EDGE_GROUP, CHALLENGE_KEYS, self._untold)
            self._untold = None
