"""Classes whose code ended processes: when their objects get a process of their own, and when they are back.

Owns  the table of states, for one class.
Not   who is blamed (`quarantine`); where the table is kept; starting that process; moving objects.

             an end of its own
    shared ─────────────────────────────────────────────► apart ◄─┐ each end
       │ an end by a signal             an end of any kind  │ ▲  └──┘ begins the quiet time again
       └───────────────────► suspected ─────────────────────┼─┘
                                 │ SUSPECTED_SECONDS        │ QUIET_SECONDS without, or an operator says so;
                                 ▼ without                  ▼ and none of its objects is there any more
                              shared                      shared

One end of its own is enough: the next one would again be felt by all objects of a process. A signal may have
come from outside, or from a kernel whose memory was out, so it takes two.
"""

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

SUSPECTED_SECONDS = 600  # as long as an end is remembered in quarantine
QUIET_SECONDS = 3_600  # a fault that occurs once an hour costs one end in a shared process an hour
State = Literal["suspected", "apart"]


class Row(msgspec.Struct, frozen=True, rename={"class_name": "class"}):
    """A class that is not just shared: how many ends were counted, when the first and the newest were.

    `last_us` 0: an operator said that it may go back.
    """

    class_name: str
    state: State
    ends: int
    since_us: int
    last_us: int


Rows = dict[str, Row]


class Classes(Protocol):
    """The table of a server, as one process sees it: its rows, the classes that are apart by it."""

    rows: Rows
    classes: frozenset[str]

    def look(self) -> bool:
        """Read again what others wrote. True when other classes are apart than before. Raises OSError."""
        ...

    def release(self, class_name: str) -> bool:
        """Let a class go back as soon as its objects have; False when it is not apart. Raises OSError."""
        ...


class Nowhere:
    """Of a process alone."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.classes: frozenset[str] = frozenset()

    def look(self) -> bool:
        return False

    def release(self, class_name: str) -> bool:
        return False


def after_end(row: Row | None, class_name: str, now_us: int, *, is_own: bool) -> Row:
    """A process ended while an object of the class ran."""
    if row is not None and is_over(row, now_us, has_objects=True):
        row = None
    state: State = "apart" if is_own or row is not None else "suspected"
    if row is None:
        return Row(class_name, state, 1, now_us, now_us)
    return Row(class_name, state, row.ends + 1, row.since_us, now_us)


def is_over(row: Row, now_us: int, *, has_objects: bool) -> bool:
    """Whether the class is shared again. `has_objects`: in the process of its own."""
    if row.state == "suspected":
        return _quiet_us(row, now_us) > SUSPECTED_SECONDS * 1_000_000
    return may_return(row, now_us) and not has_objects


def may_return(row: Row, now_us: int) -> bool:
    """Whether objects of a class that is apart are to go back."""
    return row.state == "apart" and _quiet_us(row, now_us) > QUIET_SECONDS * 1_000_000


def released(row: Row) -> Row:
    """An operator says that the class may go back."""
    return msgspec.structs.replace(row, last_us=0)


def apart(rows: Iterable[Row]) -> frozenset[str]:
    """The classes that have a process of their own."""
    return frozenset(row.class_name for row in rows if row.state == "apart")


def _quiet_us(row: Row, now_us: int) -> int:
    return abs(now_us - row.last_us)  # the clock may have been set back
