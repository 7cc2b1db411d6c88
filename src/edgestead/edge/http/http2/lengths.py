"""The lengths of frames, as they begin.

Owns  finding a frame, or a block of fields, that is longer than it may be, before anything of it is kept.
Not   reading frames (`h2`), which asks for all of a frame before it looks at its length: 16 MiB of memory.
      Of a block in CONTINUATION it keeps 64 frames before it looks at the fields: 1 MiB.
"""

from edgestead.http1.limits import HEAD_BYTES_MAX

PREFACE_OCTETS = 24  # RFC 9113 §3.4
HEAD_OCTETS = 9
FRAME_OCTETS_MAX = 16_384  # RFC 9113 §6.5.2: what no setting has to offer
_HEADERS, _CONTINUATION, _END_HEADERS = 0x1, 0x9, 0x4


class Lengths:
    """Fed with everything that is received, in whatever pieces."""

    __slots__ = ("_block", "_head", "_rest")

    def __init__(self) -> None:
        self._rest = PREFACE_OCTETS  # of what is skipped, before the next head
        self._head = b""
        self._block = 0  # of a block of fields whose last frame is not here

    @property
    def held(self) -> int:
        """What of fields is kept until their last frame is here, at most."""
        return self._block

    def feed(self, data: bytes) -> bool:
        """False: a frame or a block is too long, and nothing may be read any more."""
        at, end = 0, len(data)
        while at + self._rest < end:
            at, self._rest = at + self._rest, 0
            taken = data[at : at + HEAD_OCTETS - len(self._head)]
            at += len(taken)
            self._head += taken
            if len(self._head) < HEAD_OCTETS:
                return True
            if not self._begin():
                return False
        self._rest -= end - at
        return True

    def _begin(self) -> bool:
        head, self._head = self._head, b""
        self._rest, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        if kind == _HEADERS or kind == _CONTINUATION:
            self._block = self._rest if kind == _HEADERS else self._block + self._rest
            if self._block > HEAD_BYTES_MAX:
                return False
            if flags & _END_HEADERS:
                self._block = 0
        return self._rest <= FRAME_OCTETS_MAX
