"""Room on the disk: how much there is, and a reserve for what must go on when there is none.

Owns  `DIR/reserve`, the states of a disk, who may write in which.
Not   how the room of one write is found again; objects, whose log has a reserve of its own.

    state     of the disk                           additions   deletions   readiness
    enough    LOW of the reserve's size is free     yes         yes         ready
    low       less, and the reserve is whole        yes         yes         ready, and a warning in the log
    reserve   less than MARGIN of its size is       values      yes         503
              free, or the reserve is not whole
    none      nothing is left of the reserve, nor   no          may fail    503
              of what the databases own in advance
    files     fewer than FILES_MIN can be made      no          yes         503

An addition is refused before the reserve is touched, so what takes the last room is somebody else: another
program, a log, a stateful object. Small deletions and revocations commit into blocks that the databases own
already (`sqlite.ahead`). When these run short, and for a large body or a start, a piece of the reserve is
given up first; another program may take it before we do.
The reserve is made again when there is room for it and for some additions besides; until then there are none,
so a disk near the edge does not accept and refuse by turns.

Small values are added in the state `reserve`, too, as long as their database has room inside: what deleted
ones left stays in its file, and whoever deletes values has to be able to write again. ROOM_BYTES of the disk
stay free of them, for the journal.

A disk may have blocks and no inode. None are kept back: a start needs about ten.
"""

import enum
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from edgestead.model.refusals import DiskFull
from edgestead.model.room import Adds
from edgestead.sqlite.connection import is_full, sync_folder
from edgestead.store.kv import INLINE_BYTES_MAX

FILE_NAME: Final = "reserve"
ROOM_BYTES: Final = 2 << 20  # free for one deletion, or one start: their pages, journals and notes
PIECE_BYTES_MIN: Final = 1 << 20  # given up at once, and at least a quarter of what is left
MARGIN: Final = 4  # additions end when less than a quarter of the reserve's size is free beside it
LOW: Final = 1  # a warning below once the reserve's size
AGAIN: Final = 2  # the reserve is made again when half its size is free besides
INSIDE_BYTES_MIN: Final = 1 << 20  # of room inside a database, beyond the value that asks for it
FILES_MIN: Final = 64  # inodes; our own files end before the last

log = logging.getLogger("edgestead.server")


class State(enum.Enum):
    ENOUGH = "enough"
    LOW = "low"
    RESERVE = "reserve"
    NONE = "none"
    FILES = "files"


class Free(NamedTuple):
    """What this process can still write: octets, and files that it can make."""

    octets: int
    files: int


FULL: Final = frozenset({State.RESERVE, State.NONE, State.FILES})
_WORDS: Final = {
    State.ENOUGH: "there is room on the disk again",
    State.LOW: "the disk is nearly full",
    State.RESERVE: "the disk is full: nothing can be added, deletions go on",
    State.NONE: "the disk is full, and the reserve is used up: deletions may fail, too",
    State.FILES: "the disk has no inodes left: nothing can be added, and a start or new credentials may fail",
}


def measure(folder: Path) -> Free:
    """Raises OSError."""
    found = os.statvfs(folder)
    blocks = found.f_bavail if os.geteuid() else found.f_bfree
    # Btrfs and others count no inodes: they have as many as there are blocks.
    return Free(found.f_frsize * blocks, found.f_favail if found.f_files else FILES_MIN)


def make_room(folder: Path, free: Callable[[Path], Free] = measure) -> None:
    """Give up what it takes of the reserve until ROOM_BYTES are free, or nothing is left. Never raises."""
    try:
        while free(folder).octets < ROOM_BYTES and _give_piece(folder / FILE_NAME):
            pass
    except OSError as error:
        log.warning("no room could be made on the disk: %s", error)


def _give_piece(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, size - min(size, max(size // 4, PIECE_BYTES_MIN)))
        os.fsync(descriptor)  # some file systems give blocks to others only then
    finally:
        os.close(descriptor)
    return size > 0


class Space:
    """The disk of one data folder. Safe to use from any thread.

    `reserve_bytes` 0 keeps no reserve: then nothing is refused before the disk itself does. While the disk is
    full `inside_bytes` gives the room that deleted values left in their database, and `is_short` says whether
    deletions may need free blocks.
    Cost of `take_room`: 1.5 µs.
    """

    def __init__(
        self,
        folder: Path,
        reserve_bytes: int,
        *,
        free: Callable[[Path], Free] = measure,
        inside_bytes: Callable[[], int] = lambda: 0,
        is_short: Callable[[], bool] = lambda: True,
    ) -> None:
        self._folder = folder
        self._path = folder / FILE_NAME
        self._reserve_bytes = reserve_bytes
        self._free = free
        self._inside_bytes = inside_bytes
        self._is_short = is_short
        self._door = threading.Lock()  # the reserve shrinks and grows in one thread at a time
        self._held_bytes = self._size()
        self.state = State.ENOUGH

    def take_room(self, adds: Adds, length: int = 0) -> None:
        """Ask before each write; `length` is what is known of its size. Raises DiskFull."""
        if not self._reserve_bytes:
            return
        free = self._free_now()
        if adds is not Adds.NOTHING:
            state = self._state(Free(free.octets - length, free.files))
            if state in FULL and not (adds is Adds.VALUES and self._goes_inside(length, free)):
                raise DiskFull
        elif free.octets < ROOM_BYTES and (length > INLINE_BYTES_MAX or self._is_short()):
            self.give_room()

    def give_room(self) -> None:
        """Give up what it takes of the reserve for what needs free blocks. Blocks for the disk."""
        with self._door:
            make_room(self._folder, self._free)
            self._held_bytes = self._size()

    def look(self) -> State:
        """What the state is now; makes the reserve again where there is room. Blocks for the disk."""
        if self._reserve_bytes:
            self._keep()
            self._change(self._state(self._free_now()))
        return self.state

    @property
    def free_bytes(self) -> int:
        """Beside the reserve."""
        return self._free_now().octets

    @property
    def reserve_bytes(self) -> int:
        return self._held_bytes

    @property
    def reason(self) -> str | None:
        """Why nothing can be added; None when it can."""
        return _WORDS[self.state] if self.state in FULL else None

    def _state(self, free: Free) -> State:
        whole = self._held_bytes >= self._reserve_bytes
        if not whole or free.octets < self._reserve_bytes // MARGIN:
            has_room = self._held_bytes or free.octets >= ROOM_BYTES or not self._is_short()
            return State.RESERVE if has_room else State.NONE
        if free.files < FILES_MIN:
            return State.FILES
        return State.LOW if free.octets < self._reserve_bytes // LOW else State.ENOUGH

    def _goes_inside(self, length: int, free: Free) -> bool:
        """Whether a small value finds its room in its database."""
        small = length <= INLINE_BYTES_MAX and free.octets >= ROOM_BYTES
        return small and self._inside_bytes() >= INSIDE_BYTES_MIN + length

    def _change(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            say = log.info if state is State.ENOUGH else log.warning if state is State.LOW else log.error
            say("%s: %d MiB are free in %s", _WORDS[state], self.free_bytes >> 20, self._folder)

    def _keep(self) -> None:
        """Make the reserve whole, where there is room for it and for some additions besides."""
        with self._door:
            self._held_bytes = self._size()
            missing = self._reserve_bytes - self._held_bytes
            if missing > 0 and self.free_bytes >= missing + self._reserve_bytes // AGAIN:
                try:
                    self._allocate()
                except OSError as error:
                    if not is_full(error):
                        log.warning("the reserve could not be made: %s", error)
                self._held_bytes = self._size()

    def _allocate(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._reserve_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(self._folder)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _free_now(self) -> Free:
        try:
            return self._free(self._folder)
        except OSError:
            return Free(0, 0)
