"""A look at connections for those that are late.

Owns  that one whose look fails keeps no other from its own.
Not   when there is a look (`server`); what a connection that is late does.
"""

import logging
from collections.abc import Iterable
from typing import Protocol

from edgestead.model.seldom import Seldom

log = logging.getLogger(__name__)


class Swept(Protocol):
    def sweep(self, now: float) -> None: ...


class Sweep:
    def __init__(self) -> None:
        self._failed = Seldom()

    def each(self, connections: Iterable[Swept], now: float) -> None:
        """They may leave what they are in."""
        for connection in tuple(connections):
            try:
                connection.sweep(now)
            except Exception:
                if times := self._failed.happened():
                    log.exception("%d looks whether a connection is late failed", times)
