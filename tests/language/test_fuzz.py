"""Whatever is thrown at the room: a typed refusal or a filter that answers a bool."""

import inspect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgestead.language import (
    BOOL,
    FIELDS,
    INT,
    IP,
    PHASES,
    STRING,
    FilterError,
    Type,
    Value,
    compile_filter,
    compile_value,
    fixed_view,
)
from edgestead.language.errors import EXCERPT_CHARACTERS_MAX

from .conftest import FILTERS, REQUEST, VALUES

PIECES = [
    "http.host", "ip.src", "ip.src.asnum", "ssl", "http.request.headers", "http.request.headers.names",
    "true", '["a"]', "[0]", "[*]", "[", "]", "(", ")", "{", "}", ",", " ", "\n", "and", "or", "xor", "not",
    "!", "&&", "==", "ne", "<", ">=", "contains", "matches", "~", "wildcard", "strict wildcard", "in", "&",
    "$list", '"a"', '"', "\\", '"\\x41"', 'r"a"', 'r#"', "#", '"a*b"', "61:62", "1", "0x", "-5", "1..5", "08",
    "1.2.3.4", "10.0.0.0/8", "::1", "any(", "all(", "len(", "lower(", "concat(", "starts_with(", "substring(",
    "url_decode(", "cidr(", "has_key(", "regex_replace(", "lookup_json_string(", "é", "\x00",
    "\ud800", "99" * 20,
]  # fmt: skip
SOUP = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.lists(st.sampled_from(PIECES)).map(
    "".join
)
VALID = [
    'http.host eq "a" and (ip.src in {1.2.3.4 10.0.0.0/8} or not ssl)',
    'any(lower(http.request.headers["a"][*])[*] contains "x") xor http.host ~ "^a[\\"]b"',
    'starts_with(http.host, "a") and ip.src.asnum in {1..5 7} or http.host wildcard r"a\\*b*"',
    'concat("a", substring(http.host, 1, -1), lookup_json_string(http.request.body.raw, "a", 0))',
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good expression with some places overwritten."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 4))
        text = (
            text[:start] + draw(st.sampled_from(["", *PIECES]) | st.text(max_size=2)) + text[start + width :]
        )
    return text


def _values(type_: Type) -> st.SearchStrategy[Value]:
    if type_.item is not None:
        inner = _values(type_.item)
        keys = st.sampled_from([b"a", b"accept", b""]) | st.binary(max_size=3)
        return (
            st.lists(inner, max_size=3) if type_.kind == "Array" else st.dictionaries(keys, inner, max_size=3)
        )
    simple: dict[Type, st.SearchStrategy[Value]] = {
        STRING: st.binary(max_size=12),
        INT: st.integers(-5, 99),
        BOOL: st.booleans(),
        IP: st.integers(0, 2**32 - 1),
    }
    return simple[type_]


REQUESTS = st.fixed_dictionaries({}, optional={name: _values(FIELDS[name].type) for name in REQUEST})


@settings(max_examples=400, derandomize=True, deadline=None)
@given(SOUP | damaged() | st.text(), st.sampled_from([FILTERS, VALUES, "http_custom_errors"]), REQUESTS)
def test_a_text_is_a_filter_or_refused(text: str, phase: str, request: dict[str, Value]) -> None:
    try:
        compiled = compile_filter(text, phase, lists=lambda name, type_: ())
    except FilterError as error:
        _is_well_formed(error, text)
        return

    assert compiled(fixed_view(request)) in (True, False)
    assert compiled(fixed_view({})) in (True, False)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(SOUP | damaged(), REQUESTS)
def test_a_text_is_a_value_or_refused(text: str, request: dict[str, Value]) -> None:
    try:
        compiled = compile_value(text, VALUES)
    except FilterError as error:
        _is_well_formed(error, text)
        return

    assert isinstance(compiled(fixed_view(request)), bytes | None)


def _is_well_formed(error: FilterError, text: str) -> None:
    line = text.split("\n")[error.line - 1]
    head, shown, carets, *more = str(error).split("\n")
    assert more == ([error.hint] if error.hint else [])
    assert head == f"Filter parsing error ({error.line}:{error.column}):"
    assert shown == line if len(line) <= EXCERPT_CHARACTERS_MAX else shown.strip("…") in line.strip("…")
    assert 1 <= error.column <= len(line) + 1
    assert carets.lstrip().startswith("^")


FRAMES_OF_A_DEEP_CALLER = 350


@pytest.mark.parametrize("opener", ["(", "not ", "any(", "lower(", "!("])
def test_the_stack_suffices_for_a_caller_that_stands_deep_itself(opener: str) -> None:
    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
        else:
            compile_filter(opener * 300, FILTERS)

    with pytest.raises(FilterError, match="maximum nesting depth"):
        below(FRAMES_OF_A_DEEP_CALLER - len(inspect.stack(0)))


def test_every_phase_compiles() -> None:
    assert all(compile_filter("true", phase)(fixed_view({})) for phase in PHASES)
