"""The typed tree of an expression; `str()` of any node is its normal form.

Owns  the node classes and how they print.
Not   checking: the parser only builds trees whose types fit.

Normal form: words rather than symbols for logic, symbols for comparisons, double-quoted strings, decimal
numbers, parentheses only where needed. Parsing the normal form gives the same tree.

`many` is true where a condition yields one answer per item of an array (`x[*] == "v"`) rather than one.
"""

from typing import Literal as Choice

import msgspec

from edgestead.language.types import BOOL, IP, IPV6_FLAG, Type, array, ip_text

EACH = "*"


class Field(msgspec.Struct, frozen=True):
    name: str
    type: Type

    many = False

    def __str__(self) -> str:
        return self.name


class Literal(msgspec.Struct, frozen=True):
    """A constant argument of a function."""

    value: bytes | int
    type: Type

    many = False

    def __str__(self) -> str:
        return literal_text(self.value, self.type)


class Call(msgspec.Struct, frozen=True):
    """A function call. Over a mapped first argument the type is the array of results."""

    function: str
    args: tuple["ValueNode", ...]
    type: Type

    many = False

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


class Index(msgspec.Struct, frozen=True):
    """Steps into arrays (int), maps (bytes), or over all items (`EACH`). `type` is that of one item."""

    base: Field | Call
    path: tuple[int | bytes | str, ...]
    type: Type

    @property
    def many(self) -> bool:
        return EACH in self.path

    def __str__(self) -> str:
        steps = (quoted(step) if isinstance(step, bytes) else str(step) for step in self.path)
        return str(self.base) + "".join(f"[{step}]" for step in steps)


ValueNode = Field | Literal | Call | Index


class Constant(msgspec.Struct, frozen=True):
    value: bool

    many = False

    def __str__(self) -> str:
        return "true" if self.value else "false"


class Truth(msgspec.Struct, frozen=True):
    """A Bool, or an array of them, standing alone."""

    value: ValueNode

    @property
    def many(self) -> bool:
        return self.value.many or self.value.type == array(BOOL)

    def __str__(self) -> str:
        return str(self.value)


class _Comparison(msgspec.Struct, frozen=True):
    value: ValueNode

    @property
    def many(self) -> bool:
        return self.value.many


class Compare(_Comparison, frozen=True):
    """`op` is one of == != < <= > >= & contains."""

    op: str
    literal: bytes | int

    def __str__(self) -> str:
        return f"{self.value} {self.op} {literal_text(self.literal, self.value.type)}"


class Matches(_Comparison, frozen=True):
    """`pattern` as RE2 reads it, except that a quote outside a class is never escaped."""

    pattern: str

    def __str__(self) -> str:
        return f"{self.value} matches {regex_text(self.pattern)}"


class Wildcard(_Comparison, frozen=True):
    pattern: bytes
    strict: bool

    def __str__(self) -> str:
        return f"{self.value} {'strict ' * self.strict}wildcard {quoted(self.pattern)}"


class OneOf(_Comparison, frozen=True):
    """Strings as they are; Ints and Ips as inclusive ranges (first, last)."""

    items: tuple[bytes | tuple[int, int], ...]

    def __str__(self) -> str:
        of_ip = self.value.type == IP
        return f"{self.value} in {{{' '.join(_item_text(item, of_ip) for item in self.items)}}}"


class InList(_Comparison, frozen=True):
    name: str

    def __str__(self) -> str:
        return f"{self.value} in ${self.name}"


class Not(msgspec.Struct, frozen=True):
    item: "Condition"

    @property
    def many(self) -> bool:
        return self.item.many

    def __str__(self) -> str:
        return f"not ({self.item})" if isinstance(self.item, Logic) else f"not {self.item}"


class Logic(msgspec.Struct, frozen=True):
    """Two or more conditions, all single or all `many`."""

    op: Choice["and", "xor", "or"]
    items: tuple["Condition", ...]

    @property
    def many(self) -> bool:
        return self.items[0].many

    def __str__(self) -> str:
        return f" {self.op} ".join(f"({i})" if isinstance(i, Logic) else str(i) for i in self.items)


class Quantifier(msgspec.Struct, frozen=True):
    op: Choice["any", "all"]
    item: "Condition"

    many = False

    def __str__(self) -> str:
        return f"{self.op}({self.item})"


Condition = Constant | Truth | Compare | Matches | Wildcard | OneOf | InList | Not | Logic | Quantifier


def literal_text(value: bytes | int, type_: Type) -> str:
    if isinstance(value, bytes):
        return quoted(value)
    return ip_text(value) if type_ == IP else str(value)


def quoted(value: bytes) -> str:
    r"""A double-quoted string literal: printable UTF-8 as it is, every other byte as ``\xHH``."""
    parts = ['"']
    for char in value.decode("utf-8", "surrogateescape"):
        if char in '"\\':
            parts.append("\\" + char)
        elif char.isprintable() or char == " ":
            parts.append(char)
        else:
            parts.extend(f"\\x{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))
    return "".join(parts) + '"'


def regex_text(pattern: str) -> str:
    """A double-quoted regular expression; mirrors `lexer.Cursor.regex`."""
    parts, in_class, escaped = ['"'], False, False
    for char in pattern:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in "[]":
            in_class = char == "["
        elif char == '"' and not in_class:
            parts.append("\\")
        parts.append(char)
    return "".join(parts) + '"'


def _item_text(item: bytes | tuple[int, int], of_ip: bool) -> str:
    if isinstance(item, bytes):
        return quoted(item)
    first, last = item
    text = ip_text if of_ip else str
    if first == last:
        return text(first)
    size = last - first + 1
    if of_ip and size & (size - 1) == 0 and first & (size - 1) == 0:
        bits = 128 if first & IPV6_FLAG else 32
        return f"{ip_text(first)}/{bits - size.bit_length() + 1}"
    return f"{text(first)}..{text(last)}"
