"""The keys that clearances are signed with.

Owns  `DIR/challenge-keys.json`: making it, the change of keys.
Asks  `server.files`; randomness comes from the system.
Tells `server.challenge_key_memory`, from which edge processes have them; nobody else.
Not   signing (`proxy.clearance`).

A new key is made when the newest is a month old, at a start or while the server runs. Old keys stay for as
long as a clearance of theirs may last, a year: nobody has to answer again because of it. To make all
clearances void, remove the file and start the server again.
"""

import secrets
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgestead.proxy.clearance import KEY_OCTETS, Key
from edgestead.server import files
from edgestead.server.errors import StartError

FILE_NAME = "challenge-keys.json"
KEY_SECONDS = 30 * 86_400  # that a key signs
KEPT_SECONDS = KEY_SECONDS + 31_536_000  # and verifies: the longest challenge_ttl

_ID_OCTETS = 4


class StoredKey(msgspec.Struct, frozen=True):
    """`made_s` is Unix time; `secret` hexadecimal."""

    id: str
    secret: str
    made_s: int

    def __repr__(self) -> str:
        return f"StoredKey(id={self.id!r}, ...)"  # never the secret, not even in a traceback


class Kept(NamedTuple):
    """`keys`, the newest first; at `due_s` (Unix time) there has to be a new one."""

    keys: tuple[Key, ...]
    due_s: int


_decode = msgspec.json.Decoder(list[StoredKey]).decode


def load_or_make(data_dir: Path, now_s: int) -> Kept:
    """The folder's keys; makes what is missing or due.

    Raises StartError: the file cannot be read or written, or is none of ours.
    """
    path = data_dir / FILE_NAME
    kept = [key for key in _read(path) if now_s - key.made_s < KEPT_SECONDS]
    if not kept or now_s - kept[0].made_s >= KEY_SECONDS:
        made = StoredKey(secrets.token_hex(_ID_OCTETS), secrets.token_hex(KEY_OCTETS), now_s)
        kept.insert(0, made)
        _write(path, kept)
    keys = tuple(Key(key.id, bytes.fromhex(key.secret)) for key in kept)
    return Kept(keys, kept[0].made_s + KEY_SECONDS)


def _read(path: Path) -> list[StoredKey]:
    try:
        content = files.read_private(path)
        keys = _decode(content) if content is not None else []
        if any(len(bytes.fromhex(key.secret)) != KEY_OCTETS for key in keys):
            raise ValueError
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        # The decoder's words may quote the content: they stay here.
        raise StartError(f"{path} holds no keys; restore it, or move it away for new ones") from None
    return sorted(keys, key=lambda key: -key.made_s)


def _write(path: Path, keys: list[StoredKey]) -> None:
    try:
        files.replace_private(path, msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
