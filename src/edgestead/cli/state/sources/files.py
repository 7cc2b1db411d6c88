"""Files of other programs' configurations.

Owns  reading them within limits.
Not   what stands in them.
"""

import glob
from pathlib import Path

from edgestead.cli.files import read_path

FILE_BYTES_MAX = 256 << 20
INCLUDES_MAX = 10_000  # files of one configuration
INCLUDE_DEPTH_MAX = 16


def text(path: Path) -> str:
    """Raises Failed."""
    return read_path(path, FILE_BYTES_MAX).decode(errors="replace")


def included(pattern: str, folder: Path) -> list[Path]:
    """The files that an `include` names, in order."""
    return [Path(name) for name in sorted(glob.glob(str(folder / pattern)))[:INCLUDES_MAX]]
