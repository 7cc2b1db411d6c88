"""Fields of HTTP/2 that could be two things in HTTP/1.1 are refused, others said as they were meant."""

import pytest

from edgestead.edge.http.http2.head import read
from edgestead.http1.head import Refused
from tests.edge.http2_client import fields

REFUSED = {
    "no method": ([(b":scheme", b"https"), (b":path", b"/")], 400),
    "no path": ([(b":method", b"GET"), (b":scheme", b"https")], 400),
    "no scheme": ([(b":method", b"GET"), (b":path", b"/")], 400),
    "another scheme": (fields(scheme=b"http"), 400),
    "two paths": ([*fields(), (b":path", b"/other")], 400),
    "a path behind a header": ([*fields()[:3], (b"accept", b"*/*"), (b":path", b"/")], 400),
    "a path behind a cookie": ([*fields()[:3], (b"cookie", b"a=b"), (b":path", b"/")], 400),
    "an unknown one": ([*fields(), (b":version", b"HTTP/1.1")], 400),
    "one of an answer": ([*fields(), (b":status", b"200")], 400),
    "an absolute path": (fields(path=b"http://www.example.com/"), 400),
    "an empty path": (fields(path=b""), 400),
    "a line end in the path": (fields(path=b"/ HTTP/1.1\r\nx: y"), 400),
    "a blank in the path": (fields(path=b"/a b"), 400),
    "a tab in the path": (fields(path=b"/a\tb"), 400),
    "a blank in the method": (fields(method=b"GET /x"), 501),
    "a small method": (fields(method=b"get"), 501),
    "a method of one's own": (fields(method=b"SMUGGLE"), 501),
    "a capital in a name": (fields(b"GET", b"/", (b"Accept", b"*/*")), 400),
    "a colon in a name": (fields(b"GET", b"/", (b"a:b", b"c")), 400),
    "a line end in a name": (fields(b"GET", b"/", (b"a\r\nb", b"c")), 400),
    "a blank in a name": (fields(b"GET", b"/", (b"a b", b"c")), 400),
    "an octet beyond ASCII in a name": (fields(b"GET", b"/", (b"a\xe9", b"c")), 400),
    "no name": (fields(b"GET", b"/", (b"", b"c")), 400),
    "a line end in a value": (fields(b"GET", b"/", (b"a", b"b\r\nhost: other")), 400),
    "a bare LF in a value": (fields(b"GET", b"/", (b"a", b"b\nc")), 400),
    "a bare CR in a value": (fields(b"GET", b"/", (b"a", b"b\rc")), 400),
    "a NUL in a value": (fields(b"GET", b"/", (b"a", b"b\0c")), 400),
    "a blank before a value": (fields(b"GET", b"/", (b"a", b" b")), 400),
    "a tab behind a value": (fields(b"GET", b"/", (b"a", b"b\t")), 400),
    "a line end in a cookie": (fields(b"GET", b"/", (b"cookie", b"b\r\nc")), 400),
    "a line end in the authority": (fields(authority=b"a.example\r\nx: y"), 400),
    "connection": (fields(b"GET", b"/", (b"connection", b"close")), 400),
    "keep-alive": (fields(b"GET", b"/", (b"keep-alive", b"1")), 400),
    "proxy-connection": (fields(b"GET", b"/", (b"proxy-connection", b"close")), 400),
    "transfer-encoding": (fields(b"POST", b"/", (b"transfer-encoding", b"chunked")), 400),
    "upgrade": (fields(b"GET", b"/", (b"upgrade", b"h2c")), 400),
    "te": (fields(b"GET", b"/", (b"te", b"gzip")), 400),
    "another host": (fields(b"GET", b"/", (b"host", b"other.example")), 400),
    "two hosts": (fields(b"GET", b"/", (b"host", b"www.example.com"), (b"host", b"www.example.com")), 400),
    "another protocol": ([*fields(b"CONNECT"), (b":protocol", b"connect-udp")], 501),
    "a protocol without CONNECT": ([*fields(), (b":protocol", b"websocket")], 501),
    "too many": (fields(b"GET", b"/", *((b"a%d" % n, b"") for n in range(140))), 431),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_be_two_things_is_refused(case):
    said, status = REFUSED[case]
    with pytest.raises(Refused) as refused:
        read(said, b"https")
    assert refused.value.args[0] == status


def test_the_authority_is_the_host_and_crumbs_of_a_cookie_are_one():
    said = read(fields(b"GET", b"/a?b", (b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")), b"https")
    assert said.target == b"/a?b"
    assert said.headers == [(b"host", b"www.example.com"), (b"x", b"y"), (b"cookie", b"a=1; b=2")]


def test_a_host_that_says_the_same_is_one_and_alone_it_counts():
    assert read(fields(b"GET", b"/", (b"host", b"WWW.example.com")), b"https").headers == [
        (b"host", b"www.example.com")
    ]
    alone = [field for field in fields(b"GET", b"/", (b"host", b"a.example")) if field[0] != b":authority"]
    assert read(alone, b"https").headers == [(b"host", b"a.example")]


def test_octets_beyond_ascii_are_escaped_as_with_http_1():
    assert read(fields(path="/größe".encode()), b"https").target == b"/gr%C3%B6%C3%9Fe"


def test_te_of_trailers_passes():
    assert (b"te", b"trailers") in read(fields(b"GET", b"/", (b"te", b"trailers")), b"https").headers


def test_a_websocket_is_asked_for_as_an_origin_knows_it():
    said = read([*fields(b"CONNECT", b"/chat"), (b":protocol", b"websocket")], b"https")
    assert (said.method, said.target, said.is_websocket) == (b"GET", b"/chat", True)
