"""Long strings of a bulk body, decoded in pieces: as if they were whole."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgestead.model.jsonpieces import octets_of, text_of

BAD_STRINGS = (
    rb"\x",
    rb"\u12",
    rb"\u12g4",
    rb"\ud800",
    rb"\ud800\u0041",
    rb"\udc00",
    rb"\ud800" + b"x" * 40,
    rb"\u" + b"z" * 40,
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"a\nb",
    b"\\",
)
BAD_BASE64 = (b"AAH", b"AA-_", b"AAH/\n", b"AA==AA==", b"AA==AAAA", "é".encode(), b"A===", b"=AAA", b"A")


def cut(raw, length):
    return (raw[at : at + length] for at in range(0, len(raw), length))


@given(st.text(), st.booleans(), st.integers(1, 30))
def test_a_string_in_pieces_is_the_string(text, ascii_, length):
    text = text.encode("utf-8", "ignore").decode()  # no half surrogates
    raw = json.dumps(text, ensure_ascii=ascii_).encode()[1:-1]

    assert b"".join(text_of(cut(raw, length))) == text.encode()


@given(st.text('\\u0dD8cC9"nx/é', max_size=30).map(str.encode), st.integers(1, 14))
def test_pieces_are_refused_as_the_whole_is(raw, length):
    try:
        expected = msgspec.json.decode(b'"' + raw + b'"', type=str).encode()
    except msgspec.DecodeError:
        expected = None

    if b'"' in raw.replace(b"\\\\", b"").replace(b'\\"', b""):
        return  # the string would end there
    try:
        found = b"".join(text_of(cut(raw, length)))
    except msgspec.DecodeError:
        found = None
    assert found == expected


@pytest.mark.parametrize("length", [1, 3, 7, 1_000])
@pytest.mark.parametrize("raw", BAD_STRINGS)
def test_what_is_no_string_is_refused(raw, length):
    with pytest.raises((msgspec.DecodeError, UnicodeError)):
        b"".join(text_of(cut(b"xx" + raw, length)))


@given(st.binary(), st.integers(1, 30))
def test_base64_in_pieces_is_decoded(octets, length):
    assert b"".join(octets_of(cut(base64.b64encode(octets), length))) == octets


@pytest.mark.parametrize("length", [1, 2, 4, 1_000])
@pytest.mark.parametrize("text", BAD_BASE64)
def test_what_is_no_base64_is_refused(text, length):
    with pytest.raises(ValueError):  # noqa: PT011 - any of them
        b"".join(octets_of(cut(b"AAAA" + text, length)))
