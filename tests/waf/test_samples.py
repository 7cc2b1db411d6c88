"""Requests from files: as they were sent, HAR, access logs, lines of JSON."""

import json

import pytest

from edgestead.cli.waf import samples
from edgestead.cli.waf.samples import NotARequest

RAW = [
    (b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n", b"GET", b"/a?b", [(b"host", b"x")], b""),
    (b"GET / HTTP/1.0\nA: 1\nA:  2 \n", b"GET", b"/", [(b"a", b"1"), (b"a", b"2")], b""),
    (b"POST / HTTP/1.1\nContent-Length: 3\n\nabcdef", b"POST", b"/", [(b"content-length", b"3")], b"abc"),
    (
        b"POST / HTTP/1.1\nHost: x\n\na=1\n",
        b"POST",
        b"/",
        [(b"host", b"x"), (b"content-length", b"3")],
        b"a=1",
    ),
    (
        b"POST / HTTP/1.1\r\nA: 1\r\n\r\n\n\nb",
        b"POST",
        b"/",
        [(b"a", b"1"), (b"content-length", b"3")],
        b"\n\nb",
    ),
    (b"GET http://h/a?b HTTP/1.1\n\n", b"GET", b"/a?b", [], b""),
    *(
        (b"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n" + body, b"POST", b"/",
         [(b"transfer-encoding", b"chunked")], b"a=1 b\n")
        for body in (b"3;x\r\na=1\r\n3\r\n b\n\r\n0\r\nX: y\r\n\r\n", b"3\na=1\n003\n b\n\n0\n\n")
    ),
]  # fmt: skip
NO_REQUEST = [b"", b"GET / HTTP/1.1 x\n\n", b"hello\n", b"GET /\n\n", b"GET / HTTP/1.1\nno colon\n\n"]
NO_REQUEST += [
    b"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n" + body
    for body in (b"", b"a=1", b"3\na=1\n", b"-1\na\n0\n", b"999999999\n0\n", b"z\n")
]
AGENT = b"Agent/1"
LINES = [
    (b'192.0.2.7 - - [day] "GET /a?b=%20 HTTP/1.1" 200 5 "-" "Agent/1"', b"GET", b"/a?b=%20", b""),
    (b'host 192.0.2.7 - - [day] "POST /a HTTP/2.0" 200 5 "http://r/" "Agent/1"', b"POST", b"/a", b""),
    (rb'192.0.2.7 - - [day] "GET /\"\x41 HTTP/1.1" 200 5 "-" "Agent/1"', b"GET", b'/"A', b""),
    (b'{"method": "GET", "path": "/a", "query": "b=1", "user_agent": "Agent/1"}', b"GET", b"/a?b=1", b""),
    (b'{"method": "PUT", "target": "/a", "headers": {"User-Agent": "Agent/1"}, "body": "x"}', b"PUT", b"/a",
     b"x"),
    (b'{"request_method": "GET", "request_uri": "/z", "headers": [["user-agent", "Agent/1"]]}', b"GET", b"/z",
     b""),
]  # fmt: skip
NO_LINES = [
    b"noise",
    b'192.0.2.7 - - [day] "-" 400 0',
    b"{",
    b'{"a": 1}',
    b'{"method": 1, "path": []}',
    b"{" * 9_999,
]


@pytest.mark.parametrize(("text", "method", "target", "headers", "body"), RAW)
def test_a_request_is_read_as_it_was_sent(text, method, target, headers, body):
    found = samples.one_request(text, "file").request

    assert (found.method, found.target, list(found.headers), found.body) == (method, target, headers, body)


@pytest.mark.parametrize("text", NO_REQUEST)
def test_what_is_no_request_is_refused_with_words(text):
    with pytest.raises(NotARequest, match=r"\w"):
        samples.one_request(text)


@pytest.mark.parametrize(("line", "method", "target", "body"), LINES)
def test_a_line_of_a_log_is_a_request_with_what_browsers_send(line, method, target, body):
    (sample,) = samples.requests_of([line], "log")
    found = sample.request
    headers = dict(found.headers)

    assert (found.method, found.target, found.body, sample.source) == (method, target, body, "log:1")
    assert headers[b"user-agent"] == AGENT
    assert headers.keys() >= {b"host", b"accept"}


@pytest.mark.parametrize("line", [*NO_LINES, b'{"method": "' + b"G" * samples.LINE_BYTES_MAX + b'"}'])
def test_a_line_that_holds_no_request_is_none(line):
    assert list(samples.requests_of([line])) == [None]


def test_empty_lines_are_nothing_and_numbers_count_them():
    found = list(samples.requests_of([b"\n", LINES[0][0], b"  \n", b"noise"], "log"))

    assert [one and one.source for one in found] == ["log:2", None]


def entry(**more):
    return {"request": {"method": "POST", "url": "https://u@shop.example/a?b=1#c", "headers": [], **more}}


def test_a_har_file_is_read_with_its_bodies():
    headers = [{"name": ":method", "value": "POST"}, {"name": "X-A", "value": "ä"}]
    posted = [
        entry(headers=headers, postData={"text": "a=1"}),
        entry(postData={"text": "AP8=", "encoding": "base64"}),
        entry(),
    ]
    content = b"\xef\xbb\xbf" + json.dumps({"log": {"entries": posted}}).encode()

    found = [one.request for one in samples.requests_of_har(content, "har")]

    assert samples.is_har(content[:40])
    assert [one.target for one in found] == [b"/a?b=1"] * 3
    headers = [(b"host", b"shop.example"), (b"x-a", "ä".encode()), (b"content-length", b"3")]
    assert list(found[0].headers) == headers
    assert [one.body for one in found] == [b"a=1", b"\0\xff", b""]


def test_a_har_files_fields_are_a_form_and_a_body_has_the_type_that_stands_beside_it():
    multipart = [{"name": "Content-Type", "value": "multipart/form-data; boundary=x"}]
    fields = [{"name": "a b", "value": "1' or"}, {"name": "f", "fileName": "x.png"}, {"name": "c"}]
    posted = [
        entry(headers=multipart, postData={"mimeType": "multipart/form-data", "params": fields}),
        entry(postData={"mimeType": "application/json", "text": "[1]", "params": fields}),
    ]

    found = [
        one.request
        for one in samples.requests_of_har(json.dumps({"log": {"entries": posted}}).encode(), "har")
    ]

    assert [one.body for one in found] == [b"a+b=1%27+or&c=", b"[1]"]
    assert [dict(one.headers)[b"content-type"] for one in found] == [
        b"application/x-www-form-urlencoded",
        b"application/json",
    ]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"log": 1}', b'{"log": {"entries": [{}]}}', b"[" * 100_000]
)
def test_what_is_no_har_file_is_refused(content):
    with pytest.raises(NotARequest, match="HAR"):
        samples.requests_of_har(content)
    assert not samples.is_har(b'{"method": "GET"}')
