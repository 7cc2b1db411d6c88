"""Writing small files that are either the old or the new one, never half of it; whose they are.

Owns  temporary file, sync, rename, and that what root makes in another user's folder becomes that user's.
Not   what is written.

An operator runs commands as root on the folder of a server that is not root. If what they leave there stayed
root's, the server could not open it.
"""

import os
from contextlib import suppress
from pathlib import Path

PRIVATE_FILE_BYTES_MAX = 1 << 16  # such files hold credentials, keys, addresses


def make_folder(path: Path) -> None:
    """Make a folder (0700) where there is none, with those above it, each name durably. Raises OSError."""
    if not path.is_dir():
        _make_folder(path, 0o700)


def _make_folder(path: Path, mode: int) -> None:
    if not path.parent.is_dir():
        _make_folder(path.parent, 0o777)  # less the umask
    path.mkdir(mode, exist_ok=True)
    with suppress(PermissionError):  # of a folder in which we may make names, and not read them
        _sync_folder(path.parent)


def replace_private(path: Path, content: bytes) -> None:
    """Put a file (0600) in place of `path`, durably: a crash leaves the old content or the new one.

    Raises OSError, and leaves `path` as it was.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            give_to_owner(file, path.parent)
            _write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def open_private(path: Path) -> int:
    """Open a file for reading and writing; it is made (0600) where there is none. Raises OSError."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    give_to_owner(made, path.parent)
    return made


def give_to_owner(descriptor: int, folder: Path) -> None:
    """Make a file that this process has just made the folder's owner's, when root runs this.

    Only what was made here: whoever owns the folder may have put a link to a file of others in its place.
    """
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def give_all_to_owner(folder: Path) -> None:
    """The same for everything in a folder that nobody else uses meanwhile."""
    if os.geteuid() == 0:
        owner = folder.stat()
        for path in folder.rglob("*"):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def read_private(path: Path, bytes_max: int = PRIVATE_FILE_BYTES_MAX) -> bytes | None:
    """The whole of a small file, None when there is none. Raises OSError; ValueError when it is too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(bytes_max + 1)
    except FileNotFoundError:
        return None
    if len(content) > bytes_max:
        raise ValueError(f"{path} is larger than {bytes_max} bytes")
    return content


def _write_all(descriptor: int, content: bytes) -> None:
    """A disk that fills up, or a signal, may let the kernel take less than it was given."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
