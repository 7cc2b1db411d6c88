"""A node's copy as a new base of the control log, so that the log does not grow for ever.

Owns  when a base is due, and who uploads it.
Not   what a base is (`sqlite.replica`); storing it (`postgres.controllog`).

A follower does it, so that the leader has its time for writes: the one with the smallest number. Where the
leader is alone, it does.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edgestead.cluster.members import ADMITTED
from edgestead.cluster.seat import Seat
from edgestead.model.refusals import Unavailable
from edgestead.server.rounds import Rounds
from edgestead.sqlite.replica import copy_parts
from edgestead.store.controllog import ControlLog

LOOK_SECONDS: Final = 60.0
BASE_BYTES: Final = 256 << 20  # of entries, until a new base is due
BASE_SECONDS: Final = 86_400  # the same of time
SECOND_US: Final = 1_000_000

_log = logging.getLogger("edgestead.server")


def is_due(entries_bytes: int, oldest_us: int | None, now_us: int) -> bool:
    """By what has been appended since the newest base, and when the first of it was."""
    if oldest_us is None:
        return False
    return entries_bytes >= BASE_BYTES or now_us - oldest_us >= BASE_SECONDS * SECOND_US


def uploads(seat: Seat) -> bool:
    """Whether this process is the one to upload."""
    holder, number = seat.view.holder, seat.office.number
    followers = [n for n, row in seat.view.rows.items() if row.kind == ADMITTED]
    if holder is not None and len(followers) > 1:
        followers = [n for n in followers if n != holder.number]
    return number is not None and seat.may_answer() and followers[:1] != [] and number == min(followers)


class Bases:
    """Make, `open` and `close` it on control's loop."""

    def __init__(self, path: Path, log: ControlLog, seat: Seat, now_us: Callable[[], int]) -> None:
        self._path, self._control_log, self._seat, self._now_us = path, log, seat, now_us
        self._looks = Rounds(
            *("storing a base of the control data", LOOK_SECONDS, self._look_if_it_uploads),
            first_seconds=LOOK_SECONDS,
            known=(Unavailable,),
        )

    def open(self) -> None:
        self._looks.open()

    def close(self) -> None:
        self._looks.close()

    async def _look_if_it_uploads(self) -> None:
        if uploads(self._seat):
            await asyncio.to_thread(self.look)

    def look(self) -> bool:
        """Store a base when one is due, and delete what it replaces. Blocks. Raises Unavailable,
        Diverged, OSError.
        """
        if not is_due(*self._control_log.since_base(), self._now_us()):
            return False
        with copy_parts(self._path) as (position, parts):
            self._control_log.put_base(position, parts)
        self._control_log.trim()
        _log.info("a base of the control data was stored, up to entry %d", position.sequence)
        return True
