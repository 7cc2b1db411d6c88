"""Patterns agree with their plain definitions."""

from functools import cache

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgestead.language.patterns import (
    compile_regex,
    needed_text,
    regex_replacer,
    regex_test,
    replacement_pieces,
    wildcard_parts,
    wildcard_test,
)

FIXED = settings(max_examples=400, derandomize=True, deadline=None)


@cache
def covers(pattern: bytes, value: bytes) -> bool:
    """The definition of a wildcard: a star is any run, everything else itself."""
    if not pattern:
        return not value
    if pattern[:1] == b"*":
        return any(covers(pattern[1:], value[start:]) for start in range(len(value) + 1))
    return value[:1] == pattern[:1] and covers(pattern[1:], value[1:])


@FIXED
@example(b"a*a", b"a", True)
@example(b"*ab*b", b"ab", True)
@example(b"A*", b"ab", False)
@given(
    st.text("ab*", max_size=7).map(lambda text: text.encode()).filter(lambda pattern: b"**" not in pattern),
    st.text("abA", max_size=8).map(lambda text: text.encode()),
    st.booleans(),
)
def test_a_wildcard_matches_what_its_definition_covers(pattern: bytes, value: bytes, strict: bool) -> None:
    expected = covers(pattern, value) if strict else covers(pattern.lower(), value.lower())

    assert wildcard_test(pattern, strict=strict)(value) is expected


PARTS = [
    (b"", [b""]),
    (b"*", [b"", b""]),
    (rb"a\*b*\\", [b"a*b", b"\\"]),
    (rb"*\**", [b"", b"*", b""]),
]


@pytest.mark.parametrize(("pattern", "parts"), PARTS)
def test_the_parts_of_a_wildcard(pattern: bytes, parts: list[bytes]) -> None:
    assert wildcard_parts(pattern) == parts


@pytest.mark.parametrize("pattern", [b"**", b"a**", rb"\\**", rb"\a", b"a\\"])
def test_what_is_no_wildcard(pattern: bytes) -> None:
    with pytest.raises(ValueError, match="wildcard"):
        wildcard_parts(pattern)


@FIXED
@example("^a$", b"a\n")
@example("a", b"\xffa")
@given(st.text("ab^$/.", max_size=5), st.text("ab/\n", max_size=6).map(lambda text: text.encode()))
def test_plain_byte_operations_answer_what_re2_answers(pattern: str, value: bytes) -> None:
    assert regex_test(pattern)(value) is (re2.search(pattern.encode(), value) is not None)


E_ACUTE = "é".encode()
# pattern, values that it finds something in, values that it does not
ON_BYTES = [
    (r"^/admin/.$", [b"/admin/\xff", b"/admin/a"], [b"/admin/" + E_ACUTE, b"/admin/\n"]),
    (r"^[^/]+$", [b"\xff\x80", E_ACUTE], [b"/", b"\xff/"]),
    (r"\xff", [b"a\xffb"], ["ÿ".encode()]),
    (r"^[\x80-\xff]{2}$", [E_ACUTE, b"\xfe\xff"], [b"\xff", b"ab"]),
    ("^é+$", [E_ACUTE, E_ACUTE * 3], [b"\xc3", b"\xc3\xa9\xa9", b"\xa9"]),
    ("^é$", [E_ACUTE], [b"\xe9"]),
    ("(?i)^straße$", ["STRAßE".encode()], [b"STRASSE", b"stra\xe3\x9fe"]),
    ("^[[:alpha:]]é[]x]", [b"a" + E_ACUTE + b"]", b"b" + E_ACUTE + b"x"], [b"1" + E_ACUTE + b"x"]),
    (r"^\[é\]$", [b"[" + E_ACUTE + b"]"], [E_ACUTE]),
    (r"^\w\b", [b"a"], [E_ACUTE]),
    (r"^\s$", [b" ", b"\t", b"\n", b"\x0b", b"\x0c", b"\r"], [b"\x08", b"\x0e", b"a", b"\x85"]),
    (r"^\S$", [b"\x08", b"\x0e", b"a", b"\x85", b"\xff"], [b" ", b"\x0b"]),
    (r"^[\s-]$", [b"\x0b", b" ", b"-"], [b"a"]),
    (r"^[-\s]$", [b"\x0b", b"-"], [b"a"]),
    (r"^[^\s]$", [b"a", b"\xff"], [b"\x0b", b" "]),
    (r"^[\Sa]$", [b"a", b"\xff"], [b"\x0b"]),
    (r"^[^\S\x0b]$", [b" ", b"\t"], [b"a", b"\x0b"]),
    (r"^[]\s]$", [b"]", b"\x0b"], [b"s"]),
    (r"^\\s$", [b"\\s"], [b"\x0b", b" "]),
    (r"^[\\s]$", [b"\\", b"s"], [b"\x0b"]),
    (r"^[&~a-c]$", [b"&", b"~", b"b"], [b"-"]),
    (r"^[\[\&\&]$", [b"[", b"&"], [b"\\"]),
    (r"^[+\--9]$", [b"+", b"-", b"."], [b","]),
    (r"^[[:^alpha:]z]$", [b"1", b"z"], [b"a"]),
    (r"^a{0,2}\{,$", [b"{,", b"aa{,"], [b"aaa{,"]),
    (r"^\xff{2}$", [b"\xff\xff"], [b"\xff"]),
]


@pytest.mark.parametrize(("pattern", "found", "missed"), ON_BYTES)
def test_a_regular_expression_reads_bytes(pattern: str, found: list[bytes], missed: list[bytes]) -> None:
    test = regex_test(pattern)

    assert [value for value in (*found, *missed) if test(value)] == found


@pytest.mark.parametrize("pattern", ["[é]", "[^aé]", "[[:alpha:]é]", "[]é]", r"[\]é]", "[é", r"\é", r"\Qé\E"])
def test_a_class_holds_single_bytes(pattern: str) -> None:
    with pytest.raises(ValueError, match="regex parse error"):
        compile_regex(pattern)


# what Rust's regex reads otherwise, or RE2 alone knows; pattern and what the refusal says
READ_OTHERWISE = [
    ("[a-z&&[^aeiou]]", "&& in a class"),
    ("[a&&b]", "&& in a class"),
    ("[a~~b]", "~~ in a class"),
    ("[--a]", "-- in a class"),
    ("[+--]", "-- in a class"),
    ("^[[a-c][x-z]]$", "[ in a class"),
    ("[a[]", "[ in a class"),
    ("[][a]", "[ in a class"),
    ("[[.a.]]", "[ in a class"),
    ("^a{,3}$", "{, is not supported"),
    ("[a]{,}", "{, is not supported"),
    (r"\<a", r"\< is not supported"),
    (r"a\>", r"\> is not supported"),
    (r"[\<]", r"\< is not supported"),
    (r"\b{start}", r"\b{ is not supported"),
    (r"\Qa.b\E", r"\Q is not supported"),
    (r"a\E", r"\E is not supported"),
    (r"\C", r"\C is not supported"),
    (r"\pL", r"\p is not supported"),
    (r"\p{Greek}", r"\p is not supported"),
    (r"\PN", r"\P is not supported"),
    (r"[\p{L}]", r"\p is not supported"),
    (r"[a-\s]", "cannot end a range"),
    (r"[\x00-\s]", "cannot end a range"),
    (r"[A-\S]", "cannot end a range"),
]


@pytest.mark.parametrize(("pattern", "reason"), READ_OTHERWISE)
def test_what_another_engine_reads_otherwise_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match="regex parse error: ") as caught:
        compile_regex(pattern)

    assert reason in str(caught.value)


REPETITIONS = [
    ("a{1001}", "{1001}: repetitions multiply to more than 1,000"),
    ("((a{100}){100})", "{100}: repetitions multiply to more than 1,000"),
    ("(?:a{40}){30}", "{30}: repetitions multiply to more than 1,000"),
    ("(?:a{2,40}){30,}", "{30,}: repetitions multiply to more than 1,000"),
    ("a{2,1}", "{2,1}"),
]


@pytest.mark.parametrize(("pattern", "reason"), REPETITIONS)
def test_repetitions_are_counted_as_they_multiply(pattern: str, reason: str) -> None:
    compile_regex("(?:a{25}){40}")

    with pytest.raises(ValueError, match="regex parse error: invalid repetition size: ") as caught:
        compile_regex(pattern)

    assert str(caught.value).endswith(reason)


@FIXED
@given(st.text(r"ab\[]^-&~:{},sSwdQE()|*+?.$0é", max_size=12))
def test_any_text_is_a_pattern_or_is_refused_as_one(pattern: str) -> None:
    try:
        compile_regex(pattern)
    except ValueError as error:
        assert str(error).startswith("regex parse error: ")  # noqa: PT017


def test_a_replacement_reads_bytes_too() -> None:
    assert regex_replacer(b"^(.)[\xfe\xff]", b"${1}-")(b"\x80\xff/") == b"\x80-/"
    assert regex_replacer("(é+)".encode(), b"<${1}>")(b"a" + E_ACUTE * 2) == b"a<" + E_ACUTE * 2 + b">"


PIECES = [
    (b"", 0, [b""]),
    (b"a$$b${1}${2}", 2, [b"a", b"$", b"b", 1, b"", 2, b""]),
    (b"\0\0${1}", 1, [b"\0\0", 1, b""]),
]


@pytest.mark.parametrize(("template", "groups", "pieces"), PIECES)
def test_a_replacement_is_split_at_its_references(
    template: bytes, groups: int, pieces: list[bytes | int]
) -> None:
    assert replacement_pieces(template, groups) == pieces


@pytest.mark.parametrize(
    "template", [b"$", b"$1", b"${1", b"${}", b"${0}", b"${3}", b"${10}", b"${a}", b"${1}" * 9]
)
def test_what_is_no_replacement_for_two_groups(template: bytes) -> None:
    with pytest.raises(ValueError, match=r"group|expected|references"):
        replacement_pieces(template, 2)


NEEDED = {
    r"^https?://spam[0-9]+\.test/": b"://spam",
    r"(?i)/\.(git|env|svn)": b"/.",
    "^/wp-login": b"/wp-login",
    "ab+cd*e?": b"a",
    "ab{2}cde": b"cde",
    "(?:ab)+cd": b"cd",
    "(a|b)[cd]ef.g": b"ef",
    r"a\sbc": b"bc",
    "a|bc": b"",
    r"a\x41b": b"",
    "ab{c": b"",
    "ab{12": b"",
    "a(?i)bc": b"",
    "(?i)admin": b"",
    "é": b"",
    "": b"",
}


@pytest.mark.parametrize("pattern", NEEDED)
def test_a_text_that_every_match_contains_is_seen(pattern):
    assert needed_text(pattern) == NEEDED[pattern]


_PIECES = st.sampled_from(
    [
        *("a", "b", "/", "é", ".", "^", "$", "|", "(", "(?:", "(?i)", "(?i:", ")", "[ab]", "[^|(]", "[]a]"),
        *(r"\.", r"\|", r"\(", r"\\", r"\d", r"\x41", r"\101", r"\b", r"\z"),
        *("*", "+", "?", "*?", "{2}", "{0,1}", "{0}", "{a", "{1", "}", ","),
    ]
)


@settings(max_examples=3_000, derandomize=True, deadline=None)
@given(st.lists(_PIECES, max_size=8).map("".join), st.text("abA/é.|(\\1{}a,", max_size=12))
def test_nothing_matches_without_the_text_that_it_needs(pattern, text):
    try:
        compiled = compile_regex(pattern)
    except ValueError:
        return
    value = text.encode()
    assert needed_text(pattern) in value or compiled.search(value) is None, pattern
