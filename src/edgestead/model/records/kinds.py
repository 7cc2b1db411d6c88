"""The kinds of field that rdata is made of: each knows its JSON, its text and its octets.

Owns  the check and the four spellings of one field: member of `data`, word of `content`, word of a zone
      file, octets.
Not   which fields a type has; refusals with codes (`table` adds type and field to the reason given here).

A field keeps the caller's spelling where DNS has several for the same octets (capitals of hex, the last dot
of a target), because clients compare what they sent with what they are answered. Wire form is the identity.
"""

import binascii
import socket
from abc import ABC, abstractmethod
from decimal import Decimal, InvalidOperation
from typing import Annotated, Generic, TypeVar

from edgestead.model.names import (
    InvalidName,
    InvalidValue,
    absolute_text,
    labels,
    shown,
    text_from_wire,
    wire_from_text,
)
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import quoted, quoted_ascii, string_octets, utf8

STRING_OCTETS_MAX = 255  # RFC 1035 §3.3, <character-string>
NUMBER_CHARACTERS_MAX = 32  # a number sent as text

T = TypeVar("T")


class TextKind(ABC, Generic[T]):
    """One kind of field. Every reading method raises InvalidValue with a reason.

    `label` names it in the reference; `takes_rest` fields swallow all remaining words of the content;
    `is_bounded` fields cannot outgrow the limit of a record on their own.
    """

    label: str
    takes_rest = False
    is_bounded = True

    def from_json(self, raw: object) -> T:
        if not isinstance(raw, str):
            raise InvalidValue("must be text")
        return self.from_word(raw.strip())

    @abstractmethod
    def from_word(self, word: str) -> T: ...

    def to_json(self, value: T) -> object:
        return self.to_word(value)

    @abstractmethod
    def to_word(self, value: T) -> str: ...

    def to_zone_word(self, value: T) -> str:
        return self.to_word(value)


class Kind(TextKind[T]):
    """A kind that has octets of its own: all but LOC's numbers, which LOC packs together."""

    @abstractmethod
    def pack(self, value: T) -> bytes: ...

    @abstractmethod
    def unpack(self, reader: WireReader) -> T: ...


class Integer(Kind[int]):
    """A whole number in `octets` octets, high octet first."""

    def __init__(self, octets: int, maximum: int | None = None) -> None:
        self.octets = octets
        self.maximum = 256**octets - 1 if maximum is None else maximum
        self.label = f"integer 0–{self.maximum}"

    def _checked(self, value: int) -> int:
        if not 0 <= value <= self.maximum:
            raise InvalidValue(f"must be 0 to {self.maximum}")
        return value

    def from_json(self, raw: object) -> int:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return self._checked(raw)
        if isinstance(raw, float) and raw.is_integer():
            return self._checked(int(raw))
        if isinstance(raw, str):
            return self.from_word(raw.strip())
        raise InvalidValue("must be a whole number")

    def from_word(self, word: str) -> int:
        if not word.isascii() or not word.isdigit() or len(word) > NUMBER_CHARACTERS_MAX:
            raise InvalidValue(f"must be a whole number, not {shown(word)}")
        return self._checked(int(word))

    def to_json(self, value: int) -> object:
        return value

    def to_word(self, value: int) -> str:
        return str(value)

    def pack(self, value: int) -> bytes:
        return value.to_bytes(self.octets, "big")

    def unpack(self, reader: WireReader) -> int:
        return self._checked(reader.number(self.octets))


class Number(TextKind[Decimal]):
    """A number with `places` decimals. It has no octets of its own."""

    def __init__(self, minimum: str, maximum: str, places: int) -> None:
        self.minimum, self.maximum = Decimal(minimum), Decimal(maximum)
        self.step = Decimal(1).scaleb(-places)
        self.label = f"number {minimum}–{maximum}".replace("-", "−")

    def _out_of_range(self) -> InvalidValue:
        return InvalidValue(f"must be {self.minimum} to {self.maximum}")

    def from_json(self, raw: object) -> Decimal:
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            # The range comes first, as floats: turning a thousand digits into text takes its time.
            if not float(self.minimum) <= raw <= float(self.maximum):
                raise self._out_of_range()
            return self.from_word(str(raw))
        return super().from_json(raw)

    def from_word(self, word: str) -> Decimal:
        try:
            value = Decimal(word) if len(word) <= NUMBER_CHARACTERS_MAX and word.isascii() else Decimal("NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or "_" in word:
            raise InvalidValue(f"must be a number, not {shown(word)}")
        if not self.minimum <= value <= self.maximum:
            raise self._out_of_range()
        return value.quantize(self.step) + 0  # adding 0 turns -0 into 0

    def to_json(self, value: Decimal) -> object:
        return int(value) if value == value.to_integral_value() else float(value)

    def to_word(self, value: Decimal) -> str:
        return f"{value:f}"


class Choice(Kind[str]):
    """One of a few words, capitals ignored; on the wire a string with its length."""

    def __init__(self, *choices: str) -> None:
        self.choices = {choice.casefold(): choice for choice in choices}
        self.label = " · ".join(f"`{choice}`" for choice in choices)

    def from_word(self, word: str) -> str:
        try:
            return self.choices[word.casefold()]
        except KeyError:
            raise InvalidValue(f"must be one of {', '.join(self.choices.values())}") from None

    def to_word(self, value: str) -> str:
        return value

    def pack(self, value: str) -> bytes:
        return bytes((len(value),)) + value.encode("ascii")

    def unpack(self, reader: WireReader) -> str:
        return self.from_word(reader.counted().decode("latin-1"))


class Address(Kind[bytes]):
    """An IP address, kept as its octets: four decimal parts without short forms, or RFC 4291 §2.2."""

    def __init__(self, family: socket.AddressFamily, octets: int, label: str) -> None:
        self._family, self.octets, self.label = family, octets, label

    def from_word(self, word: str) -> bytes:
        try:
            return socket.inet_pton(self._family, word.strip())
        except (OSError, ValueError):  # ValueError: a NUL, or text that is not Unicode
            raise InvalidValue(f"{shown(word)} is not an {self.label}") from None

    def to_word(self, value: bytes) -> str:
        return socket.inet_ntop(self._family, value)

    def pack(self, value: bytes) -> bytes:
        return value

    def unpack(self, reader: WireReader) -> bytes:
        return reader.take(self.octets)


class Host(Kind[bytes]):
    """A name, kept in wire form and answered without its last dot; the root is `.`."""

    label = "host name"

    def from_word(self, word: str) -> bytes:
        return _not_an_address(wire_from_text(word.strip()))

    def to_word(self, value: bytes) -> str:
        return text_from_wire(value)

    def to_zone_word(self, value: bytes) -> str:
        return absolute_text(value)

    def pack(self, value: bytes) -> bytes:
        return value

    def unpack(self, reader: WireReader) -> bytes:
        return _not_an_address(reader.name())


class Target(Kind[str]):
    """A name, kept as folded text, with a last dot if it was sent with one."""

    label = "host name, a last dot is kept"

    def from_word(self, word: str) -> str:
        text = text_from_wire(_not_an_address(wire_from_text(word)))
        return text + "." if text != "." and _ends_in_dot(word) else text

    def to_word(self, value: str) -> str:
        return value

    def to_zone_word(self, value: str) -> str:
        return absolute_text(wire_from_text(value))

    def pack(self, value: str) -> bytes:
        return wire_from_text(value)

    def unpack(self, reader: WireReader) -> str:
        return absolute_text(_not_an_address(reader.name()))


def _ends_in_dot(text: str) -> bool:
    body = text[:-1]
    slashes = len(body) - len(body.rstrip("\\"))
    return text[-1] in ".\u3002\uff0e\uff61" and slashes % 2 == 0


def _not_an_address(name: bytes) -> bytes:
    """No top-level domain is a number (RFC 3696 §2), so such a name is an address in the wrong field."""
    if name[-2:-1].isdigit() and labels(name)[-1].isdigit():
        raise InvalidName(f"{shown(text_from_wire(name))} is an address, not a host name")
    return name


class Hex(Kind[str]):
    """Octets in hexadecimal up to the end of the rdata, kept in the caller's capitals."""

    label = "hexadecimal"
    takes_rest = True
    is_bounded = False

    def from_word(self, word: str) -> str:
        text = "".join(word.split())
        try:
            octets = bytes.fromhex(text)
        except ValueError:
            octets = b""
        if not octets:
            raise InvalidValue(f"must be an even number of hexadecimal digits, not {shown(word)}")
        return text

    def to_word(self, value: str) -> str:
        return value

    def pack(self, value: str) -> bytes:
        return bytes.fromhex(value)

    def unpack(self, reader: WireReader) -> str:
        return self.from_word(reader.rest().hex())


class Base64(Kind[bytes]):
    """Octets in base64 (RFC 4648 §4, padded, no other characters than blanks) up to the end of the rdata."""

    label = "base64"
    takes_rest = True
    is_bounded = False

    def from_word(self, word: str) -> bytes:
        text = "".join(word.split())
        try:
            octets = binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            octets = b""
        # The decoder lets stray bits in the last character pass.
        if not octets or self.to_word(octets) != text:
            raise InvalidValue(f"must be base64 with its padding, not {shown(word)}")
        return octets

    def to_word(self, value: bytes) -> str:
        return binascii.b2a_base64(value, newline=False).decode("ascii")

    def pack(self, value: bytes) -> bytes:
        return value

    def unpack(self, reader: WireReader) -> bytes:
        octets = reader.rest()
        if not octets:
            raise InvalidValue("must not be empty")
        return octets


class String(Kind[bytes]):
    """Text of at most 255 octets behind its length; in `data` without quotes or escapes."""

    label = f"text, at most {STRING_OCTETS_MAX} octets"

    def _checked(self, octets: bytes) -> bytes:
        if len(octets) > STRING_OCTETS_MAX:
            raise InvalidValue(f"has {len(octets)} octets, more than {STRING_OCTETS_MAX}")
        return octets

    def from_json(self, raw: object) -> bytes:
        if not isinstance(raw, str):
            raise InvalidValue("must be text")
        return self._checked(utf8(raw))

    def from_word(self, word: str) -> bytes:
        return self._checked(string_octets(word))

    def to_json(self, value: bytes) -> object:
        return value.decode("utf-8", "backslashreplace")

    def to_word(self, value: bytes) -> str:
        return quoted(value)

    def to_zone_word(self, value: bytes) -> str:
        return quoted_ascii(value)

    def pack(self, value: bytes) -> bytes:
        return bytes((len(value),)) + value

    def unpack(self, reader: WireReader) -> bytes:
        return reader.counted()


class Tail(String):
    """Text up to the end of the rdata, without a length of its own."""

    is_bounded = False

    def __init__(self, *, may_be_empty: bool) -> None:
        self._may_be_empty = may_be_empty
        self.label = "text" if may_be_empty else "text, not empty"

    def _checked(self, octets: bytes) -> bytes:
        if not octets and not self._may_be_empty:
            raise InvalidValue("must not be empty")
        return octets

    def pack(self, value: bytes) -> bytes:
        return value

    def unpack(self, reader: WireReader) -> bytes:
        return self._checked(reader.rest())


U8 = Annotated[int, Integer(1)]
U16 = Annotated[int, Integer(2)]
U32 = Annotated[int, Integer(4)]
IPv4 = Annotated[bytes, Address(socket.AF_INET, 4, "IPv4 address")]
IPv6 = Annotated[bytes, Address(socket.AF_INET6, 16, "IPv6 address")]
HostName = Annotated[bytes, Host()]
TargetName = Annotated[str, Target()]
HexText = Annotated[str, Hex()]
Base64Octets = Annotated[bytes, Base64()]
ShortText = Annotated[bytes, String()]
