"""The normal form: what it looks like, and that reading it back gives the same tree."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgestead.language import BOOL, FIELDS, FUNCTIONS, INT, IP, STRING, parse_filter, parse_value
from edgestead.language.tree import (
    EACH,
    Call,
    Compare,
    Condition,
    Constant,
    Field,
    Index,
    InList,
    Literal,
    Logic,
    Matches,
    Not,
    OneOf,
    Quantifier,
    Truth,
    Wildcard,
)
from edgestead.language.types import INT_MAX, INT_MIN, IPV6_FLAG, array

from .conftest import FILTERS, VALUES

NORMAL = [
    ('http.host  eq  "a"', 'http.host == "a"'),
    ("!ssl&&(ssl)", "not ssl and ssl"),
    ("ssl and (ssl or ssl)", "ssl and (ssl or ssl)"),
    ("(ssl and ssl) or ssl", "(ssl and ssl) or ssl"),
    ("(ssl and ssl) and ssl", "(ssl and ssl) and ssl"),
    ("ssl and ssl and ssl", "ssl and ssl and ssl"),
    ("not(not ssl)", "not not ssl"),
    ("not (ssl or ssl)", "not (ssl or ssl)"),
    ("ip.src.asnum in {0x10 1..5 010}", "ip.src.asnum in {16 1..5 8}"),
    ("ip.src in {1.2.3.0..1.2.3.255 2001:DB8:0::/32}", "ip.src in {1.2.3.0/24 2001:db8::/32}"),
    ('http.host in {61:62 r"c\\"}', 'http.host in {"ab" "c\\\\"}'),
    ('http.host ~ r#"a"[\\"]\\""#', 'http.host matches "a\\"[\\"]\\""'),
    ('ip.geoip.country eq "DE"', 'ip.src.country == "DE"'),
    ('http.host eq "\\x00\\xff\\xc3\\xa9"', 'http.host == "\\x00\\xFFé"'),
    ('any ( http.request.headers[ "a" ][ * ] eq "b" )', 'any(http.request.headers["a"][*] == "b")'),
]


@pytest.mark.parametrize(("text", "normal"), NORMAL)
def test_the_normal_form(text: str, normal: str) -> None:
    tree = parse_filter(text, FILTERS)

    assert str(tree) == normal
    assert parse_filter(normal, FILTERS) == tree


def fields(type_: object) -> st.SearchStrategy[Field]:
    names = [f.name for f in FIELDS.values() if f.type == type_ and f.direction == "request"]
    return st.sampled_from(names[:5]).map(lambda name: Field(name, FIELDS[name].type))


MULTI = FIELDS["http.request.headers"].type
EACH_STRING = st.builds(
    lambda field, key: Index(field, (key, EACH), STRING), fields(MULTI), st.text().map(str.encode)
)
STRINGS = st.one_of(
    fields(STRING),
    st.builds(
        lambda f, key, place: Index(f, (key, place), STRING), fields(MULTI), st.binary(), st.integers(0, 99)
    ),
    fields(STRING).map(lambda field: Call("lower", (field,), STRING)),
    st.builds(lambda f, s: Call("concat", (f, Literal(s, STRING)), STRING), fields(STRING), st.binary()),
    st.builds(
        lambda f, n: Call("substring", (f, Literal(n, INT)), STRING), fields(STRING), st.integers(-9, 9)
    ),
)
INTS = st.integers(INT_MIN, INT_MAX)
IPS = st.integers(0, 2**32 - 1) | st.integers(IPV6_FLAG, 2 * IPV6_FLAG - 1)
STARS = st.lists(st.sampled_from([b"*", b"\\*", b"\\\\", b"a", b'"', b"\xff", "é".encode()])).map(
    lambda parts: re.sub(rb"(?<!\\)((?:\\\\)*)\*+", rb"\1*", b"".join(parts))
)
REGEXES = st.lists(
    st.sampled_from(
        ["a", '"', '["]', '[\\"]', "\\\\", "\\.", "é", "\n", "#", "(?:x|y)*", "[^a-z]", "\\d", " "]
    )
).map(lambda parts: "".join(parts))


def pair(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(numbers, numbers).map(lambda p: (min(p), max(p)))


def leaves(strings: st.SearchStrategy[object]) -> st.SearchStrategy[Condition]:
    return st.one_of(
        st.builds(
            Compare, strings, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains"]), st.binary()
        ),
        st.builds(Matches, strings, REGEXES),
        st.builds(Wildcard, strings, STARS, st.booleans()),
        st.builds(OneOf, strings, st.lists(st.binary()).map(tuple)),
        st.builds(InList, strings, st.from_regex(r"\A[a-z0-9_]+\Z", fullmatch=True)),
    )


def combined(items: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.recursive(
        items,
        lambda inner: st.one_of(
            inner.map(Not),
            st.builds(
                Logic,
                st.sampled_from(["and", "or", "xor"]),
                st.lists(inner, min_size=2, max_size=4).map(tuple),
            ),
        ),
        max_leaves=8,
    )


SINGLE = st.one_of(
    st.builds(Constant, st.booleans()),
    fields(BOOL).map(Truth),
    leaves(STRINGS),
    st.builds(Compare, fields(INT), st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "&"]), INTS),
    st.builds(OneOf, fields(INT), st.lists(pair(INTS)).map(tuple)),
    st.builds(Compare, fields(IP), st.sampled_from(["==", "!="]), IPS),
    st.builds(
        OneOf,
        fields(IP),
        st.lists(pair(st.integers(0, 2**32 - 1)) | pair(st.integers(IPV6_FLAG, 2 * IPV6_FLAG - 1))).map(
            tuple
        ),
    ),
    st.builds(Quantifier, st.sampled_from(["any", "all"]), combined(leaves(EACH_STRING))),
    st.builds(
        lambda f, s: Quantifier(
            "any", Truth(Call("starts_with", (Index(f, (EACH,), STRING), Literal(s, STRING)), array(BOOL)))
        ),
        fields(array(STRING)),
        st.binary(),
    ),
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(combined(SINGLE))
def test_reading_the_printed_form_gives_the_same_tree(tree: Condition) -> None:
    text = str(tree)
    if len(text) <= 4_096:
        assert parse_filter(text, FILTERS) == tree


VALUE_TEXTS = [
    'concat("https://", http.host, http.request.uri.path)',
    'regex_replace(http.request.uri.path, "^/a\\\\d(.*)$", "/${1}")',
    'wildcard_replace(http.host, "*.example.com", "${1}", "s")',
    'split(http.host, ",", 3)[0]',
]


@pytest.mark.parametrize("text", VALUE_TEXTS)
def test_values_print_too(text: str) -> None:
    tree = parse_value(text, VALUES)

    assert str(tree) == text
    assert parse_value(str(tree), VALUES) == tree


def test_the_generator_knows_real_functions() -> None:
    assert {"lower", "concat", "substring", "starts_with"} <= set(FUNCTIONS)
