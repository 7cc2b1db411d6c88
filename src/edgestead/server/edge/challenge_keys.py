"""The keys that clearances are signed with.

Owns  `DIR/challenge-keys.json`: making it, the change of keys.
Not   signing (`edge.tools.clearance`).

A new key is made when the newest is a month old, at a start or while the server runs: the one before it is
retired then. It stays for as long as a clearance of its may last, a year where a zone says so, and nobody has
to answer again; what the edge takes of it ends sooner (`edge.tools.clearance`).

Keys belong to the credentials that they were made under. Renewed credentials make all of them void, because
whoever renews may have lost both: the one write of `credentials.json` decides it, and whoever loads the keys
next, now or at a start, makes a new one and drops the others.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgestead.edge.tools.clearance import KEY_OCTETS, Key
from edgestead.model.settings import CHALLENGE_SECONDS_MAX
from edgestead.server import credentials, files
from edgestead.server.errors import StartError

FILE_NAME = "challenge-keys.json"
KEY_SECONDS = 30 * 86_400  # that a key signs
SIGNS_ON_SECONDS = 10  # after its successor was made: until every worker has heard of that
KEPT_SECONDS = SIGNS_ON_SECONDS + CHALLENGE_SECONDS_MAX  # that a retired key verifies

ID_OCTETS = 4


class StoredKey(msgspec.Struct, frozen=True):
    """`made_s` is Unix time; `secret` hexadecimal; `generation` that of the credentials it was made under."""

    id: str
    secret: str
    made_s: int
    generation: str = ""

    def __repr__(self) -> str:
        return f"StoredKey(id={self.id!r}, ...)"  # never the secret, not even in a traceback


class Kept(NamedTuple):
    """`keys`, the newest first; at `due_s` (Unix time) there has to be a new one."""

    keys: tuple[Key, ...]
    due_s: int


_decode = msgspec.json.Decoder(list[StoredKey]).decode


def load_or_make(data_dir: Path, now_s: int, *, makes_due: bool = True) -> Kept:
    """The folder's keys; makes what is missing or due, forgets what is over or void.

    Without `makes_due` somebody else makes the next one, and puts it into the file (`take`).
    Raises StartError: one of the two files cannot be read or written, or is none of ours.
    """
    path = data_dir / FILE_NAME
    generation = credentials.generation(data_dir)
    stored = _read(path)
    kept = [key for key in stored if key.generation == generation]
    if not kept or (makes_due and now_s - kept[0].made_s >= KEY_SECONDS):
        secret = secrets.token_hex(KEY_OCTETS)
        kept.insert(0, StoredKey(secrets.token_hex(ID_OCTETS), secret, now_s, generation))
    kept = [key for key, retired_s in _lives(kept) if retired_s is None or now_s - retired_s < KEPT_SECONDS]
    if kept != stored:
        _write(path, kept)
    keys = tuple(
        Key(key.id, bytes.fromhex(key.secret), None if retired_s is None else retired_s + SIGNS_ON_SECONDS)
        for key, retired_s in _lives(kept)
    )
    return Kept(keys, (kept[0].made_s if makes_due else now_s) + KEY_SECONDS)


def stored(data_dir: Path) -> list[StoredKey]:
    """The folder's keys that are not void, the newest first. Raises StartError, as `load_or_make`."""
    generation = credentials.generation(data_dir)
    return [key for key in _read(data_dir / FILE_NAME) if key.generation == generation]


def take(data_dir: Path, keys: list[StoredKey]) -> None:
    """Keys of another machine's folder, as if they were made here. Raises StartError."""
    generation = credentials.generation(data_dir)
    _write(data_dir / FILE_NAME, [msgspec.structs.replace(key, generation=generation) for key in keys])


def encode(keys: list[StoredKey]) -> bytes:
    """For a sealed place."""
    return msgspec.json.encode(keys)


def decode(content: bytes) -> list[StoredKey]:
    """What `encode` made, the newest first. Raises ValueError."""
    try:
        return _newest_first(_decode(content))
    except ValueError:
        raise ValueError("these are no keys") from None  # the decoder's words may quote the content


def _lives(keys: list[StoredKey]) -> Iterator[tuple[StoredKey, int | None]]:
    """Each key, and when the next newer one was made."""
    return zip(keys, (None, *(key.made_s for key in keys)), strict=False)


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
    return _newest_first(keys)


def _newest_first(keys: list[StoredKey]) -> list[StoredKey]:
    return sorted(keys, key=lambda key: -key.made_s)


def _write(path: Path, keys: list[StoredKey]) -> None:
    try:
        files.replace_private(path, msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
