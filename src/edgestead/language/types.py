"""The types of values in an expression, and the limits that hold for every value.

Owns  `Type`, the forms values take at run time, how an IP address becomes one integer, the room's limits.
Not   which field has which type (`fields`).

At run time a String is `bytes`, an Int and an Ip are `int`, a Bool is `bool`, an Array is a list or tuple, a
Map is a dict with `bytes` keys. None is a missing value.

An Ip is one integer so that sets, ranges and networks of both families share one sorted list: IPv4 is its
32 bits, IPv6 its 128 bits plus `IPV6_FLAG`. ``::1.2.3.4`` and ``1.2.3.4`` therefore never meet.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import msgspec

EXPRESSION_CHARS_MAX = 4_096  # documented limit of the v4 API
NESTING_DEPTH_MAX = 128  # parentheses, `not` and calls inside one another; the open engine's limit
PATTERNS_MAX = 64  # regular expressions and wildcards in one expression
SET_ITEMS_MAX = 2_048  # items between { and }; no longer list fits into an expression
REGEX_MEMORY_BYTES_MAX = 2 << 20  # program and automaton cache of one regular expression
REGEX_REPETITIONS_MAX = 1_000  # RE2's own: {n} multiplied by those inside of it
REGEX_INSTRUCTIONS_MAX = 5_000  # of its program: the longest literal fits; compiling takes 6 ms at most
VALUE_BYTES_MAX = 131_072  # a longer String is cut when it is read, and when a function makes it
VALUE_ITEMS_MAX = 1_024  # further items of an Array or Map are not seen
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
IPV6_FLAG = 1 << 128

Value = bytes | int | Sequence["Value"] | Mapping[bytes, "Value"]


class Type(msgspec.Struct, frozen=True):
    """A type and, for Array and Map, the type of its items. Prints as the error texts name it."""

    kind: str
    item: "Type | None" = None

    def __str__(self) -> str:
        return self.kind if self.item is None else f"{self.kind}<{self.item}>"


STRING = Type("Bytes")
INT = Type("Int")
BOOL = Type("Bool")
IP = Type("Ip")


def array(item: Type) -> Type:
    return Type("Array", item)


def map_of(item: Type) -> Type:
    return Type("Map", item)


def ip_value(address: IPv4Address | IPv6Address | str) -> int:
    """The integer that stands for an address in expressions.

    Raises: ValueError when a text is no address.
    """
    if isinstance(address, str):
        address = ip_address(address)
    return int(address) if address.version == 4 else int(address) | IPV6_FLAG


def ip_text(value: int) -> str:
    """The canonical text of `ip_value`'s integer.

    >>> ip_text(ip_value("2001:DB8:0::1"))
    '2001:db8::1'
    """
    return str(IPv6Address(value ^ IPV6_FLAG) if value & IPV6_FLAG else IPv4Address(value))


def clip(value: Value | None) -> Value | None:
    """What expressions see of a value: `VALUE_BYTES_MAX` and `VALUE_ITEMS_MAX` of it, at every depth."""
    if isinstance(value, bytes):
        return value if len(value) <= VALUE_BYTES_MAX else value[:VALUE_BYTES_MAX]
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        pairs = list(value.items())[:VALUE_ITEMS_MAX]
        return {key: item for key, raw in pairs if (item := clip(raw)) is not None}
    return [item for raw in value[:VALUE_ITEMS_MAX] if (item := clip(raw)) is not None]
