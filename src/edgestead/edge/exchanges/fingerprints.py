"""What a TLS client's first message tells of the program that wrote it.

Owns  reading a ClientHello's lists, the fingerprints that are made of them.
Not   the name that is asked for (`edge.http.hello`); what a fingerprint means. Any program can wear
      another's.

Source: RFC 8446 §4.1.2 and §4.2; RFC 8701 for values that are noise; the public descriptions of JA3, and
of JA4 for TLS over TCP. SHA-1 and MD5 name things here, they protect nothing.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache

HELLOS_KEPT_MAX = 256  # what was read of them, for rules that ask for more than one field
_HEAD_OCTETS, _RANDOM_OCTETS = 4, 32
_SERVER_NAME, _GROUPS, _POINTS, _SIGNATURES, _PROTOCOLS, _VERSIONS = 0, 10, 11, 13, 16, 43
_VERSION_NAMES = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10"}
_HASH_DIGITS, _COUNT_MAX = 12, 99
_NO_HASH = "0" * _HASH_DIGITS


class ClientHello:
    """Read from the message without record heads. Raises ValueError for what is none."""

    def __init__(self, message: bytes) -> None:
        at = _HEAD_OCTETS
        self.length = len(message)
        self.version = int.from_bytes(message[at : at + 2])
        self.random = message[at + 2 : at + 2 + _RANDOM_OCTETS]
        at += 2 + _RANDOM_OCTETS
        _, at = _counted(message, at, 1)  # session id
        self.ciphers, at = _counted(message, at, 2)
        _, at = _counted(message, at, 1)  # compression methods
        self.extensions: dict[int, bytes] = {}
        rest, _ = _counted(message, at, 2) if at < len(message) else (b"", at)
        at = 0
        while at < len(rest):
            kind = int.from_bytes(rest[at : at + 2])
            self.extensions[kind], at = _counted(rest, at + 2, 2)

    @property
    def newest_version(self) -> int:
        """The newest that the client offers, 0x0303 for TLS 1.2 (RFC 8446 §4.2.1)."""
        return max(self._list(_VERSIONS, 1), default=self.version)

    @property
    def ciphers_sha1(self) -> bytes:
        """In received order, most significant octet first; Base64."""
        return _sha1(self.ciphers)

    @property
    def extensions_sha1(self) -> bytes:
        """Of the extensions' numbers in received order, most significant octet first; Base64."""
        return _sha1(b"".join(kind.to_bytes(2) for kind in self.extensions))

    @property
    def extensions_sha1_le(self) -> bytes:
        """The same, least significant octet first."""
        return _sha1(b"".join(kind.to_bytes(2, "little") for kind in self.extensions))

    @property
    def ja3(self) -> bytes:
        lists = (
            _pairs(self.ciphers),
            self._kinds,
            self._list(_GROUPS, 2),
            list(self._list_octets(_POINTS, 1)),
        )
        text = ",".join((str(self.version), *("-".join(map(str, numbers)) for numbers in lists)))
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().encode()

    @property
    def ja4(self) -> bytes:
        ciphers, kinds = _pairs(self.ciphers), self._kinds
        head = (
            f"t{_VERSION_NAMES.get(self.newest_version, '00')}{'d' if _SERVER_NAME in kinds else 'i'}"
            f"{min(len(ciphers), _COUNT_MAX):02}{min(len(kinds), _COUNT_MAX):02}{self._protocol}"
        )
        hashed = _hexes(sorted(kind for kind in kinds if kind not in (_SERVER_NAME, _PROTOCOLS)))
        if hashed and (signatures := self._list(_SIGNATURES, 2)):
            hashed = f"{hashed}_{_hexes(signatures)}"
        return f"{head}_{_short(_hexes(sorted(ciphers)))}_{_short(hashed)}".encode()

    @property
    def _kinds(self) -> list[int]:
        return [kind for kind in self.extensions if not _is_noise(kind)]

    @property
    def _protocol(self) -> str:
        """The first and the last character of the first protocol that the client offers."""
        name = self._list_octets(_PROTOCOLS, 2)
        first = name[1 : 1 + name[0]] if name else b""
        if not first:
            return "00"
        ends = bytes((first[0], first[-1]))
        return ends.decode() if ends.isalnum() else ends.hex()[0] + ends.hex()[-1]

    def _list(self, kind: int, size: int) -> list[int]:
        return _pairs(self._list_octets(kind, size))

    def _list_octets(self, kind: int, size: int) -> bytes:
        """The list in an extension, whose length is said in `size` octets."""
        content = self.extensions.get(kind, b"")
        return content[size : size + int.from_bytes(content[:size])]


def _counted(octets: bytes, at: int, size: int) -> tuple[bytes, int]:
    """What follows a length of `size` octets, and where that ends. Raises ValueError."""
    start = at + size
    end = start + int.from_bytes(octets[at:start])
    if start > len(octets) or end > len(octets):
        raise ValueError("the message ends too early")
    return octets[start:end], end


def _pairs(octets: bytes) -> list[int]:
    numbers = (int.from_bytes(octets[at : at + 2]) for at in range(0, len(octets) - 1, 2))
    return [number for number in numbers if not _is_noise(number)]


def _is_noise(number: int) -> bool:
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


def _hexes(numbers: Iterable[int]) -> str:
    return ",".join(f"{number:04x}" for number in numbers)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS] if text else _NO_HASH


def _sha1(octets: bytes) -> bytes:
    return b64encode(hashlib.sha1(octets, usedforsecurity=False).digest())


@lru_cache(HELLOS_KEPT_MAX)
def hello_of(message: bytes) -> ClientHello | None:
    """None where there is no such message."""
    try:
        return ClientHello(message)
    except ValueError:
        return None
