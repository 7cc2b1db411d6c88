"""What this process has users' code do at the moment, written where the next process finds it.

Owns  the shared page: which object's code runs, and which alarms have begun and not ended.
Not   what follows from it (`quarantine`).

A handler that ends its process leaves no other trace, and to log each attempt would take a sync of its own. A
store into a mapped file takes 40 ns, and the kernel keeps it when the process is killed. A power cut may
leave anything there, so what was written in another boot of the machine is not read.

    words 0..6         the mark of the running step, the identity of the boot, the highest slot ever taken,
                       the mark that was blamed
    slot n, 256 bytes  the alarm that has begun, length and msgpack of [class, id, name]
"""

import mmap
import os
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgestead.model.refusals import NO_SPACE_ERRNOS
from edgestead.store.objectlog import ObjectRef

STAGE_FILE = "stage"  # of a process's folder
SLOTS = 16_383  # objects of a process that are watched at a time; more are not
SLOT_BYTES = 256
_BOOT = slice(8, 40)
_HIGHEST = 5  # the word: pages behind it were never touched
_BLAMED = 6  # the word: the mark of who has to answer for the end, whatever runs then
_FIRST = 1  # slot 0 is the head
_WORDS = SLOT_BYTES // 8
_NAMED = 24  # where a slot's identity begins: behind the alarm and the length
_IDENTITY_BYTES_MAX = SLOT_BYTES - _NAMED
_LEVELS = 0xFFFFFFFF
_NOBODYS = 1 << 32  # a mark with the slot 0
PAGE_BYTES = (SLOTS + _FIRST) * SLOT_BYTES

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[str, str, str | None]).decode


class Part:
    """One living object's place. `number` 0 is nobody's, and not watched."""

    __slots__ = ("number", "words")

    def __init__(self, words: memoryview, number: int) -> None:
        self.words, self.number = words, number

    def alarm_begins(self, fired_us: int) -> None:
        if self.number:
            self.words[self.number * _WORDS] = fired_us

    def alarm_ends(self) -> None:
        if self.number:
            self.words[self.number * _WORDS] = 0


NOBODY = Part(memoryview(bytearray(8)).cast("Q"), 0)


class Left(NamedTuple):
    """What a life left behind: who was running, in which event (its number); alarms, by their packed time."""

    running: tuple[ObjectRef, int] | None
    alarms: list[tuple[ObjectRef, int]]


@lru_cache(4_096)
def number_of(event: str) -> int:
    """What stands for the name of a method or event."""
    return zlib.crc32(event.encode())


class Stage:
    """Over `memory`, PAGE_BYTES or less. `boot` is of this boot of the machine; None: nobody knows it.

    `path` is of the file that others may look at meanwhile; None: it is in memory.
    """

    def __init__(self, memory: memoryview, boot: bytes | None, path: str | None = None) -> None:
        self.path = path
        self._bytes, self._words = memory, memory.cast("Q")
        self._slots = len(memory) // SLOT_BYTES - _FIRST
        self._boot = (boot or b"").ljust(_BOOT.stop - _BOOT.start, b"\0")
        same = boot is not None and bytes(memory[_BOOT]) == self._boot
        self.left = self._read() if same else Left(None, [])
        self._free = list(range(self._slots, 0, -1))

    @property
    def mark(self) -> int:
        """Of whose code runs, in which event; 0 while none does. Any thread may read it."""
        return self._words[0]

    def blame(self, mark: int) -> None:
        """This process ends now, because of that event; 0: of nobody's that is known.

        Any thread may call it: what the loop's thread still writes does not change it.
        """
        self._words[_BLAMED] = mark or _NOBODYS

    def who(self, mark: int) -> ObjectRef | None:
        """The object of a mark of this life."""
        return self._who(mark & _LEVELS)

    def _read(self) -> Left:
        mark = self._words[_BLAMED] or self._words[0]
        running = self._who(mark & _LEVELS)
        alarms = []
        for number in range(_FIRST, min(self._words[_HIGHEST], self._slots) + 1):
            fired_us = self._words[number * _WORDS]
            if fired_us and (ref := self._who(number)) is not None:
                alarms.append((ref, fired_us))
        return Left(None if running is None else (running, mark >> 32), alarms)

    def _who(self, number: int) -> ObjectRef | None:
        if not _FIRST <= number <= self._slots:
            return None
        start = number * SLOT_BYTES
        length = self._words[number * _WORDS + 1]
        try:
            return ObjectRef(*_unpack(self._bytes[start + _NAMED : start + _NAMED + length]))
        except msgspec.DecodeError:
            return None

    def begin(self) -> None:
        """What was left is dealt with: begin with nothing going on."""
        self._words[0] = self._words[_HIGHEST] = self._words[_BLAMED] = 0
        self._bytes[_BOOT] = self._boot
        self.left = Left(None, [])

    def take(self, ref: ObjectRef) -> Part:
        """A place for an object that comes into memory; nobody's when all are taken or its class is long."""
        identity = _pack((ref.class_name, ref.id, ref.name))
        if len(identity) > _IDENTITY_BYTES_MAX:
            identity = _pack((ref.class_name, ref.id, None))
        if len(identity) > _IDENTITY_BYTES_MAX or not self._free:
            return NOBODY
        number = self._free.pop()
        start = number * SLOT_BYTES
        self._words[number * _WORDS] = 0
        self._words[number * _WORDS + 1] = len(identity)
        self._words[_HIGHEST] = max(self._words[_HIGHEST], number)
        self._bytes[start + _NAMED : start + _NAMED + len(identity)] = identity
        return Part(self._words, number)

    def give_back(self, part: Part) -> None:
        if part.number:
            part.alarm_ends()
            self._free.append(part.number)
            part.number = 0


def map_stage(path: str) -> Stage:
    """A stage in a file that the next process finds; on a full disk in memory. Raises OSError."""
    found: str | None = path
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, PAGE_BYTES)  # a store to a page without room would be a SIGBUS
        memory = mmap.mmap(descriptor, PAGE_BYTES)
    except OSError as error:
        if error.errno not in NO_SPACE_ERRNOS:
            raise
        memory, found = mmap.mmap(-1, PAGE_BYTES), None
    finally:
        os.close(descriptor)
    return Stage(memoryview(memory), _boot(), found)


def _boot() -> bytes | None:
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
        return bytes.fromhex(text.strip().replace("-", ""))
    except (OSError, ValueError):
        return None
