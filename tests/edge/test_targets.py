"""Methods and targets beyond the usual, and heads of origins that are old-fashioned."""

import pytest

from edgestead.edge import limits
from tests.edge.bench import GET, HEAD_200, Bench
from tests.edge.made import rule

HOST = b"Host: www.example.com\r\n"
ESCAPED = {
    "/größe".encode(): b"/gr%C3%B6%C3%9Fe",
    "/s?q=größe".encode(): b"/s?q=gr%C3%B6%C3%9Fe",
    b"/\xff\x80": b"/%FF%80",
    b"/a%C3\xb6": b"/a%C3%B6",
    "http://www.example.com/ö".encode(): b"/%C3%B6",
}


@pytest.fixture
def bench():
    return Bench()


def request(target, method=b"GET"):
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, HOST)


@pytest.mark.parametrize("target", ESCAPED)
@pytest.mark.parametrize("octets", [1, 7, 1_000])
def test_octets_beyond_ascii_reach_the_origin_escaped(bench, target, octets):
    data = request(target)
    for at in range(0, len(data), octets):
        bench.connection.data_received(data[at : at + octets])

    assert bench.server.written.startswith(b"GET %b HTTP/1.1\r\n" % ESCAPED[target])


@pytest.mark.parametrize("first", [b"\r\n\r\n", b"\r\n", b"\n"])
def test_empty_lines_before_a_request_are_none_of_it(bench, first):
    bench.connection.data_received(first)
    bench.connection.data_received(b"\r\n\r\n" + request("/ö".encode()))

    assert bench.server.written.startswith(b"GET /%C3%B6 HTTP/1.1\r\n")


LINES = HOST + "X-Name: ö\r\n".encode()
BEFORE = {
    "a GET": GET,
    "a raw target": request("/ü".encode()),
    "a body": b"POST / HTTP/1.1\r\n%bContent-Length: 2\r\n\r\n\xc3\xb6" % LINES,
    "a body that looks like a line": b"POST / HTTP/1.1\r\n%bContent-Length: 9\r\n\r\nGET /\xff \n\n" % LINES,
    "chunks": b"POST / HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n2\r\n\xc3\xb6\r\n0\r\n\r\n" % LINES,
    "an upgrade that is not taken": b"GET / HTTP/1.1\r\n%bConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    % LINES,
    "an upgrade and a body": b"POST / HTTP/1.1\r\n%bConnection: upgrade\r\nUpgrade: h2c\r\n"
    b"Content-Length: 2\r\n\r\n\xc3\xb6" % LINES,
}
RAW = b"GET /\xc3\xb6 HTTP/1.1\r\n%b\r\n" % LINES


def cuts(name):
    """Where a read ends. Only the parser knows where chunks do: what is in one read with that stays 400."""
    end = len(BEFORE[name])
    return range(end, end + len(b"GET /")) if name == "chunks" else range(end + len(RAW))


@pytest.mark.parametrize("name", BEFORE)
def test_the_next_request_on_the_connection_is_read_so_too_and_nothing_else_is_changed(name):
    before = BEFORE[name]
    for cut in cuts(name):
        bench = Bench()
        for piece in ((before + RAW)[:cut], (before + RAW)[cut:]):
            bench.connection.data_received(piece)
        bench.origin.data_received(HEAD_200 + b"body")

        first, _, second = bench.server.written.partition(b"GET /%C3%B6 HTTP/1.1\r\n")
        assert b"x-name: \xc3\xb6\r\n" in second, cut
        assert first.endswith(b"\r\n" + before.rpartition(b"\r\n\r\n")[2]), cut
        assert b"%" not in first.replace(b"GET /%C3%BC ", b""), cut


def test_rules_see_them_escaped():
    seen = rule("block", 'http.request.uri.path eq "/gr%C3%B6%C3%9Fe"')
    bench = Bench({"http_request_firewall_custom": [seen]})
    bench.connection.data_received(request("/größe".encode()))

    assert bench.client.status == 403


def test_a_target_counts_as_large_as_it_is_sent_on(bench):
    bench.connection.data_received(request(b"/" + b"\xff" * (limits.HEAD_BYTES_MAX // 2)))

    assert bench.client.status == 431


@pytest.mark.parametrize(
    "method", ["VERSION-CONTROL", "LABEL", "UPDATE", "RPC_IN_DATA", "GETX", "nonsense", "TRACE"]
)
def test_a_method_that_is_not_passed_on_is_501(bench, method):
    bench.connection.data_received(request(b"/", method.encode()))

    assert bench.client.status == 501
    assert bench.server.written == b""


@pytest.mark.parametrize(
    "data", [b"nonsense\r\n\r\n", b"GET: / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02", b"A B\r\n"]
)
def test_what_is_no_request_is_400(bench, data):
    bench.connection.data_received(data)

    assert bench.client.status == 400


BEHIND_AN_UPGRADE = {
    530: GET.replace(b"www.", b"nobody."),
    501: request(b"/", b"GETX"),
    431: b"GET / HTTP/1.1\r\n%b\r\n" % (b"a: b\r\n" * (limits.HEADERS_MAX + 1)),
}


@pytest.mark.parametrize("status", BEHIND_AN_UPGRADE)
def test_what_is_wrong_with_a_request_is_said_behind_an_upgrade_too(bench, status):
    bench.connection.data_received(BEFORE["an upgrade that is not taken"] + BEHIND_AN_UPGRADE[status])
    bench.origin.data_received(HEAD_200 + b"body")

    assert bench.counted == [200, status]


def test_options_of_the_server_itself_are_answered_here(bench):
    bench.connection.data_received(request(b"*", b"OPTIONS") + GET)

    assert bench.client.status == 200
    assert b"content-length: 0\r\n" in bench.client.written
    assert bench.server.written.startswith(b"GET / ")


LF = HEAD_200.replace(b"\r\n", b"\n")


def test_an_origin_may_end_the_lines_of_its_head_in_lf(bench):
    for _ in range(2):
        bench.connection.data_received(GET)
        bench.origin.data_received(LF + b"body")

    assert bench.counted == [200, 200]
    assert bench.client.written.count(b"\r\n\r\nbody") == 2


def test_but_not_its_chunks(bench):
    bench.connection.data_received(GET)
    bench.origin.data_received(b"HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n4\nbody\n0\n\n")

    assert b"body" not in bench.client.written
    assert bench.server.state == "aborted"


def test_a_client_may_not(bench):
    bench.connection.data_received(GET.replace(b"\r\n", b"\n"))

    assert bench.client.status == 400


def test_a_hundred_interim_answers_are_not_too_many(bench):
    bench.connection.data_received(GET)
    for _ in range(100):
        bench.origin.data_received(b"HTTP/1.1 102 X\r\n\r\n")
    bench.origin.data_received(HEAD_200 + b"body")

    assert bench.client.written.endswith(b"body")
