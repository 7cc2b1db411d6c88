"""What each operator finds in a value, said here, and said by ModSecurity."""

import random

import pytest

from edgestead.crs import tables
from edgestead.waf.terms import libinjection
from edgestead.waf.terms.operators import ABSENT, OPERATORS, make_test, number
from tests.waf import peer

# operator, argument, values it matches, values it does not
VECTORS: list[tuple[str, bytes, list[bytes], list[bytes]]] = [
    ("beginsWith", b"/ad", [b"/ad", b"/admin"], [b"", b"/a", b"x/ad", b"/AD"]),
    ("contains", b"or 1", [b"x or 1=1", b"or 1"], [b"", b"OR 1", b"or"]),
    ("containsWord", b"or", [b"or", b"1 or 2", b"or 2", b"1or"], [b"", b"for", b"order", b"nor x forest"]),
    ("endsWith", b".php", [b".php", b"a.php"], [b"", b".php5", b"php"]),
    ("eq", b"5", [b"5", b"05", b" 5", b"5x", b"+5"], [b"", b"6", b"x5", b"-5"]),
    ("eq", b"0", [b"0", b"", b"x", b"99999999999"], [b"1", b"2147483647"]),
    ("gt", b"4294967296", [b"4294967297", b"9" * 30], [b"4294967296", b"-" + b"9" * 30]),
    ("ge", b"5", [b"5", b"6", b"600"], [b"4", b"", b"-6"]),
    ("gt", b"5", [b"6"], [b"5", b"4", b""]),
    ("le", b"5", [b"5", b"4", b"", b"-9"], [b"6"]),
    ("lt", b"5", [b"4", b"", b"x"], [b"5", b"6"]),
    ("ipMatch", b"192.0.2.0/24,2001:db8::/32", [b"192.0.2.9", b"2001:db8::1"], [b"192.0.3.1", b"::1", b"x"]),
    ("noMatch", b"", [], [b"", b"a"]),
    ("pm", b"sleep bench", [b"SLEEP(1)", b"a bench b"], [b"", b"slee p", b"ben ch"]),
    ("streq", b"a", [b"a"], [b"", b"A", b"aa"]),
    ("strmatch", b"wget", [b"a wget b"], [b"", b"WGET"]),
    ("unconditionalMatch", b"", [b"", b"a"], []),
    ("validateByteRange", b"9,32-126", [b"\x00", b"a\x7f", b"\xff"], [b"", b"a\t~ "]),
    ("validateUrlEncoding", b"", [b"%", b"%4", b"%4g", b"a%zz"], [b"", b"%41", b"a+b"]),
    ("validateUtf8Encoding", b"", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"a\xc3", b"\xf5\x80\x80\x80"],
     [b"", b"abc", "é€😀".encode()]),
    ("verifyCC", rb"\b\d{16}\b", [b"4111111111111111", b"x 4111111111111111 y"], [b"", b"4111111111111112"]),
    ("verifyCPF", rb"\d{11}", [b"52998224725"], [b"52998224724", b"11111111111", b""]),
    ("verifySSN", rb"\d{3}-?\d{2}-?\d{4}", [b"123-45-6788"], [b"666-12-3456", b"111111111", b"123456789"]),
    ("verifySVNR", rb"\d{10}", [b"1237010180"], [b"1238010180", b"0000000000", b""]),
    ("within", b"GET POST", [b"GET", b"ET P", b""], [b"get", b"PUT"]),
    ("detectSQLi", b"", [b"1' or '1'='1", b"1 union select 1,2 -- "], [b"", b"plain words", b"42"]),
    ("detectXSS", b"", [b"<script>alert(1)</script>", b"<a onclick=x>"], [b"", b"plain words", b"a < b"]),
]  # fmt: skip
REFUSED = [
    ("validateByteRange", b"1-256"),
    ("validateByteRange", b"9-1"),
    ("validateByteRange", b"x"),
    ("ipMatch", b"300.1.1.1"),
    ("verifyCC", b"("),
]
PIECES = rb"""5 -5 05 x or 1 = ' <a onclick= > GET POST % 41 %4 / /ad admin .php sleep bench
SELECT 77777777777 union -- /* 192.0.2.1 192.0.2. ::1 2001:db8::2 4111111111111111 52998224725 1237010180
123-45-6788 only + ."""
ROUNDS = 250


def made(name: str, argument: bytes):  # type: ignore[no-untyped-def]
    return make_test(name, argument, argument.split() if name == "pm" else ())


def test_every_operator_of_the_language_is_there() -> None:
    assert OPERATORS == set(tables.OPERATORS.values()) - {"rx", "rxGlobal"}
    assert OPERATORS - set(ABSENT) == {row[0] for row in VECTORS} | {"pmFromFile", "ipMatchFromFile"}


@pytest.mark.parametrize(("name", "argument", "yes", "no"), VECTORS)
def test_it_matches_these_and_not_those(
    name: str, argument: bytes, yes: list[bytes], no: list[bytes]
) -> None:
    test = made(name, argument)

    assert [value for value in yes if test(value) is None] == []
    assert [value for value in no if test(value) is not None] == []


@pytest.mark.parametrize(("name", "argument", "yes", "no"), VECTORS)
def test_modsecurity_agrees(name: str, argument: bytes, yes: list[bytes], no: list[bytes]) -> None:
    witness = peer.matcher(f"@{name} {argument.decode()}".rstrip())
    test, chance = made(name, argument), random.Random(name)
    pieces = [*PIECES.split(), b" ", b"\0", b"\xc3\xa9", b"\xff", b"\x7f"]
    mixed = [b"".join(chance.choices(pieces, k=chance.randint(1, 5))) for _ in range(ROUNDS)]
    for value in (*yes, *no, *mixed):
        if value:  # an empty body is no body
            assert (value, peer.matches(witness, value)) == (value, test(value) is not None)


def test_phrases_of_a_file_are_looked_for_as_those_of_pm() -> None:
    test = make_test("pmFromFile", b"words.data", [b"/etc/passwd", b".htaccess", b"a(b|c)*"])

    assert test(b"cat /ETC/passwd") == b"/ETC/passwd"
    assert test(b"A(B|C)*") == b"A(B|C)*"
    assert test(b"/etc/pass wd") is None


def test_networks_of_a_file_are_looked_for_as_those_of_ip_match() -> None:
    test = make_test("ipMatchFromFile", b"bad.data", [b"198.51.100.0/24", b"2001:db8::1"])

    assert test(b"198.51.100.7") == b"198.51.100.7"
    assert test(b"2001:db8::1") == b"2001:db8::1"
    assert test(b"2001:db8::2") is None


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_has_nothing_to_look_into_never_matches_and_says_why(name: str) -> None:
    assert (make_test(name, b"x")(b"192.0.2.1"), bool(ABSENT[name])) == (None, True)


@pytest.mark.parametrize(("name", "argument"), REFUSED)
def test_an_argument_that_cannot_be_is_refused(name: str, argument: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        make_test(name, argument)


def test_numbers_are_read_as_far_as_they_go() -> None:
    texts = [b"", b"12", b" -12", b"12abc", b"abc", b"2147483648", b"0" * 5_000 + b"7", b"9" * 5_000]

    assert [number(text) for text in texts] == [0, 12, -12, 12, 0, 2147483648, 7, (1 << 63) - 1]


def test_without_the_library_the_detectors_are_off_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libinjection.state() == ""

    monkeypatch.setattr(libinjection, "_library", lambda: None)

    assert libinjection.sql_injection(b"1' or '1'='1") is None
    assert libinjection.cross_site_scripting(b"<script>") is None
    assert "apt install libmodsecurity3" in libinjection.state()
