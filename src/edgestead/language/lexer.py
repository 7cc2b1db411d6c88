"""Reading the small pieces of an expression: names, words, numbers, strings, addresses, patterns.

Owns  `Cursor`: the text, the place in it, and one reader per kind of literal.
Not   what may follow what (`parser`); whether a regular expression compiles (`patterns`).

There are no tokens: what ``61:62`` or ``010`` means depends on the type it is compared with, so the parser
asks for what it expects. Blanks are space, carriage return and line feed, as in the v4 API; a tab is not.
"""

from ipaddress import ip_address, ip_network
from typing import NoReturn

from edgestead.language.errors import FilterError
from edgestead.language.types import INT_MAX, INT_MIN, IPV6_FLAG, ip_value

_BLANKS = " \r\n"
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
_WORD_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz_")
_LIST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_OCTAL_DIGITS = frozenset("01234567")
_ADDRESS_CHARS = _HEX_DIGITS | frozenset(":./")
_BYTE_SEPARATORS = frozenset(":-.")
RAW_HASHES_MAX = 255  # around one raw string; its message is the known one


class Cursor:
    """A place in a text. Every reader starts at `position` and leaves it behind what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text.rstrip(_BLANKS))
        self.position = 0

    def fail(self, start: int, reason: str, end: int | None = None, hint: str = "") -> NoReturn:
        raise FilterError(self.text, start, end, reason, hint)

    def skip_blanks(self) -> int:
        while self.position < self.end and self.text[self.position] in _BLANKS:
            self.position += 1
        return self.position

    def peek(self) -> str:
        """The next character, or an empty text at the end."""
        return self.text[self.position] if self.position < self.end else ""

    def take(self, literal: str) -> bool:
        if not self.text.startswith(literal, self.position):
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            self.fail(self.position, f'expected literal "{literal}"')

    def run(self, chars: frozenset[str]) -> str:
        """The longest run of the given characters; may be empty."""
        start = self.position
        while self.position < self.end and self.text[self.position] in chars:
            self.position += 1
        return self.text[start : self.position]

    def word(self) -> str:
        """An operator's word; may be empty."""
        return self.run(_WORD_CHARS)

    def name(self) -> str:
        """A field's or function's name: parts joined by dots."""
        start = self.position
        while self.run(_NAME_CHARS):
            if not self.take("."):
                return self.text[start : self.position]
        self.fail(self.position, "expected identifier character")

    def list_name(self) -> str:
        start = self.position
        self.expect("$")
        name = self.run(_LIST_CHARS)
        if not name or name.startswith(".") or name.endswith("."):
            self.fail(start, f'invalid list name "{name}"', max(self.position, start + 1))
        return name

    # Numbers

    def integer(self) -> int:
        start = self.position
        if self.take("0x"):
            return self._number(start, 16)
        if self.peek() == "0":
            return self._number(start, 8)
        return self._number(start, 10, sign=-1 if self.take("-") else 1)

    def _number(self, start: int, radix: int, sign: int = 1) -> int:
        # all hexadecimal digits are taken, so that 08 and 12ab are marked whole
        digits_at, digits = self.position, self.run(_HEX_DIGITS)
        if not digits:
            self.fail(digits_at, "expected digit")
        try:
            number = sign * int(digits, radix)
        except ValueError:
            self.fail(digits_at, f"invalid digit for a number of radix {radix}", self.position)
        if not INT_MIN <= number <= INT_MAX:
            self.fail(start, "number does not fit into 64 bits", self.position)
        return number

    def integer_range(self) -> tuple[int, int]:
        start = self.position
        first = self.integer()
        last = self.integer() if self.take("..") else first
        if last < first:
            self.fail(start, "incompatible range bounds", self.position)
        return first, last

    # Addresses

    def _address_run(self) -> tuple[int, str]:
        start = self.position
        chunk = self.run(_ADDRESS_CHARS)
        if not chunk:
            self.fail(start, "expected IP address character")
        return start, chunk

    def _address(self, text: str, start: int) -> int:
        try:
            return ip_value(ip_address(text))
        except ValueError:
            self.fail(start, "invalid IP address", start + max(1, len(text)))

    def address(self) -> int:
        start, chunk = self._address_run()
        return self._address(chunk, start)

    def address_range(self) -> tuple[int, int]:
        """One address, ``a..b`` or a network, as inclusive bounds."""
        start, chunk = self._address_run()
        low, dots, high = chunk.partition("..")
        if dots:
            first = self._address(low, start)
            last = self._address(high, start + len(low) + 2)
            if last < first or (first ^ last) & IPV6_FLAG:
                self.fail(start, "incompatible range bounds", self.position)
            return first, last
        address, slash, prefix = chunk.partition("/")
        first = self._address(address, start)
        return self._network(address, prefix, start) if slash else (first, first)

    def _network(self, address: str, prefix: str, start: int) -> tuple[int, int]:
        # `ip_network` would also take a netmask, and int() a sign
        bits_max = 128 if ":" in address else 32
        if not (prefix.isdigit() and prefix.isascii() and len(prefix) <= 3 and int(prefix) <= bits_max):
            self.fail(start + len(address) + 1, f"network length must be 0 to {bits_max}", self.position)
        try:
            network = ip_network(f"{address}/{prefix}")
        except ValueError:
            self.fail(start, "host bits of the network must be zero", start + len(address))
        return ip_value(network.network_address), ip_value(network.broadcast_address)

    # Strings

    def string(self, *, keep_escapes: bool = False) -> bytes:
        r"""A quoted, raw or byte string.

        `keep_escapes` leaves an escape that strings do not know (``\d``) as it stands: it is for arguments
        that hold a regular expression.
        """
        first = self.peek()
        if first in ('"', "r"):
            return self.quoted_or_raw(keep_escapes=keep_escapes)
        if not first:
            self.fail(self.position, "unrecognised input")
        return self._byte_string()

    def quoted_or_raw(self, *, keep_escapes: bool = False) -> bytes:
        if self.take('"'):
            return self._quoted(keep_escapes)
        if self.take("r"):
            return self._raw().encode()
        self.fail(self.position, 'expected " or r')

    def _quoted(self, keep_escapes: bool) -> bytes:
        start, parts = self.position, bytearray()
        while True:
            stop = self.position
            while stop < self.end and self.text[stop] not in '"\\':
                stop += 1
            parts += self.text[self.position : stop].encode()
            self.position = stop + 1
            if stop >= self.end:
                self.fail(start, "could not find an ending quote")
            if self.text[stop] == '"':
                return bytes(parts)
            parts += self._escape(start, keep_escapes)

    def _escape(self, start: int, keep_escapes: bool) -> bytes:
        char = self.peek()
        if not char:
            self.fail(start, "could not find an ending quote")
        if char in '"\\':
            self.position += 1
            return char.encode()
        if char == "x":
            self.position += 1
            return bytes((self._fixed(2, 16, _HEX_DIGITS),))
        if char in _OCTAL_DIGITS:
            return bytes((self._fixed(3, 8, _OCTAL_DIGITS),))
        if keep_escapes:
            self.position += 1
            return b"\\" + char.encode()
        self.fail(self.position, 'expected ", xHH or OOO after \\', self.position + 1)

    def _fixed(self, count: int, radix: int, digits: frozenset[str]) -> int:
        start = self.position
        text = self.text[start : min(start + count, self.end)]
        if len(text) < count:
            self.fail(start, f"expected {count} characters, but found {len(text)}")
        self.position = start + count
        if not digits.issuperset(text) or int(text, radix) > 255:
            self.fail(start, f"invalid digit for a byte of radix {radix}", self.position)
        return int(text, radix)

    def _byte_string(self) -> bytes:
        parts = bytearray((self._fixed(2, 16, _HEX_DIGITS),))
        if self.peek() not in _BYTE_SEPARATORS:
            self.fail(self.position, "expected byte separator", self.position + 1)
        while self.peek() in _BYTE_SEPARATORS:
            self.position += 1
            parts.append(self._fixed(2, 16, _HEX_DIGITS))
        return bytes(parts)

    def _raw(self) -> str:
        start = self.position
        hashes = self.run(frozenset("#"))
        if len(hashes) > RAW_HASHES_MAX:
            self.fail(start, f"invalid raw string hash count, there can't be more than {RAW_HASHES_MAX} #s")
        if not self.take('"'):
            self.fail(self.position, 'expected " or #')
        stop = self.text.find('"' + hashes, self.position, self.end)
        if stop < 0:
            self.fail(start, "could not find an ending quote")
        content = self.text[self.position : stop]
        self.position = stop + 1 + len(hashes)
        return content

    def regex(self) -> str:
        r"""A regular expression, quoted or raw, with its own escapes kept.

        In a quoted one ``\"`` is a quote, and a quote inside a class ``[…]`` needs no backslash. Both forms
        come back without a backslash before a quote outside a class, so that one tree has one text.
        """
        if self.take("r"):
            return _plain_regex(self._raw())
        if not self.take('"'):
            self.fail(self.position, 'expected " or r' if self.peek() else "unrecognised input")
        start, in_class = self.position, False
        while self.position < self.end:
            char = self.text[self.position]
            if char == '"' and not in_class:
                self.position += 1
                return _plain_regex(self.text[start : self.position - 1])
            if char in "[]":
                in_class = char == "["
            self.position += 2 if char == "\\" else 1
        self.fail(start, "could not find an ending quote")


def _plain_regex(pattern: str) -> str:
    parts, in_class, escaped = [], False, False
    for char in pattern:
        if escaped:
            parts.append(char if char == '"' and not in_class else "\\" + char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            if char in "[]":
                in_class = char == "["
            parts.append(char)
    return "".join(parts) + "\\" * escaped
