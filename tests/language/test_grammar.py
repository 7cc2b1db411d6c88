"""What an expression means, and where a wrong one is wrong."""

from collections.abc import Callable

import pytest

from edgestead.language import FilterError, compile_filter, compile_value

from .conftest import FILTERS

TRUE = [
    "true",
    "not false",
    "(true)",
    "ssl",
    'http.host == "www.Example.com"',
    'http.host eq r"www.Example.com"',
    "http.request.method eq 50:4f-53.54",
    r'http.host eq "www.\x45xample\056com"',
    r'http.host ne "a\"b\\c"',
    'http.host ne r##"a"#b"##',
    'http.host contains "Example"',
    'http.host > "www.E"',
    'http.host lt "x"',
    'http.host in {"a" "www.Example.com" r"c" 61:62}',
    'http.host wildcard "WWW.*.COM"',
    'http.host strict wildcard "www.*.com"',
    'http.host strict  wildcard "*"',
    r'http.host ne r"a\*b" and http.request.uri.path wildcard r"/*/*.php"',
    'http.request.uri.path matches "^/shop/.*\\.php$"',
    'http.request.uri.path ~ "cart"',
    'http.request.uri.path ~ r"\\.(php|asp)$"',
    'not http.host matches "[\\"]"',
    "ip.src == 192.0.2.77",
    "ip.src != ::1",
    "ip.src in {198.51.100.0/24 192.0.2.70..192.0.2.80 2001:db8::/32}",
    "not ip.src in {10.0.0.0/8 ::/0}",
    "ip.src.asnum == 0xFBF4",
    "ip.src.asnum eq 0175764",
    "ip.src.asnum gt -1 and ip.src.asnum <= 64500 and ip.src.asnum ge 64500",
    "ip.src.asnum in {1 64000..65000 7}",
    "ip.src.asnum & 4",
    "not ip.src.asnum bitwise_and 3",
    'any(http.request.headers["accept"][*] == "*/*")',
    'all(http.request.headers["accept"][*] contains "/")',
    'http.request.headers["accept"][0] eq "text/html"',
    'any(http.request.headers[*][*] == "aGk=")',
    'any(not http.request.uri.args.names[*] == "item")',
    'any(http.request.uri.args["item"][*] > "7" and http.request.uri.args["item"][*] < "9")',
    'any(http.request.body.multipart.filenames[*][0] == "b.php")',
    'any(http.request.body.multipart.filenames[*][*] == "c.php")',
    'not any(http.request.body.multipart.filenames[*][1] == "b.php")',
    'any(lower(http.request.headers.names[*])[*] == "x-token")',
    'any(starts_with(http.request.headers.names[*], "X-"))',
    # precedence: not, and, xor, or
    "true or true and false",
    "not false or true",
    "true xor true or true",
    "not (true xor true and true)",
    "false or not false and true",
    "!false&&true||false",
    "true^^false",
    " \r\n true \n and\n\ntrue ",
]
FALSE = [
    "false",
    "not ssl",
    'http.host == "www.example.com"',
    'http.host strict wildcard "WWW.*"',
    'http.host wildcard "www"',
    "http.host in {}",
    "ip.src in {192.0.2.0..192.0.2.76 192.0.2.78}",
    "true xor true",
    "true xor true xor false",
    "(true or true) and false",
    'all(http.request.headers["accept"][*] == "*/*")',
    'not any(http.request.uri.args.names[*] == "item") or false',
]


@pytest.mark.parametrize("text", TRUE)
def test_it_holds(holds: Callable[[str], bool], text: str) -> None:
    assert holds(text) is True


@pytest.mark.parametrize("text", FALSE)
def test_it_does_not_hold(holds: Callable[[str], bool], text: str) -> None:
    assert holds(text) is False


# text, (line, column, how many characters are marked), reason
BAD = [
    ('http.hots eq "a"', (1, 1, 9), "unknown identifier"),
    ("Ssl", (1, 1, 3), "unknown identifier"),
    ("ssl and xyz", (1, 9, 3), "unknown identifier"),
    ("ssl and\n  xyz", (2, 3, 3), "unknown identifier"),
    ("  xyz\nor ssl", (1, 3, 3), "unknown identifier"),
    ("\tssl", (1, 1, 4), "expected identifier character"),
    ("ssl and", (1, 8, 1), "expected identifier character"),
    ("http..host", (1, 6, 5), "expected identifier character"),
    ('"a" == http.host', (1, 1, 16), "expected identifier character"),
    ("ssl ssl", (1, 4, 4), "unrecognised input"),
    ("ssl AND ssl", (1, 4, 8), "unrecognised input"),
    ("ssl eq true", (1, 4, 8), "unrecognised input"),
    ("ssl in {0}", (1, 4, 7), "unrecognised input"),
    ('http.host eq "a")', (1, 17, 1), "unrecognised input"),
    ("(ssl", (1, 5, 1), 'expected literal ")"'),
    ("http.host", (1, 10, 1), "expected ComparisonOp"),
    ("http.host = 1", (1, 11, 3), "expected ComparisonOp"),
    ('http.host EQ "a"', (1, 11, 6), "expected ComparisonOp"),
    ("http.host strict", (1, 11, 6), "expected ComparisonOp"),
    ("http.host & 5", (1, 11, 1), "cannot perform this operation on type Bytes"),
    ("ip.src lt 1.2.3.4", (1, 8, 2), "cannot perform this operation on type Ip"),
    ("ip.src contains 1.2.3.4", (1, 8, 8), "cannot perform this operation on type Ip"),
    ('ip.src.asnum matches "1"', (1, 14, 7), "cannot perform this operation on type Int"),
    ('http.request.headers == "a"', (1, 22, 2), "cannot perform this operation on type Map<Array<Bytes>>"),
    ("http.host eq 'a'", (1, 14, 2), "invalid digit for a byte of radix 16"),
    ("http.host eq 61", (1, 16, 1), "expected byte separator"),
    ("http.host eq 61:6", (1, 17, 1), "expected 2 characters, but found 1"),
    ("http.host eq", (1, 13, 1), "unrecognised input"),
    ('http.host eq "abc', (1, 15, 3), "could not find an ending quote"),
    ('http.host eq "abc\\', (1, 15, 4), "could not find an ending quote"),
    ('http.host eq r#"abc"', (1, 15, 6), "could not find an ending quote"),
    ("http.host eq r#abc#", (1, 16, 4), 'expected " or #'),
    ('http.host eq "a\\d"', (1, 17, 1), 'expected ", xHH or OOO after \\'),
    ('http.host eq "\\xZZ"', (1, 17, 2), "invalid digit for a byte of radix 16"),
    ('http.host eq "\\777"', (1, 16, 3), "invalid digit for a byte of radix 8"),
    ('http.host wildcard "a**b"', (1, 20, 6), "wildcard contains a double star"),
    ('http.host wildcard r"a\\b"', (1, 20, 6), "invalid wildcard: expected * or \\ after \\"),
    ("http.host wildcard 61:62", (1, 20, 5), 'expected " or r'),
    ('http.host ~ "(a"', (1, 13, 4), "regex parse error: missing ): (a"),
    ('http.host ~ "(?=a)"', (1, 13, 7), "regex parse error: invalid perl operator: (?="),
    ('http.host ~ "[a"', (1, 14, 3), "could not find an ending quote"),
    ("ip.src == 1.2.3", (1, 11, 5), "invalid IP address"),
    ("ip.src == 1.2.3.0/24", (1, 11, 10), "invalid IP address"),
    ('ip.src in {"1.2.3.4"}', (1, 12, 10), "expected IP address character"),
    ("ip.src in {1.2.3.4, 1.2.3.5}", (1, 19, 1), "items of a set are separated by blanks"),
    ("ip.src.asnum in {1, 2}", (1, 19, 1), "items of a set are separated by blanks"),
    ('http.host in {"a" , "b"}', (1, 19, 1), "items of a set are separated by blanks"),
    ("ip.src in {1.2.3.4/24}", (1, 12, 7), "host bits of the network must be zero"),
    ("ip.src in {1.2.3.0/33}", (1, 20, 2), "network length must be 0 to 32"),
    ("ip.src in {1.2.3.0/255.255.255.0}", (1, 20, 13), "network length must be 0 to 32"),
    ("ip.src in {1.2.3.4..1.2.3.3}", (1, 12, 16), "incompatible range bounds"),
    ("ip.src in {1.2.3.4..::1}", (1, 12, 12), "incompatible range bounds"),
    ("ip.src in {1.2.3.4", (1, 19, 1), "expected IP address character"),
    ("ip.src in 1.2.3.4", (1, 11, 7), 'expected literal "{"'),
    ("ip.src.asnum in {5..2}", (1, 18, 4), "incompatible range bounds"),
    ("ip.src.asnum eq 08", (1, 17, 2), "invalid digit for a number of radix 8"),
    ("ip.src.asnum eq 12ab", (1, 17, 4), "invalid digit for a number of radix 10"),
    ("ip.src.asnum eq 9223372036854775808", (1, 17, 19), "number does not fit into 64 bits"),
    ('ip.src.asnum eq "1"', (1, 17, 3), "expected digit"),
    ("ip.src in $Bad", (1, 11, 1), 'invalid list name ""'),
    ("ip.src in $.bad.", (1, 11, 6), 'invalid list name ".bad."'),
    ("http.host[0] eq \"a\"", (1, 10, 3), "cannot access index [0] for type Bytes"),
    ('http.request.headers[0][0] == "a"', (1, 21, 3), "cannot access index [0] for type Map<Array<Bytes>>"),
    ('http.request.headers["a"]["b"] == "a"', (1, 26, 5), 'cannot access index ["b"] for type Array<Bytes>'),
    ('http.request.headers["a"][-1] == "a"', (1, 27, 10), "expected quoted string or positive integer"),
    ('http.request.headers["a"][0 == "a"', (1, 29, 6), 'expected literal "]"'),
    ('http.request.headers["a"][*] == "a"', (1, 1, 35), "expected value of type Bool, but got Array<Bool>"),
    ('any(http.host == "a")', (1, 5, 16), "expected value of type Array<Bool>, but got Bool"),
    (
        'ssl and http.request.headers["a"][*] == "a"',
        (1, 9, 35),
        "expected value of type Bool, but got Array<Bool>",
    ),
    ("lower(http.host, http.host) eq \"a\"", (1, 18, 17), "invalid number of arguments"),
    ('lower() eq "a"', (1, 7, 8), "invalid number of arguments"),
    ('concat(1) eq "a"', (1, 8, 1),
     "invalid type of argument #0: expected value of type Bytes or Array<_>, but got Int"),
    ('starts_with("a", "b")', (1, 13, 3),
     "invalid kind of argument #0: expected argument of kind Field, but got Literal"),
    ("cidr(ip.src, 33, 1) == 1.2.3.4", (1, 14, 2), "invalid value of argument #1: expected 1 to 32"),
    (
        'any(concat("a", http.request.headers.names[*])[*] == "a")',
        (1, 17, 29),
        "invalid use of map each access operator",
    ),
    ('http.host eq "\ud800"', (1, 15, 1), "unrecognised input"),
    (" ", (1, 1, 1), "the expression cannot be blank"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "reason"), BAD, ids=[text for text, _, _ in BAD])
def test_it_is_refused_at_the_right_place(text: str, place: tuple[int, int, int], reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text, FILTERS)

    error = caught.value
    assert (error.line, error.column, error.length) == place
    assert error.reason == reason


def test_the_refusal_shows_the_line_with_carets() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter('ssl and\nhttp.hots eq "a" and\nssl', FILTERS)

    assert str(caught.value) == (
        'Filter parsing error (2:1):\nhttp.hots eq "a" and\n'
        "^^^^^^^^^ unknown identifier\ndid you mean http.host?"
    )


def test_a_refusal_without_a_hint_ends_with_its_reason() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter("zzzzzzzz", FILTERS)

    assert str(caught.value) == "Filter parsing error (1:1):\nzzzzzzzz\n^^^^^^^^ unknown identifier"


def test_a_phase_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(KeyError):
        compile_filter("true", "http_request_nowhere")


def test_the_fields_a_filter_can_look_at_are_known() -> None:
    text = 'ip.geoip.country eq "DE" or any(concat(http.request.headers["a"][*], http.host)[*] == "b")'

    assert compile_filter(text, FILTERS).fields == {"ip.src.country", "http.request.headers", "http.host"}
    assert compile_value("concat(http.host, http.request.uri.path)", FILTERS).fields == {
        "http.host",
        "http.request.uri.path",
    }
