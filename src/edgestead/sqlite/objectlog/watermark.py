"""How far the log was acknowledged: a mark that distinguishes a lost tail from a torn one.

Owns  the bytes of the mark, when it is updated, when it is synced.
Not   what is done about a loss (`adoption`).

    log/mark   magic · crc · folder · generation · offset      in one sector, written in place

It is updated after a group was synced and before the group is acknowledged, and is itself synced only about
every second. So it is never ahead of what is durable: after a kill it is exact, after a power cut it may lag
by a second, in which a lost tail looks like a torn one. The catalogue records for which generation of the
folder there is a mark, so that a missing one is noticed.
"""

import contextlib
import struct
import zlib

import msgspec

from edgestead.sqlite.objectlog.paths import mark_path
from edgestead.store.files import File, Files

_MARK = struct.Struct("<4sI16sQQ")  # magic, crc, folder, generation, offset
_COVERED = struct.Struct("<16sQQ")
_MAGIC = b"\xe5MRK"
FILE_BYTES = 4_096  # written once, so that updating the mark needs no space


class Mark(msgspec.Struct, frozen=True):
    """The end of the last acknowledged record: a segment's generation, and an offset in it."""

    generation: int
    offset: int


NOWHERE = Mark(0, 0)


def read_mark(files: Files, folder: str, folder_id: bytes) -> Mark | None:
    """The mark of an objects folder; None without one, or with one of another folder, or a damaged one."""
    path = mark_path(folder)
    if not files.exists(path):
        return None
    file = files.open(path)
    try:
        data = file.read(_MARK.size, 0)
    finally:
        file.close()
    if len(data) < _MARK.size:
        return None
    magic, crc, owner, generation, offset = _MARK.unpack(data)
    if (magic, owner) != (_MAGIC, folder_id) or crc != zlib.crc32(_COVERED.pack(owner, generation, offset)):
        return None
    return Mark(generation, offset)


def missed(folder: str) -> str:
    """The message about a missing mark."""
    return f"{mark_path(folder)} is gone or damaged: if the log lost its end with it, nothing else tells"


def write_mark(files: Files, folder: str, folder_id: bytes, mark: Mark) -> None:
    """Record durably where a log ends that no process has open. Raises OSError."""
    made = Watermark(files, folder, folder_id)
    made.move(mark.generation, mark.offset)
    made.close()


class Watermark:
    """The mark of an open log; `anew`: ignore its present file. Raises OSError when it cannot be created."""

    def __init__(self, files: Files, folder: str, folder_id: bytes, *, anew: bool = False) -> None:
        self._folder_id = folder_id
        self._file: File = files.open(mark_path(folder), create=True)
        self._moved = False
        try:
            if anew or self._file.size() < FILE_BYTES:
                self._file.write(self._packed(NOWHERE).ljust(FILE_BYTES, b"\0"), 0)
                self._file.sync()
        except OSError:
            self._file.close()
            raise

    def move(self, generation: int, offset: int) -> None:
        """Everything up to here is durable. On the thread that has synced it."""
        try:
            self._file.write(self._packed(Mark(generation, offset)), 0)
            self._moved = True
        except OSError:
            pass  # a mark that lags is harmless: a group must not fail because of it

    def _packed(self, mark: Mark) -> bytes:
        owner, generation, offset = self._folder_id, mark.generation, mark.offset
        crc = zlib.crc32(_COVERED.pack(owner, generation, offset))
        return _MARK.pack(_MAGIC, crc, owner, generation, offset)

    def sync(self) -> None:
        """Make it durable, if it has moved. For a thread that may wait."""
        if self._moved:
            self._moved = False
            with contextlib.suppress(OSError):
                self._file.sync()

    def close(self) -> None:
        self.sync()
        self._file.close()
