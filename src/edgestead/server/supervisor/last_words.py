"""Why each process ended last, in memory that the supervisor writes and others read.

Owns  the page: a checksum, a length, and JSON of reasons by the name of the process.
Not   what a reason says (`server.process`).

A process that cannot start has no way to say so itself: control that does not open its database, above all.
"""

import mmap
import struct
import zlib
from contextlib import suppress
from typing import Final

import msgspec

PAGE_BYTES: Final = 1 << 15  # 64 reasons of REASON_OCTETS_MAX, nearly; more are left out
_HEAD: Final = struct.Struct("<II")


class LastWords:
    """One writer, any number of readers. A reader that meets a write under way gets what it read before."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, PAGE_BYTES)
        self._reasons: dict[str, str] = {}

    def note(self, name: str, reason: str) -> None:
        self._reasons[name] = reason
        self._write()

    def forget(self, name: str) -> None:
        if self._reasons.pop(name, None) is not None:
            self._write()

    def read(self) -> dict[str, str]:
        checksum, length = _HEAD.unpack(self._page[: _HEAD.size])
        octets = self._page[_HEAD.size : _HEAD.size + length]
        if length and zlib.crc32(octets) == checksum:
            with suppress(msgspec.DecodeError):
                self._reasons = msgspec.json.decode(octets, type=dict[str, str])
        return self._reasons

    def _write(self) -> None:
        kept = list(self._reasons.items())
        while len(octets := msgspec.json.encode(dict(kept))) > PAGE_BYTES - _HEAD.size:
            kept.pop(0)
        self._page[: _HEAD.size + len(octets)] = _HEAD.pack(zlib.crc32(octets), len(octets)) + octets
