"""TXT is decoded once: what it means is kept apart from how it is quoted."""

import pytest

from edgestead.model.records import TXT, from_wire, parse
from edgestead.model.refusals.record import ContentTooLong

STRINGS = [
    ("abc", (b"abc",)),
    ('"abc"', (b"abc",)),
    ('  "abc"  ', (b"abc",)),
    ("  abc ", (b"  abc ",)),
    ('"a" "b"', (b"a", b"b")),
    ('"a"\n\t"b"', (b"a", b"b")),
    ('"a b" ""', (b"a b", b"")),
    ("a\\\\b", (b"a\\b",)),
    ("x" * 255, (b"x" * 255,)),
    ("x" * 256, (b"x" * 255, b"x")),
    (f'"{"x" * 256}" "y"', (b"x" * 255, b"x", b"y")),
    ("x" * 2_048, (b"x" * 255,) * 8 + (b"x" * 8,)),
    ("x" + "é" * 254, (b"x" + "é".encode() * 127, "é".encode() * 127)),
    ("é" * 128, ("é".encode() * 127, "é".encode())),
    ("€" * 86, ("€".encode() * 85, "€".encode())),
    ("xx" + "€" * 85, (b"xx" + "€".encode() * 84, "€".encode())),
    ("x" + "😀" * 64, (b"x" + "😀".encode() * 63, "😀".encode())),
    (r"\200" * 256, (b"\xc8" * 255, b"\xc8")),
    (r"\150" * 256, (b"\x96" * 255, b"\x96")),
]


@pytest.mark.parametrize(("content", "strings"), STRINGS, ids=range(len(STRINGS)))
def test_content_becomes_strings(content, strings):
    rdata = parse("TXT", content=content)

    assert rdata.strings == strings
    assert rdata.text == b"".join(strings)


@pytest.mark.parametrize(("content", "strings"), STRINGS, ids=range(len(STRINGS)))
def test_an_answer_may_be_sent_back(content, strings):
    answer = parse("TXT", content=content).to_content()

    assert parse("TXT", content=answer).strings == strings
    assert parse("TXT", content=answer).to_content() == answer


def test_escapes_do_not_count_for_the_limit():
    assert len(parse("TXT", content=r"\001" * 2_048).text) == 2_048


@pytest.mark.parametrize(
    "content", ["é" * 1_025, r"\001" * 2_049, '"' + "x" * 2_000 + '" "' + "y" * 49 + '"']
)
def test_all_strings_together_have_a_limit(content):
    with pytest.raises(ContentTooLong, match=r"20(49|50) octets"):
        parse("TXT", content=content)


def test_octets_beyond_the_limit_are_refused_too():
    with pytest.raises(ContentTooLong):
        from_wire("TXT", (b"\xff" + b"x" * 255) * 9)


def test_quoted_and_bare_text_are_the_same_record():
    assert parse("TXT", content="abc") == parse("TXT", content='"abc"') == TXT((b"abc",))
