"""What is left alone for a while, because what became of it could not be written (the disk is full, say).

Owns  until when, in memory alone: in the tables it is due all the while, and would be begun again at once.
Not   what is tried, and when it is due.

A pause is of what is due since a time: who asks for it again, which is written, does not wait.
"""

from typing import Final, NamedTuple

PAUSE_SECONDS: Final = 60
PAUSE_SECONDS_MAX: Final = 3_600  # each attempt asks somebody, an authority say, who may count that
_US: Final = 1_000_000


Due = tuple[str, int]
"""What is due, by id, and since when."""


class _Pause(NamedTuple):
    due_us: int
    until_us: int
    times: int  # in a row


class Pauses:
    """Each pause of one thing is twice as long as its last one, up to PAUSE_SECONDS_MAX."""

    def __init__(self) -> None:
        self._pauses: dict[str, _Pause] = {}  # by id; kept for the longest pause behind their end

    def begin(self, due: Due, now_us: int) -> None:
        id_, due_us = due
        times = self._pauses[id_].times + 1 if id_ in self._pauses else 1
        seconds = min(PAUSE_SECONDS << min(times - 1, 16), PAUSE_SECONDS_MAX)
        self._pauses[id_] = _Pause(due_us, now_us + seconds * _US, times)

    def forget(self, id_: str) -> None:
        """It was written."""
        self._pauses.pop(id_, None)

    def running(self, now_us: int) -> frozenset[Due]:
        """What is left alone now."""
        forgotten_us = now_us - PAUSE_SECONDS_MAX * _US
        self._pauses = {id_: one for id_, one in self._pauses.items() if one.until_us > forgotten_us}
        return frozenset((id_, one.due_us) for id_, one in self._pauses.items() if one.until_us > now_us)
