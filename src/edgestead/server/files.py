"""Writing small files that are either the old or the new one, never half of it.

Owns  temporary file, sync, rename.
Asks  nobody.
Tells `server.folder`, `server.credentials` and the ready file.
Not   what is written.
"""

import os
from pathlib import Path

PRIVATE_FILE_BYTES_MAX = 1 << 16


def replace_private(path: Path, content: bytes) -> None:
    """Put a file (0600) in place of `path`, durably: a crash leaves the old content or the new one.

    Raises OSError, and leaves `path` as it was.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_private(path: Path) -> bytes | None:
    """The whole of a small file, None when there is none. Raises OSError; ValueError when it is too large."""
    try:
        with path.open("rb") as stream:
            content = stream.read(PRIVATE_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(content) > PRIVATE_FILE_BYTES_MAX:
        raise ValueError(f"{path} is larger than {PRIVATE_FILE_BYTES_MAX} bytes")
    return content


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
