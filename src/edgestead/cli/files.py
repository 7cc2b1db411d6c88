"""Files that a command is given, read as a whole, and those that it writes, which are whole or not there.

Owns  that a file is read up to a limit, and what is said when it is longer or cannot be read; that one takes
      the place of another only when all of it is on the disk.
Not   what stands in it.
"""

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from edgestead.cli.failure import Failed, next_step

STDOUT = Path("-")
# There /dev/stdout may be a plain file by another name, which others write to.
_OF_THE_KERNEL = frozenset({"dev", "proc"})
# A folder that may not be written, is mounted so, or is sticky; a file that is mounted by itself.
_ONLY_IN_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})


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

    It keeps mode and owner of what it replaces, as far as the caller may give them, and links go on to lead
    there. Pipes, devices and `-`, which is stdout, are written to as they are, and so is a file whose folder
    takes no other one. Raises OSError with the path.
    """
    if path == STDOUT:
        yield sys.stdout.buffer
    elif _is_stream(path):
        with path.open("wb") as file:
            yield file
    else:
        target = path.resolve()
        try:
            with _beside(target) or target.open("wb") as file:
                yield file
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None


def _beside(target: Path) -> AbstractContextManager[BinaryIO] | None:
    """A file that nobody else sees until it takes the place of `target`; None where there can be none."""
    import tempfile

    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        if error.errno not in _ONLY_IN_PLACE:
            raise
        return None
    return _replacing(target, descriptor, Path(name))


@contextmanager
def _replacing(target: Path, descriptor: int, aside: Path) -> Iterator[BinaryIO]:
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            _make_alike(descriptor, target)
            os.fsync(descriptor)
        try:
            aside.replace(target)
        except OSError as error:
            if error.errno not in _ONLY_IN_PLACE:
                raise
            with aside.open("rb") as whole, target.open("wb") as file:
                shutil.copyfileobj(whole, file)
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
    is_of_the_kernel = not _OF_THE_KERNEL.isdisjoint(path.absolute().parts[1:2])
    return is_of_the_kernel or (path.exists() and not path.is_file())


def _make_alike(descriptor: int, other: Path) -> None:
    """A name server may read its zone file as a member of the file's group, and nobody else then."""
    try:
        facts = other.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, 0o666 & ~_umask())
        return
    # Who may not give it away may still have it in that group.
    is_of_group = _gave(descriptor, facts.st_uid, facts.st_gid) or _gave(descriptor, -1, facts.st_gid)
    os.fchmod(descriptor, facts.st_mode & (0o777 if is_of_group else 0o707))


def _gave(descriptor: int, uid: int, gid: int) -> bool:
    try:
        os.fchown(descriptor, uid, gid)
    except PermissionError:
        return False
    return True


def _umask() -> int:
    """It cannot be read but by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
