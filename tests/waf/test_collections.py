"""What rules see of a request, said here, and said by ModSecurity."""

import json
from collections import Counter
from random import Random

import pytest

from edgestead.crs import tables
from edgestead.waf import limits
from edgestead.waf.bodies.charsets import CHARSETS_MAX
from edgestead.waf.limits import at_once
from edgestead.waf.run import collections
from edgestead.waf.transaction import Header, Refused, Request, Response, Values
from tests.waf import peer, random_bodies

FORM, JSON, XML = b"application/x-www-form-urlencoded", b"application/json", b"text/xml"
MULTIPART = b"multipart/form-data; boundary=XyZ"
# Everything that both compute from a request. The times, the ports and the id are the test's own.
COMPARED = """
ARGS ARGS_COMBINED_SIZE ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES AUTH_TYPE
FILES FILES_COMBINED_SIZE FILES_NAMES FILES_SIZES MULTIPART_BOUNDARY_QUOTED MULTIPART_BOUNDARY_WHITESPACE
MULTIPART_CRLF_LF_LINES MULTIPART_DATA_AFTER MULTIPART_DATA_BEFORE MULTIPART_FILENAME MULTIPART_HEADER_FOLDING
MULTIPART_INVALID_HEADER_FOLDING MULTIPART_INVALID_PART MULTIPART_INVALID_QUOTING MULTIPART_LF_LINE
MULTIPART_MISSING_SEMICOLON MULTIPART_NAME MULTIPART_PART_HEADERS MULTIPART_STRICT_ERROR
MULTIPART_UNMATCHED_BOUNDARY PATH_INFO QUERY_STRING REMOTE_ADDR REMOTE_HOST REQBODY_PROCESSOR REQUEST_BASENAME
REQUEST_BODY_LENGTH REQUEST_COOKIES REQUEST_COOKIES_NAMES REQUEST_FILENAME REQUEST_HEADERS
REQUEST_HEADERS_NAMES REQUEST_LINE REQUEST_METHOD REQUEST_PROTOCOL REQUEST_URI REQUEST_URI_RAW SERVER_ADDR
SERVER_NAME SERVER_PORT XML:/* XML://@*""".split()
ROUNDS = 400
REFUSED_FLAGS = "CRLF_LF_LINES DATA_AFTER HEADER_FOLDING INVALID_PART".split()
# Boundaries where none may be; it flags them as others than ours.
REFUSED_SIGNS = (b"x--XyZ", b"---XyZ", b"--XyZ---", b" --XyZ", b"\r--XyZ")


def request(
    target: bytes = b"/",
    body: bytes = b"",
    kind: bytes = b"",
    headers: tuple[Header, ...] = (),
    body_complete: bool = True,
) -> Request:
    return Request(
        method=b"POST",
        target=target,
        headers=headers + (((b"Content-Type", kind),) if kind else ()),
        body=body,
        body_complete=body_complete,
        client_address="192.0.2.1",
        server_address="192.0.2.2",
        unique_id="abc",
    )


def values(one: Request, force: bool = False) -> Values:
    found = at_once(collections.request_values(one))
    at_once(collections.add_body(found, one, found["REQBODY_PROCESSOR"][0][1].decode(), force))
    return found


def refusal(one: Request) -> tuple[str, int]:
    with pytest.raises(Refused) as caught:
        values(one)
    return caught.value.reason, caught.value.status


# name of a variable, target, what it holds
TARGETS = [
    ("REQUEST_URI", b"/a%20b?c=%41#d", [b"/a b?c=A"]),
    ("REQUEST_URI", b"http://host/a?b", [b"/a?b"]),
    ("REQUEST_URI_RAW", b"/a%20b?c=%41#d", [b"/a%20b?c=%41#d"]),
    ("REQUEST_FILENAME", b"/a%20b/c.php?d", [b"/a b/c.php"]),
    ("REQUEST_BASENAME", b"/a/b%5cc.php?d/e", [b"c.php"]),
    ("REQUEST_BASENAME", b"/", [b""]),
    ("QUERY_STRING", b"/?a=%41&b#c", [b"a=%41&b"]),
    ("QUERY_STRING", b"/", [b""]),
    ("REQUEST_LINE", b"/a", [b"POST /a HTTP/1.1"]),
    ("ARGS_GET", b"/?a=1&b&=c&&d=e=f&g=%26+", [b"1", b"", b"c", b"", b"e=f", b"& "]),
    ("ARGS_NAMES", b"/?a+b=1&%63=2", [b"a b", b"c"]),
    ("ARGS_COMBINED_SIZE", b"/?ab=cde&f=", [b"6"]),
    ("URLENCODED_ERROR", b"/?a=%zz", [b"1"]),
    ("URLENCODED_ERROR", b"/?a=%20", [b"0"]),
]


@pytest.mark.parametrize(("name", "target", "expected"), TARGETS)
def test_the_target_is_read_as(name: str, target: bytes, expected: list[bytes]) -> None:
    assert expected == [value for _, value in values(request(target))[name]]


COOKIES = [
    (b"a=1; b=2", [(b"a", b"1"), (b"b", b"2")]),
    (b" a=1;b;;=c; d=e=f ", [(b"a", b"1"), (b"b", b""), (b"d", b"e=f")]),
    (b'a="1; 2"', [(b"a", b'"1'), (b'2"', b"")]),
    (rb'a="1\047 \"\125"; b=\047', [(b"a", rb'"1\047 \"\125"'), (b"a", b'"1\' "U"'), (b"b", rb"\047")]),
    (b"", []),
]


@pytest.mark.parametrize(("header", "expected"), COOKIES)
def test_cookies_are_read_as(header: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    found = values(request(headers=((b"cookie", header), (b"Cookie", b"z=9"))))

    assert found["REQUEST_COOKIES"] == [*expected, (b"z", b"9")]
    assert found["REQUEST_COOKIES_NAMES"] == [(name, name) for name, _ in found["REQUEST_COOKIES"]]


def test_every_variable_with_one_value_is_there_from_the_start() -> None:
    found = at_once(collections.request_values(request()))
    engine = {"DURATION", "HIGHEST_SEVERITY", "MATCHED_VAR", "MATCHED_VAR_NAME"}
    sets = {"MULTIPART_FILENAME", "MULTIPART_NAME", "REMOTE_USER"}

    assert set(tables.SINGLE_VARIABLES.values()) - set(found) == engine | sets
    assert all(len(pairs) == 1 for name, pairs in found.items() if name in tables.SINGLE_VARIABLES.values())


BODIES = [
    (FORM, b"a=1&b=%41+c", {"ARGS_POST": [b"1", b"A c"], "REQUEST_BODY": [b"a=1&b=%41+c"]}),
    (JSON, b'{"a": [1.50, {"b": null}], "a": "\\u00e9", "": true}',
     {"ARGS_NAMES": [b"json.a.array_0", b"json.a.array_1.b", b"json.a", b"json.empty-key"],
      "ARGS": [b"1.50", b"", b"\xc3\xa9", b"true"], "ARGS_POST": [], "REQUEST_BODY": [b""]}),
    (b"application/problem+json; charset=utf-8", b"[[7]]", {"ARGS_NAMES": [b"json.array_0.array_0"]}),
    (JSON, b'"\\ud800"', {"ARGS": [b"?"], "ARGS_NAMES": [b"json"]}),
    (XML, b'<a b="1" xmlns="u">t<c d="&#39;2">u</c><![CDATA[<v>]]></a>',
     {"XML": [b"tu<v>", b"t", b"u", b"<v>", b"1", b"'2"]}),
    (XML, b"<a xmlnsid='1' xmlns:b='u'>\n <b>7</b>\n</a>", {"XML": [b"\n 7\n", b"1"]}),
    (b"application/soap+xml", b"<!DOCTYPE a [<!ELEMENT a ANY>]><a/>", {"XML": [b""]}),
    (b"application/octet-stream", b"a=1&b=2", {"ARGS": [], "REQUEST_BODY": [b"a=1&b=2"]}),
    (b"", b"a=%31", {"ARGS": [b"1"], "REQUEST_BODY": [b"a=%31"]}),
    (b"application/x_y+json", b"[1]", {"ARGS": [b"1"]}),
    (b"application/a+b+json", b"[1]", {"ARGS": [b"1"]}),
    (b"application/jsonx", b"{", {"ARGS": [], "REQUEST_BODY": [b"{"]}),
    (MULTIPART,
     b'--XyZ\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\ntwo\r\n'
     b'--XyZ\r\nContent-Disposition: form-data; name="f"; filename="x.php"\r\nContent-Type: t\r\n\r\n'
     b"\0\xff\r\n"
     b"--XyZ--\r\n",
     {"ARGS_POST": [b"one\r\ntwo"], "FILES": [b"x.php"], "FILES_NAMES": [b"f"], "FILES_COMBINED_SIZE": [b"2"],
      "MULTIPART_STRICT_ERROR": [b"0"], "REQUEST_BODY": [b""],
      "MULTIPART_PART_HEADERS": [b'Content-Disposition: form-data; name="a"',
                                 b'Content-Disposition: form-data; name="f"; filename="x.php"',
                                 b"Content-Type: t"]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "expected"), BODIES)
def test_a_body_is_read_as(kind: bytes, body: bytes, expected: dict[str, list[bytes]]) -> None:
    found = values(request(body=body, kind=kind))

    assert expected == {name: [value for _, value in found[name]] for name in expected}
    assert found["REQBODY_ERROR"] == [(b"", b"0")]


JSON_PART = (
    b'--XyZ\r\nContent-Disposition: form-data; name="d"; filename="blob"\r\n'
    b"Content-Type: application/json\r\n\r\n"
)


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (b'{"a": "\\u0027"}', [(b"d", b'{"a": "\\u0027"}'), (b"d.json.a", b"'")]),
        (b"{", [(b"d", b"{")]),
    ],
)
def test_a_part_that_says_it_is_json_is_no_opaque_file(
    content: bytes, fields: list[tuple[bytes, bytes]]
) -> None:
    found = values(request(body=JSON_PART + content + b"\r\n--XyZ--\r\n", kind=MULTIPART))

    assert (found["ARGS_POST"], found["FILES"]) == (fields, [(b"d", b"blob")])


def test_a_rule_can_ask_for_the_body_itself() -> None:
    assert values(request(body=b"[1]", kind=JSON), force=True)["REQUEST_BODY"] == [(b"", b"[1]")]


PART = b'--XyZ\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
END, FILE = b"\r\n--XyZ--\r\n", PART.replace(b'"\r', b'"; filename="b"\r')
# Each hides a field from whoever reads as RFC 7578 says, and shows it to Django, Werkzeug, PHP or busboy.
HIDDEN = b'Content-Disposition: form-data; name="q"\r\n\r\nattack'
AMBIGUOUS = [
    PART + b"1" + END + b"--XyZ\r\n" + HIDDEN + END,
    FILE + b"x--XyZ\r\n" + HIDDEN + b"--XyZ--" + END,
    PART + b"x--XyZ\r\n" + HIDDEN + b"--XyZ--" + END,
    FILE + b"x\r--XyZ\r" + HIDDEN.replace(b"\n", b"") + b"\r--XyZ--\r" + END,
    FILE + b"--XyZ\r\n" + HIDDEN + END,
    b"x--XyZ\r\n" + HIDDEN + b"\r\n" + PART + END,
    b"--XyZ\r\n" + HIDDEN.replace(b"; n", b";\r\n n") + END,
    FILE.replace(b"; f", b";\r\n f") + b"attack" + END,
    FILE.replace(b'"b"', b'"\rb"') + b"attack" + END,
    PART + b"1\n--XyZ\n" + FILE[7:].replace(b"\r", b"") + b"attack" + END,
]
AMBIGUOUS_TYPES = [
    b"multipart/form-data; boundary=XyZ" + end for end in (b",b", b" b", b'"', b"; boundary=b")
]
REFUSED = [
    (FORM, b"a" * (limits.BODY_BYTES_MAX + 1), "body-size", 413),
    (FORM, b"&" * (limits.ARGUMENTS_MAX + 1), "arguments", 413),
    (JSON, b"{", "json-syntax", 400),
    (JSON, b'"\xff"', "json-syntax", 400),
    (JSON, b"[NaN]", "json-syntax", 400),
    (JSON, b"[" * 65 + b"]" * 65, "json-depth", 413),
    (JSON, b"[" * 60_000, "json-depth", 413),
    (JSON, b"[" + b"1," * limits.ARGUMENTS_MAX + b"1]", "arguments", 413),
    (JSON, json.dumps({"k" * 9_000: [1] * 200}).encode(), "json-names", 413),
    (XML, b"<a", "xml-syntax", 400),
    (XML, b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "xml-entities", 400),
    (XML, b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "xml-entities", 400),
    (XML, b'<!DOCTYPE a SYSTEM "http://evil.example/e.dtd"><a>&e;</a>', "xml-entities", 400),
    (XML, b'<!DOCTYPE a PUBLIC "p" "e.dtd"><a/>', "xml-entities", 400),
    (XML, b"<a>" * 65 + b"</a>" * 65, "xml-depth", 413),
    (XML, b"<a>" + b"<b/>" * limits.XML_NODES_MAX + b"</a>", "xml-nodes", 413),
    (MULTIPART, b"no boundary", "multipart-syntax", 400),
    (MULTIPART, PART + b"x\r\n", "multipart-syntax", 400),
    (MULTIPART, (PART + b"\r\n") * 300 + b"--XyZ--", "parts", 413),
    *((MULTIPART, body, "multipart-syntax", 400) for body in AMBIGUOUS),
    *((kind, PART + b"1\r\n--XyZ--\r\n", "multipart-syntax", 400) for kind in AMBIGUOUS_TYPES),
    (MULTIPART, PART[:-2] + b"X: " + b"y" * 9_000 + b"\r\n\r\n\r\n--XyZ--", "part-headers", 413),
    (MULTIPART, b"x" * (limits.UPLOAD_BYTES_MAX + 1), "body-size", 413),
]


@pytest.mark.parametrize(("kind", "body", "reason", "status"), REFUSED)
def test_a_body_that_cannot_be_inspected_whole_is_refused(
    kind: bytes, body: bytes, reason: str, status: int
) -> None:
    assert refusal(request(body=body, kind=kind)) == (reason, status)


@pytest.mark.parametrize("kind", [FORM, JSON, XML, MULTIPART])
def test_a_body_of_which_only_the_start_is_there_is_refused(kind: bytes) -> None:
    assert refusal(request(body=b"1", kind=kind, body_complete=False)) == ("body-size", 413)


@pytest.mark.parametrize(
    ("coding", "passes"), [(b"identity", True), (b"", True), (b"gzip", False), (b"x", False)]
)
def test_a_packed_body_is_refused(coding: bytes, passes: bool) -> None:
    one = request(body=b"a=1", kind=FORM, headers=((b"Content-Encoding", coding),))
    if passes:
        assert values(one)["ARGS"] == [(b"a", b"1")]
    else:
        assert refusal(one) == ("content-encoding", 415)


ENCODED = [
    (FORM + b"; charset=utf-7", b"a=+ADw-", "charset"),
    (FORM + b"; charset=utf-16le", b"a\0=\x001\0", "charset"),
    (FORM + b'; x=y; Charset = "IBM037"', b"\x81~\xf1", "charset"),
    (FORM + b"; charset=utf-8; charset=utf-7", b"a=1", "charset"),
    (FORM + b"; charset*=''utf-7", b"a=1", "charset"),
    (FORM, b"_charset_=utf-7&a=1", "charset"),
    (JSON + b"; charset=utf-7", b"[1]", "charset"),
    (XML + b"; charset=utf-32", b"<a/>", "charset"),
    (MULTIPART + b"; charset=utf-7", PART + b"1" + END, "charset"),
    (MULTIPART, PART[:-2] + b"Content-Type: text/plain; charset=utf-16\r\n\r\n1" + END, "charset"),
    (MULTIPART, PART[:-2] + b"Content-Transfer-Encoding: Base64\r\n\r\nMQ==" + END, "transfer-encoding"),
    (FORM + b"; charset=utf-8" * (CHARSETS_MAX + 1), b"a=1", "charset"),
    (FORM + b"; charset=utf-8" * CHARSETS_MAX, b"a=1", None),
    (FORM + b"; charset=UTF-8", b"a=1", None),
    (FORM + b"; charset=", b"a=1&_charset_=windows-1252", None),
    (JSON + b';charset="utf-8"', b"[1]", None),
    (XML + b"; charset=iso-8859-15", b"<a/>", None),
    (MULTIPART, PART[:-2] + b"Content-Type: text/plain; charset=UTF-8\r\n\r\n1" + END, None),
    (MULTIPART, PART[:-2] + b"Content-Transfer-Encoding: 8bit\r\n\r\n1" + END, None),
    (MULTIPART, FILE[:-2] + b"Content-Transfer-Encoding: base64\r\n\r\n1" + END, None),
    (b"text/plain; charset=utf-7", b"a=1", None),
]


@pytest.mark.parametrize(("kind", "body", "reason"), ENCODED)
def test_a_body_that_means_another_text_to_who_believes_its_encoding_is_told(
    kind: bytes, body: bytes, reason: str | None
) -> None:
    one = request(body=body, kind=kind)
    found = at_once(collections.request_values(one))
    trouble = at_once(collections.add_body(found, one, found["REQBODY_PROCESSOR"][0][1].decode(), False))

    assert (trouble.reason if trouble else None, trouble.status if trouble else 415) == (reason, 415)


def test_a_body_of_two_types_is_refused() -> None:
    two = ((b"content-type", b"text/plain"),)

    assert refusal(request(body=b"{}", kind=JSON, headers=two)) == ("content-types", 400)
    assert values(request(kind=JSON, headers=two))["ARGS"] == []


def test_an_opaque_body_is_seen_as_far_as_it_is_there() -> None:
    found = values(request(body=b"\0" * 999, kind=b"application/octet-stream", body_complete=False))

    assert found["REQUEST_BODY_LENGTH"] == [(b"", b"999")]


def test_too_many_arguments_or_cookies_are_refused() -> None:
    assert refusal(request(b"/?" + b"a=1&" * limits.ARGUMENTS_MAX + b"b")) == ("arguments", 414)
    assert refusal(request(headers=((b"Cookie", b"a=1;" * 257),))) == ("cookies", 431)


def test_a_refusal_leaves_word_of_itself_in_the_variables() -> None:
    one = request(body=b"{", kind=JSON)
    found = at_once(collections.request_values(one))
    with pytest.raises(Refused):
        at_once(collections.add_body(found, one, "JSON", False))

    assert (found["REQBODY_ERROR"], found["REQBODY_ERROR_MSG"]) == ([(b"", b"1")], [(b"", b"json-syntax")])


def values_or_none(one: Request) -> Values | None:
    try:
        return values(one)
    except Refused:
        return None


def compared(one: Request) -> None:
    """Assert that ModSecurity sees the same, or refuses what is refused here."""
    witness = _WITNESS.setdefault("peer", peer.viewer([*COMPARED, "REQBODY_ERROR"]))
    headers = [(name.decode(), value) for name, value in one.headers]
    told = peer.seen(witness, [*COMPARED, "REQBODY_ERROR"], uri=one.target, headers=headers, body=one.body)
    found = values_or_none(one)
    if found is None and any(told[f"MULTIPART_{flag}"] == [b"1"] for flag in REFUSED_FLAGS):
        return  # here its flags are refusals, as they are in its recommended configuration
    if found is None and any(sign in one.body or sign in one.headers[-1][1] for sign in REFUSED_SIGNS):
        return
    assert (found is None) == (told["REQBODY_ERROR"] == [b"1"])
    if found is None:
        return
    multipart = found["REQBODY_PROCESSOR"] == [(b"", b"MULTIPART")]
    for name in COMPARED:
        bare, _, path = name.partition(":")
        mine = [value for key, value in found.get(bare, []) if not path or key == path.encode()]
        theirs = told[name]
        if name == "XML:/*":
            mine = mine[:1]  # all text; there is no more of it there
        if bare == "ARGS_COMBINED_SIZE":
            if multipart:
                continue  # ModSecurity does not count fields of multipart
            theirs = [value.partition(b".")[0] for value in theirs]  # it writes a fraction
        if multipart and bare in ("ARGS", "ARGS_POST"):  # it loses line ends within a field
            mine, theirs = ([value.translate(None, b"\r\n") for value in side] for side in (mine, theirs))
        assert (name, Counter(mine)) == (name, Counter(theirs))


_WITNESS: dict[str, peer.Peer] = {}


def test_modsecurity_reads_targets_and_cookies_the_same() -> None:
    chance = Random(1)
    for _ in range(ROUNDS):
        headers = ((b"Host", b"example.com:80"), (b"Authorization", b"Basic x"))
        cookies = ((b"Cookie", random_bodies.cookie(chance)), (b"cookie", random_bodies.cookie(chance)))
        compared(request(random_bodies.target(chance), headers=headers + cookies))


def test_modsecurity_reads_forms_the_same() -> None:
    chance = Random(2)
    for _ in range(ROUNDS):
        compared(request(b"/?q=1", random_bodies.form(chance), FORM))


def test_modsecurity_reads_json_the_same() -> None:
    chance = Random(3)
    for _ in range(ROUNDS):
        text = (
            random_bodies.json(chance) if chance.random() < 0.9 else chance.choice(random_bodies.BROKEN_JSON)
        )
        compared(request(b"/?q=1", text.encode(), JSON))


def test_modsecurity_reads_xml_the_same() -> None:
    for text in (
        b"<a/>",
        b"<a b='1'>t<c d='2'/>u</a>",
        b"<a",
        b"x",
        b"<a>&lt;&#65;</a>",
        b"<a><!-- c -->\n<b/></a>",
    ):
        compared(request(b"/?q=1", text, XML))


def test_modsecurity_reads_multipart_the_same() -> None:
    chance = Random(4)
    for _ in range(2 * ROUNDS):
        kind, body = random_bodies.multipart(chance)
        compared(request(b"/?q=1", body or b"-", kind))


def test_of_a_response_rules_see() -> None:
    answer = Response(
        status=404, reason=b"Not Found", headers=((b"content-type", b"text/html"),), body=b"gone"
    )
    found = collections.response_values(answer)
    collections.add_response_body(found, answer)

    expected = {
        "RESPONSE_STATUS": b"404",
        "STATUS_LINE": b"HTTP/1.1 404 Not Found",
        "RESPONSE_CONTENT_TYPE": b"text/html",
        "RESPONSE_BODY": b"gone",
        "RESPONSE_CONTENT_LENGTH": b"4",
    }
    assert expected == {name: found[name][0][1] for name in expected}
