"""How the last backups of a data folder ended.

Owns  `DIR/backups.json`, written by the command that makes them.
Not   making a backup; how old one may be (`health.checks`).
"""

import logging
from pathlib import Path

import msgspec

from edgestead.server import files

FILE_NAME = "backups.json"
ERROR_CHARACTERS_MAX = 300  # of why a backup failed: one line of a page

_log = logging.getLogger("edgestead.server")


class BackupNote(msgspec.Struct, frozen=True, kw_only=True):
    """`error` is of the last try, empty when it succeeded; `made_us` of the last that succeeded, or 0."""

    tried_us: int = 0
    error: str = ""
    made_us: int = 0
    path: str = ""


def read(folder: Path) -> BackupNote:
    """What is noted; nothing where there is no note that can be read."""
    try:
        content = files.read_private(folder / FILE_NAME)
        return msgspec.json.decode(content, type=BackupNote) if content else BackupNote()
    except (OSError, ValueError):
        return BackupNote()


def note(folder: Path, path: Path, now_us: int, error: str = "") -> None:
    """Note how a backup to `path` ended. A note that cannot be written is a warning: the backup counts."""
    before = read(folder)
    made = BackupNote(
        tried_us=now_us,
        error=" ".join(error.split())[:ERROR_CHARACTERS_MAX],
        made_us=before.made_us if error else now_us,
        path=before.path if error else str(path.absolute()),
    )
    try:
        files.replace_private(folder / FILE_NAME, msgspec.json.encode(made))
    except OSError as failure:
        _log.warning("how the backup ended could not be noted: %s", failure)
