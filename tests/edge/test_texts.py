"""What rules see of a request's bytes, and what they may write into one."""

import pytest

from edgestead.edge.tools import texts

PATHS = [
    (b"/", b"/"),
    (b"/a/b.html", b"/a/b.html"),
    (b"/%61dmin", b"/admin"),
    (b"/%41%2d%7E", b"/A-~"),
    (b"/a%2fb%3Fc%23", b"/a%2Fb%3Fc%23"),  # reserved: another path when decoded
    (b"/%2561dmin", b"/%2561dmin"),  # decoded once
    (b"/%zz%6", b"/%zz%6"),
    (b"//a///b", b"/a/b"),
    (b"/a/./b/../c", b"/a/c"),
    (b"/../../etc", b"/etc"),
    (b"/a/..", b"/"),
    (b"/a/b/..", b"/a/"),
    (b"/a/.", b"/a/"),
    (b"/%2e%2e/x", b"/x"),
    (b"/a\\b\\..\\c", b"/a/c"),
    (b"/...", b"/..."),
    (b"*", b"*"),
    (b"", b""),
]


@pytest.mark.parametrize(("sent", "normal"), PATHS)
def test_different_spellings_of_a_path_are_one(sent, normal):
    assert texts.normal_path(sent) == normal
    assert texts.normal_path(normal) == normal


@pytest.mark.parametrize(
    ("path", "extension"),
    [(b"/a/b.HTML", b"html"), (b"/a.b/c", b""), (b"/a.tar.gz", b"gz"), (b"/.", b""), (b"/", b"")],
)
def test_the_extension_is_the_last_segments(path, extension):
    assert texts.extension(path) == extension


def test_pairs_keep_order_spelling_and_repetitions():
    assert texts.pairs(b"a=1&&b&a=%20=2") == [(b"a", b"1"), (b"b", b""), (b"a", b"%20=2")]
    assert texts.grouped(texts.pairs(b"a=1&a=2")) == {b"a": [b"1", b"2"]}
    assert len(texts.pairs(b"a&" * 5_000)) == 1_024


def test_cookies_are_split_at_semicolons():
    assert texts.cookie_pairs(b"a=1; b=2=3;c") == [(b"a", b"1"), (b"b", b"2=3"), (b"c", b"")]


def test_languages_come_in_the_order_of_their_weights():
    header = b"fr-CH, fr;q=0.9, en;q=0.8, de;q=0.95, *;q=x"
    assert texts.languages(header) == [b"fr-CH", b"de", b"fr", b"en", b"*"]
    assert texts.languages(b"") == []


WRITTEN = [
    (texts.safe_path, b"/a b?c#d", b"/a%20b%3Fc%23d"),
    (texts.safe_path, b"a", b"/a"),
    (texts.safe_path, b"/\r\nHost: x", b"/%0D%0AHost:%20x"),
    (texts.safe_path, "/ü".encode(), b"/%C3%BC"),
    (texts.safe_query, b"?a=b c&d=#", b"a=b%20c&d=%23"),
    (
        texts.safe_location,
        b"https://a.test/\r\nSet-Cookie: x=1#f",
        b"https://a.test/%0D%0ASet-Cookie:%20x=1#f",
    ),
    (texts.safe_value, b" a\r\nb\x00c\td ", b"abc\td"),
    (texts.safe_value, "ü".encode(), "ü".encode()),
]


@pytest.mark.parametrize(("write", "computed", "written"), WRITTEN)
def test_what_a_rule_writes_stays_one_message(write, computed, written):
    assert write(computed) == written


def test_what_a_rule_writes_is_cut():
    assert len(texts.safe_path(b"/" + b"a" * 100_000)) == texts.TARGET_OCTETS_MAX
    assert len(texts.safe_value(b"a" * 100_000)) == texts.HEADER_VALUE_OCTETS_MAX
