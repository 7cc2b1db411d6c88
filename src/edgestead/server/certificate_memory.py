"""The certificates that the server keeps, in memory that control shares with those that show them.

Owns  their form there; what control writes and they read.
Not   the frame (`server.framed`); which certificate a name gets (`usecases.serving.certificates`).

Keys lie in the database sealed, and open only here: in memory that has no name in any folder, that ends
with the server, and that no other process was given. Edge processes, and that of DNS over TLS, read them
without asking anybody, also while control is away, and never learn the secret that sealed them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from edgestead.edge.http.certificates import Kept
from edgestead.edge.http.origin_tls import Vouching
from edgestead.server import framed

MEMORY_OCTETS_MAX: Final = 256 << 20  # of 20,000 certificates, each with its chain twice over

_encode = msgspec.msgpack.Encoder().encode


class _Content(msgspec.Struct, frozen=True, array_like=True):
    kept: tuple[Kept, ...]
    origins: Vouching
    pages: dict[str, str]
    handshakes: tuple[Kept, ...]


_decode = msgspec.msgpack.Decoder(_Content).decode


class Proofs(NamedTuple):
    """What authorities look for: `pages` by "host/token", certificates of handshakes by their host."""

    pages: dict[str, str] = {}  # noqa: RUF012 - never changed
    handshakes: tuple[Kept, ...] = ()


NO_PROOFS = Proofs()


def write(fd: int, kept: Sequence[Kept], origins: Vouching, proofs: Proofs = NO_PROOFS) -> bool:
    """False: they are too many, and what was there stays. Raises OSError."""
    content = _encode(_Content(tuple(kept), origins, *proofs))
    if len(content) > MEMORY_OCTETS_MAX:
        return False
    framed.write(fd, content)
    return True


def content_of(fd: int) -> bytes:
    """What was written last, as it goes to other machines' memories; empty when nothing was."""
    return framed.Reader(fd, MEMORY_OCTETS_MAX).changed() or b""


class CertificateReader:
    """One process's look at the memory."""

    def __init__(self, fd: int) -> None:
        self._reader = framed.Reader(fd, MEMORY_OCTETS_MAX)
        self.origins = Vouching()
        self.proofs = NO_PROOFS

    def changed(self) -> tuple[Kept, ...] | None:
        """All of them, when they or the others are new since the last call; else None. About 1 µs."""
        content = self._reader.changed()
        if content is None:
            return None
        found = _decode(content)
        self.origins, self.proofs = found.origins, Proofs(found.pages, found.handshakes)
        return found.kept
