"""What each function computes, where it is available, and which constants it refuses."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import quote

import pytest

from edgestead.language import FUNCTIONS, FilterError, compile_filter, compile_value, fixed_view
from edgestead.language.library import URL_DECODE_ROUNDS_MAX
from edgestead.language.types import VALUE_BYTES_MAX

from .conftest import FILTERS, VALUES

MADE = [
    ("lower(http.host)", b"www.example.com"),
    ("upper(http.host)", b"WWW.EXAMPLE.COM"),
    ("substring(http.host, 4)", b"Example.com"),
    ("substring(http.host, -3)", b"com"),
    ("substring(http.host, 4, -4)", b"Example"),
    ("substring(http.host, 9, 2)", b""),
    ('concat("https://", http.host, http.request.uri.path)', b"https://www.Example.com/shop/cart.php"),
    ('join(http.request.uri.args.names, ",")', b"item,colour,item"),
    ('join(concat(http.request.uri.args["item"], http.request.headers["accept"]), ";")',
     b"7;8;text/html;*/*"),
    ('split(http.request.uri.query, "&", 128)[1]', b"colour=red"),
    ('split(http.request.uri.query, "&", 2)[1]', b"colour=red&item=8"),
    ('remove_bytes(http.host, "w.\\x6d")', b"Exapleco"),
    ('decode_base64(http.request.headers["x-token"][0])', b"hi"),
    ('encode_base64("hi")', b"aGk"),
    ('encode_base64("hi", "p")', b"aGk="),
    ('encode_base64("\\xff\\xfe\\xfd", "u")', b"__79"),
    ("encode_base64(sha256(http.request.method))",
     base64.b64encode(hashlib.sha256(b"POST").digest()).rstrip(b"=")),
    ('lookup_json_string(http.request.body.raw, "order", "lines", 0, "sku")', b"a-1"),
    ('to_string(lookup_json_integer(http.request.body.raw, "order", "lines", 0, "n"))', b"2"),
    ("to_string(cidr(ip.src, 24, 64))", b"192.0.2.0"),
    ("to_string(cidr6(ip.src, 64))", b"192.0.2.77"),
    ("to_string(ssl)", b"true"),
    ("to_string(len(http.request.uri.args.names))", b"3"),
    ('regex_replace(http.request.uri.path, "^/([a-z]+)/(.*)[.]php$", "/${2}/${1}$$")', b"/cart/shop$"),
    ('regex_replace(http.request.uri.path, "\\.php", "")', b"/shop/cart"),
    ('regex_replace(http.request.uri.path, "/", "-")', b"-shop/cart.php"),
    ('regex_replace(http.request.uri.path, "x(y)?", "")', b"/shop/cart.php"),
    ('regex_replace(http.request.uri.path, "(x)?/shop", "${1}")', b"/cart.php"),
    ('wildcard_replace(http.request.full_uri, "https://*.EXAMPLE.com/*/*", "http://e.com/${1}/${3}")',
     b"http://e.com/www/cart.php?item=7&colour=red&item=8"),
    ('wildcard_replace(http.request.uri.path, "/SHOP/*", "/s/${1}", "s")', b"/shop/cart.php"),
    ('wildcard_replace(http.request.uri.path, "/SHOP/cart.php", "/basket")', b"/basket"),
    ('remove_query_args(http.request.uri.query, "item")', b"colour=red"),
    ('remove_query_args(http.request.uri.query, "nope", "colour")', b"item=7&item=8"),
    ("uuidv4(cf.random_seed)", b"00010203-0405-4607-8809-0a0b0c0d0e0f"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MADE, ids=[text for text, _ in MADE])
def test_it_makes(value_of: Callable[[str], object], text: str, expected: bytes) -> None:
    assert value_of(text) == expected


TRUE = [
    'starts_with(http.request.uri.path, "/shop")',
    'ends_with(lower(http.host), "example.com")',
    "len(http.host) == 15",
    "len(http.request.headers.names) == 2",
    'has_key(http.request.headers, "accept")',
    'not has_key(http.request.headers, "Accept")',
    'has_value(http.request.headers.names, "Accept")',
    'has_value(http.request.headers["accept"], "*/*")',
    "is_ipv4(ip.src) and not is_ipv6(ip.src)",
    "cidr(ip.src, 8, 1) == 192.0.0.0",
    'any(url_decode(http.request.headers["accept"][*])[*] == "text/html")',
    "any(len(http.request.headers.names[*])[*] gt 6)",
]


@pytest.mark.parametrize("text", TRUE)
def test_it_holds(holds: Callable[[str], bool], text: str) -> None:
    assert holds(text) is True


URLS = [
    (b"John%20Doe+%2520%", "", b"John Doe %20%"),
    (b"%252520", "r", b" "),
    (b"%u2601%u00e9%uZZ", "u", "☁é%uZZ".encode()),
    (b"%25u2601", "ur", "☁".encode()),
]


@pytest.mark.parametrize(("raw", "options", "decoded"), URLS)
def test_url_decoding(raw: bytes, options: str, decoded: bytes) -> None:
    url_decode = compile_value(f'url_decode(http.host, "{options}")', VALUES)

    assert url_decode(fixed_view({"http.host": raw})) == decoded


def test_recursive_url_decoding_ends() -> None:
    url_decode = compile_value('url_decode(http.host, "r")', VALUES)

    assert url_decode(fixed_view({"http.host": b"%" + b"25" * 100})) == b"%" + b"25" * (
        100 - URL_DECODE_ROUNDS_MAX
    )


def _mac(message: bytes, timestamp: int) -> bytes:
    return base64.b64encode(hmac.digest(b"key", message + b"%d" % timestamp, "sha256"))


STAMP = 1_700_000_000
PLAIN = b"/cat.jpg?verify=%d-" % STAMP + quote(_mac(b"/cat.jpg", STAMP), safe="").encode()
URL_SAFE = b"/cat.jpg%d-" % STAMP + _mac(b"/cat.jpg", STAMP).translate(bytes.maketrans(b"+/", b"-_")).rstrip(
    b"="
)
HMACS = [
    (PLAIN, '"key", http.request.uri, 60, http.request.timestamp.sec, 8', STAMP + 59, True),
    (PLAIN, '"key", http.request.uri, 60, http.request.timestamp.sec, 8', STAMP + 60, False),
    (PLAIN, '"kez", http.request.uri, 60, http.request.timestamp.sec, 8', STAMP, False),
    (PLAIN, '"key", http.request.uri, 60, http.request.timestamp.sec', STAMP, False),
    (
        PLAIN.replace(b"cat", b"dog"),
        '"key", http.request.uri, 60, http.request.timestamp.sec, 8',
        STAMP,
        False,
    ),
    (URL_SAFE, '"key", http.request.uri, 60, http.request.timestamp.sec, 0, "s"', STAMP, True),
    (URL_SAFE[:-1], '"key", http.request.uri, 60, http.request.timestamp.sec, 0, "s"', STAMP, False),
    (b"", '"key", http.request.uri, 60, http.request.timestamp.sec', STAMP, False),
    (b"-", '"key", http.request.uri, 60, http.request.timestamp.sec, 0, "s"', STAMP, False),
]


@pytest.mark.parametrize(("uri", "arguments", "now", "valid"), HMACS)
def test_a_timed_hmac_holds_for_its_key_message_and_time(
    uri: bytes, arguments: str, now: int, valid: bool
) -> None:
    check = compile_filter(f"is_timed_hmac_valid_v0({arguments})", FILTERS)

    assert check(fixed_view({"http.request.uri": uri, "http.request.timestamp.sec": now})) is valid


BODIES = [b"{", b"[" * 100_000, b'{"a": 1.0}', b'{"a": true}', b'{"a": null}', b"[1]", b'{"a": "\xff"}', b""]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_json_document_without_that_integer_is_a_missing_value(body: bytes) -> None:
    lookup = compile_value('to_string(lookup_json_integer(http.request.body.raw, "a"))', VALUES)

    assert lookup(fixed_view({"http.request.body.raw": body})) is None


BAD = [
    ('regex_replace(http.host, "(a", "b")', "invalid arguments: regex parse error: missing ): (a"),
    ('regex_replace(http.host, "a", "${1}")', "invalid arguments: there is no group 1"),
    ('regex_replace(http.host, "a", "$1")', "invalid arguments: expected ${1} to ${8} or $$ after $"),
    ('concat(regex_replace(http.host, "a", ""), wildcard_replace(http.host, "*", ""))',
     "wildcard_replace() may only be used once"),
    ('wildcard_replace(http.host, "**", "")', "invalid arguments: wildcard contains a double star"),
    ('wildcard_replace("a", "*", "")',
     "invalid kind of argument #0: expected argument of kind Field, but got Literal"),
    ('wildcard_replace(http.host, "*", "", "i")', "invalid value of argument #3: expected letters of 's'"),
    ('url_decode(http.host, "x")', "invalid value of argument #1: expected letters of 'ru'"),
    ('split(http.host, ",", 129)[0]', "invalid value of argument #2: expected 1 to 128"),
    ('split(http.host, "", 1)[0]', "invalid value of argument #1: expected a non-empty string"),
    ("remove_query_args(http.host, \"a\")",
     "invalid arguments: expected http.request.uri.query or raw.http.request.uri.query"),
    ("http.request.timestamp.sec", "expected value of type Bytes, but got Int"),
    ("http.request.uri.args.names[*]", "expected value of type Bytes, but got Array<Bytes>"),
    ('concat("a", http.request.uri.args.names)',
     "invalid type of argument #1: expected value of type Bytes, but got Array<Bytes>"),
    ('http.host eq "a"', "unrecognised input"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD, ids=[text for text, _ in BAD])
def test_a_value_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_value(text, VALUES)

    assert caught.value.reason == reason


NOT_HERE = [
    (
        'regex_replace(http.host, "a", "b") eq "c"',
        "regex_replace() works in the values of rewrites and redirects only",
    ),
    ('split(http.host, ",", 2)[0] eq "c"', "split() works in these phases only: http_custom_errors, "),
    ("http.response.code eq 3", "http.response.code exists in response phases only"),
]


@pytest.mark.parametrize(("text", "hint"), NOT_HERE, ids=[text for text, _ in NOT_HERE])
def test_what_is_not_available_here_is_unknown_and_says_where_it_is(text: str, hint: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, FILTERS)

    assert caught.value.reason == "unknown identifier"
    assert caught.value.hint.startswith(hint)


def test_what_a_function_makes_is_cut() -> None:
    view = fixed_view({"http.host": b"a" * VALUE_BYTES_MAX})

    for text in (
        "concat(http.host, http.host)",
        'regex_replace(http.host, "(a*)", "${1}${1}")',
        'wildcard_replace(http.host, "*", "${1}${1}")',
        "encode_base64(http.host)",
    ):
        assert len(compile_value(text, VALUES)(view)) == VALUE_BYTES_MAX


def test_every_function_is_described() -> None:
    assert all(row.parameters and name == row.name for name, row in FUNCTIONS.items())
