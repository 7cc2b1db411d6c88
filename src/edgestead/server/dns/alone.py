"""When a DNS process may answer from its file although control never told it to.

Owns  the rule.
Not   coming back to control: the follower registers as one that serves.

    control     the file's run   the file's change        answers
    lives       any              any                      no: it may acknowledge something at any moment
    away        another          any                      no: its changes may be of another history
    away        this one         before the newest        no: something acknowledged is not in it
    away        this one         any, and nobody knows    no: the witness is gone, or could not be told
                                 the newest
    away        this one         the newest               yes
    away for less than AWAY_SECONDS                       no: it is being started again

The witness is told of a change before anybody hears of it (`sqlite.witness`), so the newest change that
it knows is never before the newest that was acknowledged.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from edgestead.dns.warm import Label
from edgestead.server.supervisor.control_life import ControlLife
from edgestead.sqlite import witness

AWAY_SECONDS: Final = 1.0  # since this process began; control is back much sooner when it can


class Alone:
    def __init__(
        self,
        label: Label | None,
        run: str,
        life_fd: int,
        witness_fd: int,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._run = label, run
        self._life = ControlLife(life_fd)
        self._witness_fd = witness_fd
        self._seconds = seconds
        self._began = seconds()

    def may_serve(self) -> bool:
        return (
            self._label is not None
            and self._label.run == self._run
            and self._seconds() - self._began >= AWAY_SECONDS
            and self._life.is_away
            and self._is_newest(self._label.sequence)
        )

    def _is_newest(self, sequence: int) -> bool:
        noted = witness.read(os.pread(self._witness_fd, witness.PAGE_BYTES, 0))
        return any(noted) and noted.sequence <= sequence  # one that says nothing vouches for nothing
