"""Bookmarks: how a moment of an object is written down.

Owns  their text: made, read and checked.
Not   which moments are kept (the object log).

    00000002-00000001-00000000000000a7-5c1f09e3
    generation of the folder · session of the object · position · checksum over these and the object's id

All parts are hexadecimal digits of fixed length, so the order of the text is the order of time. The position
7fff… is the end of its session: the moment just before a restore has a name before it comes.

Source: spec "Stateful object storage": "segments separated by hyphens; lexically comparable".
"""

from hashlib import blake2b
from typing import NamedTuple

from edgestead.objects.errors import BookmarkError
from edgestead.store.objectlog import Target
from edgestead.store.past import END_OF_SESSION

_LENGTHS = (8, 8, 16, 8)
_DIGITS = frozenset("0123456789abcdef")


class Bookmark(NamedTuple):
    """What a bookmark says."""

    generation: int
    session: int
    position: int

    @property
    def target(self) -> Target:
        return Target(self.session, self.position)


def pack(object_id: str, bookmark: Bookmark) -> str:
    """The text of a bookmark of an object."""
    said = f"{bookmark.generation:08x}-{bookmark.session:08x}-{bookmark.position:016x}"
    return f"{said}-{_checksum(object_id, said)}"


def parse(object_id: str, text: str) -> Bookmark:
    """Raises TypeError, BookmarkError: it is no bookmark, or one of another object."""
    if not isinstance(text, str):
        raise TypeError(f"a bookmark is str, not {type(text).__name__}")
    parts = text.split("-", len(_LENGTHS))
    if tuple(map(len, parts)) != _LENGTHS or not _DIGITS.issuperset("".join(parts)):
        raise BookmarkError("that is no bookmark: one is 8-8-16-8 hexadecimal digits in small letters")
    if parts[3] != _checksum(object_id, text[: -1 - _LENGTHS[3]]):
        raise BookmarkError("that is no bookmark of this object")
    found = Bookmark(*(int(part, 16) for part in parts[:3]))
    if found.position > END_OF_SESSION:
        raise BookmarkError("that is no bookmark")
    return found


def _checksum(object_id: str, said: str) -> str:
    return blake2b(
        said.encode(), digest_size=4, key=object_id.encode()[:64], person=b"edge bookmark"
    ).hexdigest()
