"""Every function of the language: one row each.

Owns  names, parameters, result types, where a function may be used, which constants it refuses.
Not   `any` and `all`: they are part of the grammar, because they take conditions.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import msgspec

from edgestead.language import library, patterns
from edgestead.language.tree import Field, Literal, ValueNode
from edgestead.language.types import BOOL, INT, IP, STRING, Type, array

Run = Callable[..., Any]
SPLIT_ITEMS_MAX = 128  # contract "Expressions": the limit of split


class Kind(Enum):
    """What may stand for an argument. A field is anything that is read from the request."""

    ANY = "any"
    FIELD = "Field"
    LITERAL = "Literal"


class Parameter(msgspec.Struct, frozen=True):
    """`types` are the accepted types; "Array" and "Map" stand for arrays and maps of anything.

    `check` gets a constant argument and answers why it is refused, or an empty text.
    """

    types: tuple[Type | str, ...]
    kind: Kind = Kind.ANY
    optional: bool = False
    check: Callable[[Any], str] = lambda _: ""


class Function(msgspec.Struct, frozen=True):
    """A row.

    `result` is the type, or computes it from the first argument's. `make` gets the call's arguments and
    answers the function to run on their values; it raises ValueError for constants that do not go together.
    `repeats`: the last parameter may be given again and again. `values_only`: not in filters.
    `phases`: only there; empty for everywhere. `once`: at most one such call in an expression.
    `keeps_missing`: runs even though arguments are missing, without them.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | Callable[[Type], Type]
    make: Callable[[Sequence[ValueNode]], Run]
    repeats: bool = False
    values_only: bool = False
    phases: frozenset[str] = frozenset()
    once: bool = False
    keeps_missing: bool = False
    pattern_parameter: int | None = None


def _within(low: int, high: int) -> Callable[[int], str]:
    return lambda value: "" if low <= value <= high else f"expected {low} to {high}"


def _letters(allowed: bytes) -> Callable[[bytes], str]:
    def check(value: bytes) -> str:
        return "" if not value.translate(None, allowed) else f"expected letters of {allowed.decode()!r}"

    return check


def _not_empty(value: bytes) -> str:
    return "" if value else "expected a non-empty string"


def _plain(run: Run) -> Callable[[Sequence[ValueNode]], Run]:
    return lambda _: run


def _constant(node: ValueNode) -> Any:
    assert isinstance(node, Literal)
    return node.value


def _make_regex_replace(args: Sequence[ValueNode]) -> Run:
    replace = patterns.regex_replacer(_constant(args[1]), _constant(args[2]))
    return lambda value, *_: replace(value)


def _make_wildcard_replace(args: Sequence[ValueNode]) -> Run:
    strict = len(args) > 3 and _constant(args[3]) == b"s"
    replace = patterns.wildcard_replacer(_constant(args[1]), _constant(args[2]), strict=strict)
    return lambda value, *_: replace(value)


def _make_to_string(args: Sequence[ValueNode]) -> Run:
    return library.ip_string if args[0].type == IP else library.to_string


def _make_remove_query_args(args: Sequence[ValueNode]) -> Run:
    allowed = ("http.request.uri.query", "raw.http.request.uri.query")
    if not (isinstance(args[0], Field) and args[0].name in allowed):
        raise ValueError(f"expected {allowed[0]} or {allowed[1]}")
    return library.remove_query_args


_STRING = Parameter((STRING,))
_STRING_FIELD = Parameter((STRING,), Kind.FIELD)
_STRING_LITERAL = Parameter((STRING,), Kind.LITERAL)
_IP_FIELD = Parameter((IP,), Kind.FIELD)
_INT = Parameter((INT,))
_IPV4_BITS = Parameter((INT,), check=_within(1, 32))
_IPV6_BITS = Parameter((INT,), check=_within(1, 128))
_KEY = Parameter((STRING, INT))

_TRANSFORM = frozenset(
    (
        "http_request_transform",
        "http_request_late_transform",
        "http_response_headers_transform",
        "http_custom_errors",
    )
)

_ROWS = (
    Function("len", (Parameter((STRING, "Array")),), INT, _plain(len)),
    Function("lower", (_STRING,), STRING, _plain(bytes.lower)),
    Function("upper", (_STRING,), STRING, _plain(bytes.upper)),
    Function("starts_with", (_STRING_FIELD, _STRING), BOOL, _plain(bytes.startswith)),
    Function("ends_with", (_STRING_FIELD, _STRING), BOOL, _plain(bytes.endswith)),
    Function(
        "substring",
        (_STRING_FIELD, _INT, Parameter((INT,), optional=True)),
        STRING,
        _plain(library.substring),
    ),
    Function(
        "concat",
        (Parameter((STRING, "Array")),),
        lambda first: first,
        _plain(library.concat),
        repeats=True,
        keeps_missing=True,
    ),
    Function(
        "join",
        (Parameter((array(STRING),)), _STRING),
        STRING,
        _plain(library.join),
        phases=_TRANSFORM | {"http_request_firewall_custom"},
    ),
    Function(
        "split",
        (
            _STRING,
            Parameter((STRING,), Kind.LITERAL, check=_not_empty),
            Parameter((INT,), Kind.LITERAL, check=_within(1, SPLIT_ITEMS_MAX)),
        ),
        array(STRING),
        _plain(library.split),
        phases=_TRANSFORM,
    ),
    Function("remove_bytes", (_STRING, _STRING), STRING, _plain(library.remove_bytes)),
    Function(
        "url_decode",
        (_STRING_FIELD, Parameter((STRING,), Kind.LITERAL, optional=True, check=_letters(b"ru"))),
        STRING,
        _plain(library.url_decode),
    ),
    Function("decode_base64", (_STRING_FIELD,), STRING, _plain(library.decode_base64)),
    Function(
        "encode_base64",
        (_STRING, Parameter((STRING,), Kind.LITERAL, optional=True, check=_letters(b"up"))),
        STRING,
        _plain(library.encode_base64),
    ),
    Function("sha256", (_STRING,), STRING, _plain(library.sha256)),
    Function("lookup_json_string", (_STRING, _KEY), STRING, _plain(library.lookup_json_string), repeats=True),
    Function("lookup_json_integer", (_STRING, _KEY), INT, _plain(library.lookup_json_integer), repeats=True),
    Function("cidr", (_IP_FIELD, _IPV4_BITS, _IPV6_BITS), IP, _plain(library.cidr)),
    Function("cidr6", (_IP_FIELD, _IPV6_BITS), IP, _plain(library.cidr6)),
    Function("is_ipv4", (_IP_FIELD,), BOOL, _plain(library.is_ipv4)),
    Function("is_ipv6", (_IP_FIELD,), BOOL, _plain(library.is_ipv6)),
    Function("has_key", (Parameter(("Map",), Kind.FIELD), _STRING), BOOL, _plain(library.has_key)),
    Function(
        "has_value",
        (Parameter((array(STRING), array(INT)), Kind.FIELD), _KEY),
        BOOL,
        _plain(library.has_value),
    ),
    Function(
        "is_timed_hmac_valid_v0",
        (
            _STRING_LITERAL,
            _STRING,
            Parameter((INT,), Kind.LITERAL),
            _INT,
            Parameter((INT,), Kind.LITERAL, optional=True, check=_within(0, 1_024)),
            Parameter((STRING,), Kind.LITERAL, optional=True, check=_letters(b"s")),
        ),
        BOOL,
        _plain(library.is_timed_hmac_valid),
    ),
    Function(
        "regex_replace",
        (_STRING, _STRING_LITERAL, _STRING_LITERAL),
        STRING,
        _make_regex_replace,
        values_only=True,
        once=True,
        pattern_parameter=1,
    ),
    Function(
        "wildcard_replace",
        (
            _STRING_FIELD,
            _STRING_LITERAL,
            _STRING_LITERAL,
            Parameter((STRING,), Kind.LITERAL, optional=True, check=_letters(b"s")),
        ),
        STRING,
        _make_wildcard_replace,
        values_only=True,
        once=True,
        pattern_parameter=1,
    ),
    Function("to_string", (Parameter((INT, BOOL, IP, STRING)),), STRING, _make_to_string, values_only=True),
    Function(
        "remove_query_args",
        (_STRING_FIELD, _STRING),
        STRING,
        _make_remove_query_args,
        repeats=True,
        values_only=True,
    ),
    Function("uuidv4", (_STRING_FIELD,), STRING, _plain(library.uuidv4), values_only=True),
)

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
