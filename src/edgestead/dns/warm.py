"""The served data of a DNS process in a file, so that the next process need not compile it again.

Owns  the file: its format, its checksum, writing it in one step.
Not   whether its position is still part of the feed: control decides when the process registers.

    MAGIC · SHA-256 of the rest · frames: four octets of length and a body
    the first body is the label, each of the others one part

The checksum is verified before any content is decoded. It detects damage, not forgery: an attacker who can
write to the folder can write a checksum. So the parts are msgpack, decoded into the types that the reader
names: a forged file can contain wrong data, but not run code. Only the same version of the program uses the
file; others ignore it.
"""

import hashlib
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from edgestead import __version__

FORMAT: Final = 6
"""To be raised with every change of what a zone or node looks like."""
FILE_OCTETS_MAX: Final = 4 << 30  # a larger file is not read: the process starts without it
MAGIC: Final = b"edgestead-warm\r\n"

_DIGEST_AT: Final = len(MAGIC)
_BODY_AT: Final = _DIGEST_AT + hashlib.sha256().digest_size
_LENGTH: Final = struct.Struct(">I")


PartT = TypeVar("PartT")


class Label(msgspec.Struct, frozen=True):
    """A file's position in the feed, the run of the server that wrote it, and the programs that can read
    it.
    """

    feed_id: str
    sequence: int
    run: str = ""
    format: int = FORMAT
    program: str = __version__
    python: str = sys.version


class Refused(Exception):
    """A file cannot be used; the message says why. A start without it is only slower."""


class Missing(Refused):
    """There is no such file, as at the first start."""


class Warm(NamedTuple, Generic[PartT]):
    """`parts` raise Refused for a part of another type than the reader's."""

    label: Label
    parts: Iterator[PartT]


def write(folder_fd: int, name: str, label: Label, parts: Iterable[Any]) -> None:
    """Replace the file `name`, durably and atomically. `parts` are values that msgpack can encode.

    Blocks for the disk. Raises OSError; the old file is then unchanged, and a full disk no fuller.
    """
    temporary = f".{name}.part"
    _remove(folder_fd, temporary)
    try:
        _write(folder_fd, temporary, label, parts)
        os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except BaseException:
        with suppress(OSError):
            _remove(folder_fd, temporary)
        raise
    os.fsync(folder_fd)


def _write(folder_fd: int, name: str, label: Label, parts: Iterable[Any]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder_fd), "wb") as file:
        digest = hashlib.sha256()
        file.write(MAGIC + bytes(digest.digest_size))
        for body in _bodies(label, parts):
            frame = _LENGTH.pack(len(body)) + body
            digest.update(frame)
            file.write(frame)
        file.seek(_DIGEST_AT)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())


def read(folder_fd: int, name: str, part: type[PartT]) -> Warm[PartT]:
    """The content of the file `name`, in parts of that type. Raises Refused."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd), "rb") as file:
            octets = os.fstat(file.fileno()).st_size
            content = memoryview(file.read(FILE_OCTETS_MAX) if octets <= FILE_OCTETS_MAX else b"")
    except FileNotFoundError:
        raise Missing("there is none") from None
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror}") from None
    if bytes(content[:_DIGEST_AT]) != MAGIC:
        raise Refused("it is something else")
    if hashlib.sha256(content[_BODY_AT:]).digest() != content[_DIGEST_AT:_BODY_AT]:
        raise Refused("its checksum is wrong")
    bodies = _frames(content)
    try:
        label = msgspec.msgpack.decode(next(bodies), type=Label)
    except (msgspec.DecodeError, StopIteration):
        raise Refused("it has no label") from None
    if label != Label(label.feed_id, label.sequence, label.run):
        raise Refused("another version wrote it")
    return Warm(label, _decoded(bodies, part))


def _bodies(label: Label, parts: Iterable[Any]) -> Iterator[bytes]:
    yield msgspec.msgpack.encode(label)
    for part in parts:
        yield msgspec.msgpack.encode(part)


def _decoded(bodies: Iterable[memoryview], part: type[PartT]) -> Iterator[PartT]:
    decoder = msgspec.msgpack.Decoder(part)
    for body in bodies:
        try:
            yield decoder.decode(body)
        except msgspec.DecodeError as error:
            raise Refused(f"a part is something else: {error}") from None


def _frames(content: memoryview) -> Iterator[memoryview]:
    """The bodies of a file after its checksum was verified."""
    at = _BODY_AT
    while at + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        yield content[at : at + length]
        at += length


def _remove(folder_fd: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder_fd)
    except FileNotFoundError:
        pass
