"""Identities of objects.

Owns  how an id is made from a name or at random, how one is checked, which process owns it.
Not   storage.

An id is 32 bytes as 64 lower-case hexadecimal digits: 24 from the name or at random, 8 that bind them to
the class. So an id of another class is refused instead of meaning another object.
"""

from collections.abc import Callable, Collection
from hashlib import blake2b

from edgestead.objects.errors import LimitError
from edgestead.store.objectlog import ObjectRef

NAME_BYTES_MAX = 1_024  # of an object, in UTF-8: it stands in paths of requests
_OWN_BYTES, _CLASS_BYTES = 24, 8
_OWNER_DIGITS = 8  # of an id, which is random or a hash


def _sealed(class_name: str, own: bytes) -> str:
    seal = blake2b(own, digest_size=_CLASS_BYTES, key=class_name.encode()[:64], person=b"edge class").digest()
    return (own + seal).hex()


def from_name(class_name: str, name: str) -> ObjectRef:
    """The one object of that name. Raises TypeError, LimitError."""
    if not isinstance(name, str):
        raise TypeError(f"an object's name must be str, not {type(name).__name__}")
    data = name.encode("utf-8", "surrogatepass")
    if len(data) > NAME_BYTES_MAX:
        raise LimitError(f"an object's name must be at most {NAME_BYTES_MAX} bytes long, not {len(data)}")
    own = blake2b(data, digest_size=_OWN_BYTES, person=b"edge name").digest()
    return ObjectRef(class_name, _sealed(class_name, own), name)


def unique(class_name: str, random: Callable[[int], bytes]) -> ObjectRef:
    """A new object without a name."""
    return ObjectRef(class_name, _sealed(class_name, random(_OWN_BYTES)))


def from_text(class_name: str, text: str) -> ObjectRef:
    """The object of an id. Raises TypeError for text that is no id of this class."""
    try:
        data = bytes.fromhex(text)
    except (ValueError, TypeError):
        data = b""
    if len(data) != _OWN_BYTES + _CLASS_BYTES or data.hex() != text:
        raise TypeError("an object id is 64 lower-case hexadecimal digits")
    if _sealed(class_name, data[:_OWN_BYTES]) != text:
        raise TypeError(f"that id is not of class {class_name}")
    return ObjectRef(class_name, text)


def owner_of(ref: ObjectRef, processes: int, apart: Collection[str] = ()) -> int:
    """Which of so many processes an object lives in. Classes that are kept apart have the last one."""
    if ref.class_name in apart:
        return processes - 1
    return int(ref.id[:_OWNER_DIGITS], 16) % (processes - bool(apart))
