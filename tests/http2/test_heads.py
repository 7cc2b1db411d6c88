"""Fields of HTTP/2 that could be two things in HTTP/1.1 are refused, others said as they were meant."""

import pytest

from edgestead.http1.head import Refused
from edgestead.http2.head import read
from tests.edge.http2_client import fields
from tests.edge.http2_forms import HEADS


@pytest.mark.parametrize("case", HEADS)
def test_what_could_be_two_things_is_refused(case):
    said, status = HEADS[case]
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
