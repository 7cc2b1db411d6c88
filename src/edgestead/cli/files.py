"""Files that a command is given, read as a whole.

Owns  that a file is read up to a limit, and what is said when it is longer or cannot be read.
Not   what stands in it.
"""

from pathlib import Path
from typing import BinaryIO

from edgestead.cli.failure import Failed, next_step


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
