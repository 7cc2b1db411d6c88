"""The secret under which the keys of signed zones, of TSIG and of certificates are stored in the database.

Owns  `DIR/seal.key`: making it at the first start, reading it.
Not   sealing (`usecases.serving.keys`, `model.sealing`).

It is not part of backups: a copy of the database, wherever it ends up, must not hold keys that sign. Whoever
brings a backup back into another folder needs this file too, or the zones in it cannot be changed.
"""

import secrets
import threading
from pathlib import Path

from edgestead.model.refusals.setting import KeysSealed
from edgestead.model.sealing import derived
from edgestead.server import files
from edgestead.usecases.serving.keys import SECRET_OCTETS

FILE_NAME = "seal.key"
_door = threading.Lock()  # two that make it at once would seal with a secret that the file does not have


def load_or_make(data_dir: Path) -> bytes:
    """The folder's secret. Raises KeysSealed: the file cannot be read or written, or holds something else."""
    path = data_dir / FILE_NAME
    try:
        with _door:
            content = files.read_private(path)
            if content is None:
                content = secrets.token_hex(SECRET_OCTETS).encode() + b"\n"
                files.replace_private(path, content)
        secret = bytes.fromhex(content.decode("ascii"))
    except (OSError, ValueError):
        raise KeysSealed from None
    if len(secret) != SECRET_OCTETS:
        raise KeysSealed
    return secret


def derived_or_none(data_dir: Path, purpose: bytes) -> bytes:
    """What processes get that need one kind of key; b"" when the folder's secret cannot be read."""
    try:
        return derived(load_or_make(data_dir), purpose)
    except KeysSealed:
        return b""
