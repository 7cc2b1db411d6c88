"""Files that a command is given, read as a whole, and those that it writes, which are whole or not there.

Owns  that a file is read up to a limit, and what is said when it is longer or cannot be read; that one takes
      the place of another only when all of it is on the disk.
Not   what stands in it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from edgestead.cli.failure import Failed, next_step

STDOUT = Path("-")
_OF_THE_KERNEL = (
    ("dev",),
    ("proc",),
)  # /dev/stdout may be a plain file by another name, which others write to


def read_path(path: Path, bytes_max: int) -> bytes:
    """Raises Failed."""
    try:
        with path.open("rb") as file:
            return read_opened(file, str(path), bytes_max)
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}.", *next_step()) from None


def read_opened(file: BinaryIO, name: str, bytes_max: int) -> bytes:
    """The rest of a file. Raises Failed, OSError."""
    content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise Failed(f"{name} is larger than {bytes_max} bytes.")
    return content


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end: it is there whole, or is what it was.

    It keeps mode and owner of what it replaces, and links go on to lead there. Pipes, devices and `-`, which
    is stdout, are written to as they are. Raises OSError with the path.
    """
    if path == STDOUT:
        yield sys.stdout.buffer
    elif _is_stream(path):
        with path.open("wb") as file:
            yield file
    else:
        target = path.resolve()
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with aside.open("xb") as file:
                yield file
                file.flush()
                _make_alike(file.fileno(), target)
                os.fsync(file.fileno())
            aside.replace(target)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            aside.unlink(missing_ok=True)


@contextmanager
def made(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file, which is gone again when this ends with an exception. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    return path.absolute().parts[1:2] in _OF_THE_KERNEL or (path.exists() and not path.is_file())


def _make_alike(descriptor: int, other: Path) -> None:
    """A name server may read its zone file as a member of the file's group."""
    try:
        facts = other.stat()
    except FileNotFoundError:
        return
    with suppress(PermissionError):
        os.fchown(descriptor, facts.st_uid, facts.st_gid)
    os.fchmod(descriptor, facts.st_mode & 0o777)
