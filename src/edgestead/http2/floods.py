"""Frames that cost us work and carry nothing: how many a client may send.

Owns  the counts of the second that goes.
Not   the numbers (`model.budgets.table`); which frames count (`wire`); closing the connection.

Each of these has been an attack: streams that are reset as soon as they are asked for (CVE-2023-44487), PING
and SETTINGS that want an answer each (CVE-2019-9512, -9515), empty DATA (CVE-2019-9518), windows that grow by
an octet (CVE-2019-9511), PRIORITY (CVE-2019-9513). CONTINUATION without an end and HPACK bombs are limited by
octets and frames, in `wire`.
"""

from edgestead.model.budgets import table
from edgestead.model.budgets.table import Budget

EARNS_OCTETS = 1_024  # of a frame; smaller ones are the doing of who opens a window by an octet
WINDOW_OCTETS = 4_096  # Go's client gives a window back for each 4 KiB that it has read
EARNED_MAX = 65_536  # frames: windows of 256 MiB, as fifty pages have that Go's client holds unread


class Floods:
    """`begin_second` is called by the sweep. Content that we send earns some frames, whenever they come."""

    __slots__ = ("_frames", "_resets")

    def __init__(self) -> None:
        self._frames = self._resets = 0

    def begin_second(self) -> None:
        self._frames, self._resets = min(self._frames, 0), 0

    def sent(self, octets: int) -> None:
        """A frame of content went out: windows for it come back."""
        if octets >= EARNS_OCTETS:
            self._earn(1 + octets // WINDOW_OCTETS)

    def answered(self) -> None:
        """A request was served to its end: a window and a PING may come with it, as libraries of gRPC do."""
        self._earn(2)

    def _earn(self, frames: int) -> None:
        self._frames = max(-EARNED_MAX, self._frames - frames)

    def frame(self) -> Budget | None:
        """Another frame that carries nothing: the budget that it is over."""
        self._frames += 1
        return table.HTTP2_FRAMES if self._frames > table.HTTP2_FRAMES.limit else None

    def reset(self) -> Budget | None:
        """Another request that its client took back: the budget that it is over."""
        self._resets += 1
        return table.HTTP2_RESETS if self._resets > table.HTTP2_RESETS.limit else None
