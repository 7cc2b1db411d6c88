"""The rules of a head hold whatever parser reports its headers."""

import pytest

from edgestead.http1 import limits
from edgestead.http1.head import Refused, read

HOST = (b"host", b"a.example")
LENGTHS = [
    ([], 0),
    ([(b"content-length", b"0")], 0),
    ([(b"content-length", b"17")], 17),
    ([(b"transfer-encoding", b" Chunked")], None),
]
REFUSED = [
    ([(b"content-length", b"")], 400),
    ([(b"content-length", b"-1")], 400),
    ([(b"content-length", b"1" * 19)], 400),
    ([(b"content-length", b"1"), (b"content-length", b"1")], 400),
    ([(b"content-length", b"1"), (b"transfer-encoding", b"chunked")], 400),
    ([(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], 400),
    ([(b"transfer-encoding", b"gzip, chunked")], 400),
    ([(b"transfer-encoding", b"gzip")], 400),
    ([HOST], 400),
    ([(b"x", b"y")] * limits.HEADERS_MAX, 431),
]
HOSTS = {
    b"a": b"a",
    b"A.Example:8080": b"a.example",
    b"a.example.": b"a.example",
    b"192.0.2.1:80": b"192.0.2.1",
    b"[2001:DB8::1]:80": b"[2001:db8::1]",
    b"under_score.example": b"under_score.example",
}
NO_HOSTS = [
    b"",
    b" ",
    b"a b",
    b"a,b",
    b"a@b",
    b"a/b",
    b"a..b",
    b".a",
    b":80",
    b"a:b",
    b"[::1",
    b"x" * 64,
    b"a\xff",
]
TARGETS = {
    b"/a?b": (b"host.example", b"/a?b"),
    b"http://a.example/b?c": (b"a.example", b"/b?c"),
    b"HTTPS://A.example:443?c": (b"a.example", b"/?c"),
    b"http://a.example": (b"a.example", b"/"),
}
NO_TARGETS = [
    b"",
    b"a",
    b"*",
    b"/a#b",
    b"/\xff",
    b"http://",
    b"http:///a",
    b"ftp://a/",
    b"http://a@b/",
    b"//a#",
]


@pytest.mark.parametrize(("headers", "length"), LENGTHS, ids=str)
def test_a_length_is_read(headers, length):
    assert read("1.1", b"PUT", b"/", [HOST, *headers]).length == length


@pytest.mark.parametrize(("headers", "status"), REFUSED, ids=str)
def test_headers_that_could_be_read_in_two_ways_are_refused(headers, status):
    with pytest.raises(Refused) as refused:
        read("1.1", b"PUT", b"/", [HOST, *headers])
    assert refused.value.args[0] == status


@pytest.mark.parametrize(("stated", "name"), HOSTS.items(), ids=str)
def test_a_host_is_a_name_or_an_address(stated, name):
    assert read("1.1", b"GET", b"/", [(b"host", stated)]).host == name


@pytest.mark.parametrize("stated", NO_HOSTS, ids=str)
def test_what_is_no_host_is_refused(stated):
    with pytest.raises(Refused):
        read("1.1", b"GET", b"/", [(b"host", stated)])


@pytest.mark.parametrize(("target", "found"), TARGETS.items(), ids=str)
def test_the_authority_of_an_absolute_target_replaces_the_host(target, found):
    headers = [(b"x", b"y"), (b"host", b"host.example")]
    head = read("1.1", b"GET", target, headers)

    assert (head.host, head.target) == found
    assert head.found[b"host"].lower().startswith(found[0])
    assert [value for name, value in headers if name == b"host"] == [head.found[b"host"]]


@pytest.mark.parametrize("target", NO_TARGETS, ids=str)
def test_what_is_no_target_is_refused(target):
    with pytest.raises(Refused):
        read("1.1", b"GET", target, [HOST])


def test_the_asterisk_is_for_options():
    assert read("1.1", b"OPTIONS", b"*", [HOST]).target == b"*"


@pytest.mark.parametrize(("version", "status"), [("0.9", 505), ("2.0", 505), ("1.2", 505)])
def test_other_versions_are_refused(version, status):
    with pytest.raises(Refused) as refused:
        read(version, b"GET", b"/", [HOST])
    assert refused.value.args[0] == status


def test_http_1_0_needs_no_host_and_has_no_chunks():
    assert read("1.0", b"GET", b"/", []).host == b""
    with pytest.raises(Refused):
        read("1.0", b"PUT", b"/", [HOST, (b"transfer-encoding", b"chunked")])
