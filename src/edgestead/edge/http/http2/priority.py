"""Which answer goes on next on a connection that has several (RFC 9218).

Owns  what a client says of an answer's urgency; the order of those that have something to send.
Not   windows of flow control; frames.

The most urgent go first. Among these, one that is of use only as a whole comes before the next of its kind,
by the order of asking; those of use in parts, as images are, take turns.
"""

import re
from typing import NamedTuple

URGENCY, URGENCY_MAX = 3, 7
VALUE_OCTETS_MAX = 64  # of a value that is looked at: `u=3, i` has six
_URGENCY = re.compile(rb"(?:^|,)[ \t]*u=([0-7])(?=[ \t]*(?:[,;]|$))")
_INCREMENTAL = re.compile(rb"(?:^|,)[ \t]*i(?:=\?(?P<said>[01]))?(?=[ \t]*(?:[,;]|$))")


class Priority(NamedTuple):
    urgency: int = URGENCY
    is_incremental: bool = False


USUAL = Priority()


def read(value: bytes | None) -> Priority:
    """A `priority` header's, or that of a PRIORITY_UPDATE. What cannot be read is the usual one (§4)."""
    if not value or len(value) > VALUE_OCTETS_MAX:
        return USUAL
    urgency, incremental = _URGENCY.search(value), _INCREMENTAL.search(value)
    return Priority(
        URGENCY if urgency is None else int(urgency[1]),
        incremental is not None and incremental["said"] != b"0",
    )


class Waiting:
    """Streams that have something to send, by number. A turn is given to each of use in parts.

    A connection has a hundred streams at most: to look at all of them takes less than a frame does.
    """

    __slots__ = ("_ranks", "_turn")

    def __init__(self) -> None:
        self._ranks: dict[int, tuple[int, int]] = {}
        self._turn = 1 << 31  # behind those of which nothing went out: their turns are their numbers

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def add(self, number: int, priority: Priority) -> None:
        """Where it waits already, its urgency is what it is now."""
        _, turn = self._ranks.get(number, (0, number))
        self._ranks[number] = (priority.urgency, turn)

    def remove(self, number: int) -> None:
        self._ranks.pop(number, None)

    def first(self) -> int:
        """Whose frame is next; it stays in."""
        ranks = self._ranks
        return min(ranks, key=ranks.__getitem__) if len(ranks) > 1 else next(iter(ranks))

    def served(self, number: int, priority: Priority) -> None:
        """A frame of it went out: others of use in parts come before its next one."""
        if priority.is_incremental and number in self._ranks:
            self._turn += 1
            self._ranks[number] = (priority.urgency, self._turn)
