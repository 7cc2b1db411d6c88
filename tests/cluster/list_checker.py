"""Whether a history of one list, to which clients append unique numbers and which they read, is linearizable.

Owns  deciding it, exactly, in n log n.
Not   making the history.

The longest read says in which order the appends happened, and any other has to be a beginning of it. So each
operation has a place: an append is between two lengths of the list, a read is at one. The history is
linearizable if there is no pair of operations, one of which ended before the other began, that are in the
other order by their places. An append whose outcome is unknown never ends, and need not be in the list.
"""

from collections.abc import Sequence
from typing import NamedTuple

NEVER = float("inf")


class Append(NamedTuple):
    """`ended` is NEVER when its outcome is unknown."""

    number: int
    began: float
    ended: float = NEVER


class Read(NamedTuple):
    began: float
    ended: float
    numbers: Sequence[int]


class _Placed(NamedTuple):
    words: str
    began: float
    ended: float
    before: int  # how long the list is at least when it happens
    after: int


def faults(appends: Sequence[Append], reads: Sequence[Read]) -> list[str]:
    """What no list could have answered; nothing when all is well. The last read begins after all else."""
    final = max((list(read.numbers) for read in reads), key=len, default=[])
    places = {number: index for index, number in enumerate(final)}
    found = _in_the_list(appends, final, places)
    placed = []
    for read in reads:
        length = len(read.numbers)
        if list(read.numbers) != final[:length]:
            found.append(f"a read of {length} numbers is no beginning of the longest one")
        placed.append(_Placed(f"a read of {length} numbers", read.began, read.ended, length, length))
    for append in appends:
        if (index := places.get(append.number)) is not None:
            words = f"the append of {append.number}"
            placed.append(_Placed(words, append.began, append.ended, index, index + 1))
    return found + _out_of_order(placed)


def _in_the_list(appends: Sequence[Append], final: list[int], places: dict[int, int]) -> list[str]:
    begun = {append.number for append in appends}
    lost = [append.number for append in appends if append.ended < NEVER and append.number not in places]
    return [
        *(f"{number} was acknowledged, and is not in the list" for number in lost),
        *(f"{number} is in the list, and nobody appended it" for number in final if number not in begun),
        *([f"{len(final) - len(places)} numbers are in the list twice"] if len(final) > len(places) else []),
    ]


def _out_of_order(placed: list[_Placed]) -> list[str]:
    """Operations that are before one which had ended when they began."""
    found = []
    by_end = sorted(placed, key=lambda one: one.ended)
    ended, latest = 0, None
    for one in sorted(placed, key=lambda one: one.began):
        while ended < len(by_end) and by_end[ended].ended < one.began:
            if latest is None or by_end[ended].after > latest.after:
                latest = by_end[ended]
            ended += 1
        if latest is not None and latest.after > one.before:
            found.append(f"{one.words} began after {latest.words} had ended, and is before it")
    return found
