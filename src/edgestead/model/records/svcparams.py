r"""Service parameters of SVCB and HTTPS, between text and octets (RFC 9460 §2.1, §2.2, §7, appendix A).

Owns  the keys that have names, and the two spellings of each value.
Not   what a client does with a parameter.

Text escapes twice where a value is a list: `alpn="f\\,oo,h2"` holds the two protocols `f,oo` and `h2`.
"""

import binascii
import socket
from collections.abc import Callable, Iterable
from typing import NamedTuple

from edgestead.model.names import InvalidValue, shown
from edgestead.model.records.kinds import STRING_OCTETS_MAX, Base64
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import quoted_ascii, string_octets, words

KEY_MAX = 65_534  # 65535 is the invalid key, RFC 9460 §14.3.2
VALUE_OCTETS_MAX = 65_535  # its length has 16 bits, RFC 9460 §2.2

Params = dict[int, bytes]  # key number → value octets, in ascending order of keys


class Param(NamedTuple):
    """A key with a name. `pack` reads decoded text; `unpack` writes it back and refuses malformed octets."""

    number: int
    name: str
    source: str
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def read_params(text: str) -> Params:
    """Read `key=value` words.

    Raises: InvalidValue: an unknown or repeated key, a value that its key cannot have, `mandatory` keys that
            are absent, `no-default-alpn` without `alpn`.
    """
    params: Params = {}
    for word in words(text):
        key, separator, value = word.partition("=")
        number = _key_number(key)
        if number in params:
            raise InvalidValue(f"the parameter {shown(key)} is repeated")
        octets = string_octets(value)
        if separator and not value:
            raise InvalidValue(f"the parameter {shown(key)} has an empty value")
        params[number] = _BY_NUMBER[number].pack(octets) if number in _BY_NUMBER else octets
        if len(params[number]) > VALUE_OCTETS_MAX:
            raise InvalidValue(f"the parameter {shown(key)} has more than {VALUE_OCTETS_MAX} octets")
    return _checked(dict(sorted(params.items())))


def pack_params(params: Params) -> bytes:
    """Write the octets, keys ascending (RFC 9460 §2.2)."""
    pieces = []
    for number, value in params.items():
        pieces += [number.to_bytes(2, "big"), len(value).to_bytes(2, "big"), value]
    return b"".join(pieces)


def unpack_params(reader: WireReader) -> Params:
    """Read all remaining octets.

    Raises: InvalidValue: keys not ascending, and what `read_params` refuses.
    """
    params: Params = {}
    last = -1
    while not reader.is_done:
        number = reader.number(2)
        if not last < number <= KEY_MAX:
            raise InvalidValue("the keys of the parameters do not ascend")
        params[number] = reader.counted(2)
        if number in _BY_NUMBER:
            _BY_NUMBER[number].unpack(params[number])
        last = number
    return _checked(params)


def params_text(params: Params) -> str:
    """Write parameters in their usual form: keys ascending, every value in double quotes, ASCII only."""
    found = []
    for number, value in params.items():
        param = _BY_NUMBER.get(number)
        text = param.unpack(value) if param else value
        found.append(_key_name(number) + (f"={quoted_ascii(text)}" if text else ""))
    return " ".join(found)


def _checked(params: Params) -> Params:
    mandatory = _key_numbers(params.get(_MANDATORY, b""))
    missing = [_key_name(number) for number in mandatory if number not in params]
    if missing:
        raise InvalidValue(f"mandatory names {missing[0]}, which is absent")
    if _NO_DEFAULT_ALPN in params and _ALPN not in params:
        raise InvalidValue("no-default-alpn needs alpn")
    return params


def _key_number(key: str) -> int:
    if key in _BY_NAME:
        return _BY_NAME[key].number
    digits = key.removeprefix("key")
    is_number = digits != key and digits.isascii() and digits.isdigit() and len(digits) <= 5
    if not is_number or int(digits) > KEY_MAX or digits != str(int(digits)):
        raise InvalidValue(f"the parameter {shown(key)} is unknown; others are written key0 to key{KEY_MAX}")
    return int(digits)


def _key_name(number: int) -> str:
    return _BY_NUMBER[number].name if number in _BY_NUMBER else f"key{number}"


# The values. Each pair is inverse to itself: unpack(pack(text)) is the text in its usual form.


def _items(value: bytes) -> list[bytes]:
    """Split a decoded list at its commas (RFC 9460 appendix A.1)."""
    items: list[bytearray] = [bytearray()]
    octets = iter(value)
    for octet in octets:
        if octet == 0x5C:
            following = next(octets, None)
            if following not in (0x2C, 0x5C):
                raise InvalidValue("a backslash in a list may only precede a comma or a backslash")
            items[-1].append(following)
        elif octet == 0x2C:
            items.append(bytearray())
        else:
            items[-1].append(octet)
    if not all(items):
        raise InvalidValue("a list has an empty item")
    return [bytes(item) for item in items]


def _list(items: Iterable[bytes]) -> bytes:
    return b",".join([item.replace(b"\\", b"\\\\").replace(b",", b"\\,") for item in items])


def _pack_alpn(value: bytes) -> bytes:
    items = _items(value)
    if max(map(len, items)) > STRING_OCTETS_MAX:
        raise InvalidValue(f"a protocol of alpn has more than {STRING_OCTETS_MAX} octets")
    return b"".join([bytes((len(item),)) + item for item in items])


def _unpack_alpn(octets: bytes) -> bytes:
    reader = WireReader(octets)
    items: list[bytes] = []
    while not (items and reader.is_done):
        items.append(reader.counted())
    if not all(items):
        raise InvalidValue("a protocol of alpn is empty")
    return _list(items)


def _pack_mandatory(value: bytes) -> bytes:
    numbers = sorted(_key_number(item.decode("latin-1")) for item in _items(value))
    octets = b"".join([number.to_bytes(2, "big") for number in numbers])
    _unpack_mandatory(octets)
    return octets


def _unpack_mandatory(octets: bytes) -> bytes:
    numbers = _key_numbers(octets)
    if len(octets) % 2 or not numbers or numbers != sorted(set(numbers)) or _MANDATORY in numbers:
        raise InvalidValue("mandatory must name other keys, each once")
    return ",".join([_key_name(number) for number in numbers]).encode("ascii")


def _key_numbers(octets: bytes) -> list[int]:
    return [int.from_bytes(octets[start : start + 2], "big") for start in range(0, len(octets), 2)]


def _nothing(octets: bytes) -> bytes:
    if octets:
        raise InvalidValue("this parameter has no value")
    return octets


def _pack_port(value: bytes) -> bytes:
    if not value.isdigit() or len(value) > 5 or int(value) > 65_535:
        raise InvalidValue("port must be 0 to 65535")
    return int(value).to_bytes(2, "big")


def _unpack_port(octets: bytes) -> bytes:
    if len(octets) != 2:
        raise InvalidValue("port must have two octets")
    return str(int.from_bytes(octets, "big")).encode("ascii")


def _packer(family: socket.AddressFamily) -> Callable[[bytes], bytes]:
    def pack(value: bytes) -> bytes:
        items = _items(value)
        try:
            return b"".join([socket.inet_pton(family, item.decode("ascii")) for item in items])
        except (OSError, ValueError):  # ValueError: a NUL, or not ASCII
            raise InvalidValue(f"{shown(value.decode('latin-1'))} is not a list of addresses") from None

    return pack


def _unpacker(family: socket.AddressFamily, size: int) -> Callable[[bytes], bytes]:
    def unpack(octets: bytes) -> bytes:
        if not octets or len(octets) % size:
            raise InvalidValue("a list of addresses is cut short")
        addresses = [octets[start : start + size] for start in range(0, len(octets), size)]
        return ",".join([socket.inet_ntop(family, address) for address in addresses]).encode("ascii")

    return unpack


def _pack_base64(value: bytes) -> bytes:
    return _BASE64.from_word(value.decode("latin-1"))


def _unpack_base64(octets: bytes) -> bytes:
    if not octets:
        raise InvalidValue("ech must not be empty")
    return binascii.b2a_base64(octets, newline=False)


def _text(octets: bytes) -> bytes:
    try:
        octets.decode()
    except UnicodeDecodeError:
        raise InvalidValue("dohpath must be UTF-8") from None
    if not octets:
        raise InvalidValue("dohpath must not be empty")
    return octets


_BASE64 = Base64()
_MANDATORY, _ALPN, _NO_DEFAULT_ALPN = 0, 1, 2

PARAMS = (
    Param(_MANDATORY, "mandatory", "RFC 9460 §8", _pack_mandatory, _unpack_mandatory),
    Param(_ALPN, "alpn", "RFC 9460 §7.1", _pack_alpn, _unpack_alpn),
    Param(_NO_DEFAULT_ALPN, "no-default-alpn", "RFC 9460 §7.1", _nothing, _nothing),
    Param(3, "port", "RFC 9460 §7.2", _pack_port, _unpack_port),
    Param(4, "ipv4hint", "RFC 9460 §7.3", _packer(socket.AF_INET), _unpacker(socket.AF_INET, 4)),
    Param(5, "ech", "RFC 9848", _pack_base64, _unpack_base64),
    Param(6, "ipv6hint", "RFC 9460 §7.3", _packer(socket.AF_INET6), _unpacker(socket.AF_INET6, 16)),
    Param(7, "dohpath", "RFC 9461 §5", _text, _text),
    Param(8, "ohttp", "RFC 9540 §4", _nothing, _nothing),
)
_BY_NAME = {param.name: param for param in PARAMS}
_BY_NUMBER = {param.number: param for param in PARAMS}
