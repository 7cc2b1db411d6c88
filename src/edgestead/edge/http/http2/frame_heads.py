"""The heads of frames, looked at as they come and before anything of them is kept or worked at.

Owns  frames and blocks of fields that are too long; how many frames are read at once; counting floods.
Not   reading frames (`h2`), which asks for all of a frame before it looks at its length: 16 MiB of memory. Of
      a block in CONTINUATION it keeps 64 frames before it looks at the fields: 1 MiB.
"""

from edgestead.edge.http.http2.floods import Floods
from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.model.budgets.table import Budget

PREFACE_OCTETS = 24  # RFC 9113 §3.4
HEAD_OCTETS = 9
FRAME_OCTETS_MAX = 16_384  # RFC 9113 §6.5.2: what no setting has to offer
SETTINGS_OCTETS_MAX = 32 * 6  # settings of one frame; there are ten in all
FRAMES_AT_ONCE = 24  # two or three milliseconds, where each is a request
_DATA, _HEADERS, _RESET, _SETTINGS, _CONTINUATION = 0x0, 0x1, 0x3, 0x4, 0x9
_END_STREAM, _END_HEADERS = 0x1, 0x4


class FrameHeads:
    """Fed with everything that is received, in whatever pieces.

    `is_bad`: a frame or a block is too long, or there was a flood (`over`): nothing may be read any more.
    """

    __slots__ = ("_block", "_floods", "_head", "_rest", "is_bad", "over")

    def __init__(self, floods: Floods) -> None:
        self._floods = floods
        self._rest = PREFACE_OCTETS  # of what is skipped, before the next head
        self._head = b""
        self._block = 0  # of a block of fields whose last frame is not here
        self.is_bad = False
        self.over: Budget | None = None

    @property
    def held(self) -> int:
        """What of fields is kept until their last frame is here, at most."""
        return self._block

    def read(self, data: bytes, at: int) -> int:
        """Up to where of the data may be handed on at once: FRAMES_AT_ONCE frames begin in it, at most."""
        end = len(data)
        for _ in range(FRAMES_AT_ONCE):
            if at + self._rest >= end:
                self._rest -= end - at
                return end
            at, self._rest = at + self._rest, 0
            taken = data[at : at + HEAD_OCTETS - len(self._head)]
            at += len(taken)
            self._head += taken
            if len(self._head) < HEAD_OCTETS:
                return at
            head, self._head = self._head, b""
            self._rest = int.from_bytes(head[:3], "big")
            self._look(head[3], head[4])
            if self.is_bad:
                return at
        return at

    def _look(self, kind: int, flags: int) -> None:
        length = self._rest
        if kind == _HEADERS or kind == _CONTINUATION:
            self._block = length if kind == _HEADERS else self._block + length
            self.is_bad = self._block > HEAD_BYTES_MAX
            if flags & _END_HEADERS:
                self._block = 0
        elif kind == _RESET:
            self.over = self._floods.reset()
        elif kind != _DATA or (not length and not flags & _END_STREAM):
            self.over = self._floods.frame()
        too_long = length > (SETTINGS_OCTETS_MAX if kind == _SETTINGS else FRAME_OCTETS_MAX)
        self.is_bad = self.is_bad or too_long or self.over is not None
