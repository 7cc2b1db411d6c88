"""The certificates that the server keeps, in memory that control shares with those that show them.

Owns  their form there; what control writes and they read.
Not   the frame (`server.framed`); which certificate a name gets (`usecases.serving.certificates`).

Keys lie in the database sealed, and open only here: in memory that has no name in any folder, that ends
with the server, and that no other process was given. Edge processes, and that of DNS over TLS, read them
without asking anybody, also while control is away, and never learn the secret that sealed them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from edgestead.edge.http.certificates import Kept
from edgestead.server import framed

MEMORY_OCTETS_MAX: Final = 256 << 20  # of 20,000 certificates, each with its chain twice over

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Kept, ...]).decode


def write(fd: int, kept: Sequence[Kept]) -> bool:
    """False: they are too many, and what was there stays. Raises OSError."""
    content = _encode(kept)
    if len(content) > MEMORY_OCTETS_MAX:
        return False
    framed.write(fd, content)
    return True


class CertificateReader:
    """One process's look at the memory."""

    def __init__(self, fd: int) -> None:
        self._reader = framed.Reader(fd, MEMORY_OCTETS_MAX)

    def changed(self) -> tuple[Kept, ...] | None:
        """All of them, when they are others than at the last call; None otherwise. About 1 µs."""
        content = self._reader.changed()
        return None if content is None else _decode(content)
