"""Memory that one process writes and others read while it is written: what is read is whole, or not new.

Owns  the frame: digest, length, content; telling something new from something half written.
Not   what is in it; who made the memory.

    16 octets   BLAKE2s of all that follows
     8 octets   length
     ...        the content

There is one writer. A reader that meets it in the middle of its work sees a digest that does not fit, and
keeps what it has until it looks again. The memory grows with what is written.
"""

import hashlib
import os

_DIGEST_OCTETS, _LENGTH_OCTETS = 16, 8
HEAD_OCTETS = _DIGEST_OCTETS + _LENGTH_OCTETS


def write(fd: int, content: bytes) -> None:
    """Raises OSError: there is no memory left. Then what was there stays."""
    rest = len(content).to_bytes(_LENGTH_OCTETS) + content
    framed = memoryview(_digest(rest) + rest)
    os.posix_fallocate(fd, 0, len(framed))  # or a process that begins would find half of it, and use nothing
    done = 0
    while done < len(framed):  # one call writes 2 GiB at most, and less where a signal comes
        done += os.pwrite(fd, framed[done:], done)


class Reader:
    """One process's look at the memory; of more than `octets_max` nothing is read. Not thread-safe."""

    def __init__(self, fd: int, octets_max: int) -> None:
        self._fd = fd
        self._octets_max = octets_max
        self._seen = b""

    def changed(self) -> bytes | None:
        """The content, when it is another one than at the last call; None otherwise. About 1 µs."""
        head = os.pread(self._fd, HEAD_OCTETS, 0)
        digest, length = head[:_DIGEST_OCTETS], head[_DIGEST_OCTETS:]
        size = int.from_bytes(length)
        if digest == self._seen or len(head) < HEAD_OCTETS or size > self._octets_max:
            return None
        content = os.pread(self._fd, size, HEAD_OCTETS)
        if _digest(length + content) != digest:
            return None  # it is being written
        self._seen = digest
        return content


def _digest(octets: bytes) -> bytes:
    return hashlib.blake2s(octets, digest_size=_DIGEST_OCTETS).digest()
