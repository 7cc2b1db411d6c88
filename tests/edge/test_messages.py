"""Requests and answers of every form pass through unharmed, and only once."""

import threading

import pytest

from tests.edge.origin import HTTP_200, headers_of
from tests.edge.talk import connected, in_one_go, read_answer, say, send

PORTION = bytes(range(256)) * 256
PORTIONS = 384  # 24 MiB, which no test has in memory more often than it must
BIG_BYTES = len(PORTION) * PORTIONS
BUFFERS_BYTES_MAX = 16 << 20  # of all sockets and buffers on the way, generously


def sent(origin):
    return origin.requests[-1]


def test_a_body_with_a_length_reaches_the_origin(site):
    host, origin = site.origin()
    say(site.http, b"POST /a HTTP/1.1\r\nHost: %b\r\nContent-Length: 5\r\n\r\nhello" % host.encode())
    head, body = sent(origin)
    assert body == b"hello"
    assert headers_of(head)[b"content-length"] == b"5"


def test_a_chunked_body_reaches_the_origin_without_extensions_and_trailers(site):
    host, origin = site.origin()
    body = b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: forged\r\nHost: other.example\r\n\r\n"
    head = b"POST /a HTTP/1.1\r\nHost: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % host.encode()
    assert say(site.http, head + body).status == 200
    head, body = sent(origin)
    assert unchunked(body) == b"hello world"
    assert b"ext" not in body
    assert b"forged" not in head + body
    assert b"other.example" not in head + body


def test_a_request_without_a_body_has_no_length(site):
    host, origin = site.origin()
    site.get(host)
    assert not {b"content-length", b"transfer-encoding"} & headers_of(sent(origin)[0]).keys()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_upload_passes(site, chunked):
    seen = []
    host, origin = site.origin(lambda head, body, connection: seen.append((head, body)) or HTTP_200)
    origin.keeps = False
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % BIG_BYTES
    with connected(site.http) as connection:
        send(connection, b"PUT / HTTP/1.1\r\nHost: %b\r\n%b\r\n\r\n" % (host.encode(), framing))
        if chunked:
            send(connection, b"%x\r\n" % BIG_BYTES)
        send_big(connection)
        if chunked:
            send(connection, b"\r\n0\r\n\r\n")
        with connection.makefile("rb") as stream:
            assert read_answer(stream).status == 200
    _, body = seen.pop()
    assert is_big(unchunked(body) if chunked else body)


def send_big(connection):
    for _ in range(PORTIONS):
        send(connection, PORTION)


def is_big(body):
    return len(body) == BIG_BYTES and all(
        body.startswith(PORTION, at) for at in range(0, BIG_BYTES, len(PORTION))
    )


def unchunked(body):
    parts, at = [], 0
    while True:
        start = body.index(b"\r\n", at) + 2
        size = int(body[at:start], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[start : start + size])
        at = start + size + 2


@pytest.mark.parametrize("framing", ["length", "chunked", "end"])
def test_a_large_answer_passes(site, framing):
    before, behind = {
        "length": (b"Content-Length: %d\r\n\r\n" % BIG_BYTES, b""),
        "chunked": (b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % BIG_BYTES, b"\r\n0\r\n\r\n"),
        "end": (b"\r\n", None),  # the origin closes
    }[framing]

    def answers(head, body, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + before)
        send_big(connection)
        return behind

    host, _ = site.origin(answers)
    got = site.get(host)
    assert is_big(got.body)
    assert (b"transfer-encoding" in got.headers) == (framing != "length")


def stuffed(connection):
    """How much can be written until nobody takes any more."""
    connection.settimeout(2)
    total = 0
    try:
        while total < 256 << 20:
            total += connection.send(b"x" * 65536)
    except TimeoutError:
        return total
    return total


def test_an_origin_that_does_not_read_stops_its_client(site):
    done = threading.Semaphore(0)
    host, origin = site.origin(lambda head, body, connection: done.acquire() and None)
    origin.read_bodies = False
    with connected(site.http) as connection:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: %b\r\nContent-Length: 99999999\r\n\r\n" % host.encode())
        assert stuffed(connection) < BUFFERS_BYTES_MAX
    done.release()


def test_a_client_that_does_not_read_stops_its_origin(site):
    taken = []

    def answers(head, body, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
        taken.append(stuffed(connection))

    host, _ = site.origin(answers)
    with connected(site.http) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        site.server.wait_until(lambda: taken, 180)
    assert taken[0] < BUFFERS_BYTES_MAX


def test_head_has_the_length_and_no_body(site):
    def scene():
        host, origin = site.origin(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(2):  # the connection to the origin goes on as usual
            answer = site.get(host, method="HEAD")
            assert (answer.status, answer.headers[b"content-length"]) == (200, b"1000")
        origin.answer = HTTP_200
        assert site.get(host).body == b"ok"
        return origin.connections

    assert in_one_go(scene) == 1


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_body_ends_at_its_head(site, status):
    def scene():
        host, origin = site.origin(b"HTTP/1.1 %d X\r\nETag: x\r\n\r\n" % status)
        with connected(site.http) as connection, connection.makefile("rb") as stream:
            for _ in range(2):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
                assert read_answer(stream).status == status
        return origin.connections

    assert in_one_go(scene) == 1


def test_a_range_is_the_origins_affair(site):
    host, origin = site.origin(
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nab"
    )
    answer = site.get(host, "/", "Range: bytes=0-1", 'If-Range: "x"')
    assert (answer.status, answer.body, answer.headers[b"content-range"]) == (206, b"ab", b"bytes 0-1/9")
    assert headers_of(sent(origin)[0])[b"range"] == b"bytes=0-1"


def test_early_hints_pass_and_a_continue_that_nobody_asked_for_does_not(site):
    host, _ = site.origin(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HTTP_200
    )
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        hints = read_answer(stream)
        assert (hints.status, hints.headers[b"link"]) == (103, b"</a>")
        assert read_answer(stream).body == b"ok"


def test_who_expects_continue_gets_it_before_the_body(site):
    host, origin = site.origin()
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        head = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head % host.encode())
        assert read_answer(stream).status == 100
        connection.sendall(b"hi")
        assert read_answer(stream).status == 200
    assert sent(origin)[1] == b"hi"
    assert b"expect" not in headers_of(sent(origin)[0])


def test_an_old_client_gets_no_chunks_and_its_connection_ends(site):
    host, _ = site.origin(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    answer = say(site.http, b"GET / HTTP/1.0\r\nHost: %b\r\n\r\n" % host.encode())
    assert answer.body == b"ok"
    assert b"transfer-encoding" not in answer.headers
    assert answer.headers[b"connection"] == b"close"


def test_an_old_client_may_keep_its_connection(site):
    host, _ = site.origin()
    request = b"GET / HTTP/1.0\r\nHost: %b\r\nConnection: keep-alive\r\n\r\n" % host.encode()
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        for _ in range(2):
            connection.sendall(request)
            assert read_answer(stream).headers[b"connection"] == b"keep-alive"


def test_requests_sent_together_are_answered_in_order(site):
    host, origin = site.origin(
        lambda head, body, connection: b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n" + head.split(b" ")[1]
    )
    request = b"POST /%03d HTTP/1.1\r\nHost: %b\r\nContent-Length: 3\r\n\r\nabc"
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"".join(request % (number, host.encode()) for number in range(40)))
        assert [read_answer(stream).body for _ in range(40)] == [b"/%03d" % number for number in range(40)]
    assert [body for _, body in origin.requests] == [b"abc"] * 40


def test_connections_are_kept_on_both_sides(site):
    def scene():
        host, origin = site.origin()
        with connected(site.http) as connection, connection.makefile("rb") as stream:
            for _ in range(5):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
                assert read_answer(stream).status == 200
        return origin.connections

    assert in_one_go(scene) == 1


def test_an_origin_that_closes_after_each_answer_is_connected_again(site):
    host, origin = site.origin(b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nok")
    assert [site.get(host).status for _ in range(3)] == [200] * 3
    assert origin.connections == 3


def test_a_kept_connection_that_the_origin_closed_costs_nobody_an_error(site):
    host, origin = site.origin()
    for _ in range(5):
        assert site.get(host).status == 200
        origin.hang_up()


def test_what_an_origin_says_behind_its_answer_is_nobodys(site):
    poison = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"
    host, _ = site.origin(HTTP_200 + poison)
    assert [site.get(host).body for _ in range(5)] == [b"ok"] * 5


def test_an_answer_that_breaks_off_breaks_off(site):
    def answers(head, body, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    host, _ = site.origin(answers)
    with pytest.raises((AssertionError, ConnectionError)):
        site.get(host)


def test_chunks_that_break_off_do_not_end(site):
    def answers(head, body, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")

    host, _ = site.origin(answers)
    with pytest.raises((AssertionError, ConnectionError, ValueError)):
        site.get(host)


def test_an_answer_before_the_request_is_complete_is_passed_on(site):
    def refuses(head, body, connection):
        return b"HTTP/1.1 403 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"

    host, origin = site.origin(refuses)
    origin.read_bodies = False
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: %b\r\nContent-Length: 9999999\r\n\r\nx" % host.encode())
        answer = read_answer(stream)
        assert (answer.status, answer.headers[b"connection"]) == (403, b"close")


def test_a_body_larger_than_the_zone_takes_is_refused_at_its_head(site):
    host, origin = site.origin()
    answer = say(
        site.http, b"PUT / HTTP/1.1\r\nHost: %b\r\nContent-Length: 100000001\r\n\r\n" % host.encode()
    )
    assert answer.status == 413
    assert not origin.requests


TOO_LARGE = [
    b"X: " + b"y" * 70_000 + b"\r\n",
    b"X: y\r\n" * 200,
    b"".join(b"X-%d: %b\r\n" % (number, b"y" * 1_000) for number in range(100)),
]


@pytest.mark.parametrize("lines", TOO_LARGE)
def test_a_head_that_is_too_large_is_refused(site, lines):
    host, origin = site.origin()
    answer = say(site.http, b"GET / HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (host.encode(), lines))
    assert answer.status == 431
    assert not origin.requests


def test_a_target_that_is_too_large_is_refused(site):
    host, origin = site.origin()
    answer = say(site.http, b"GET /%b HTTP/1.1\r\nHost: %b\r\n\r\n" % (b"x" * 70_000, host.encode()))
    assert answer.status == 431
    assert not origin.requests


HOP_BY_HOP = [
    ("Connection: X-Own\r\nX-Own: 1", b"x-own"),
    ("Keep-Alive: timeout=5", b"keep-alive"),
    ("TE: trailers", b"te"),
    ("Trailer: X-End", b"trailer"),
    ("Proxy-Connection: keep-alive", b"proxy-connection"),
    ("Proxy-Authorization: Basic x", b"proxy-authorization"),
    ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA", b"http2-settings"),
    ("Connection: Upgrade\r\nUpgrade: h2c", b"upgrade"),
]


@pytest.mark.parametrize(("lines", "name"), HOP_BY_HOP)
def test_what_concerns_one_connection_is_not_passed_on(site, lines, name):
    host, origin = site.origin(
        b"HTTP/1.1 200 OK\r\nConnection: X-Back\r\nX-Back: 1\r\nKeep-Alive: timeout=9\r\n"
        b"content-length: 0\r\n\r\n"
    )
    answer = site.get(host, "/", *lines.split("\r\n"), "X-Other: stays")
    got = headers_of(sent(origin)[0])
    assert name not in got
    assert b"connection" not in got
    assert got[b"x-other"] == b"stays"
    assert not {b"x-back", b"keep-alive", b"connection"} & answer.headers.keys()


def test_several_headers_of_one_name_stay_several_and_in_order(site):
    host, origin = site.origin(
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\ncontent-length: 0\r\n\r\n"
    )
    answer = site.get(host, "/", "Cookie: a", "X-Two: 1", "X-Two: 2")
    assert sent(origin)[0].index(b"x-two: 1") < sent(origin)[0].index(b"x-two: 2")
    assert answer.head.lower().index(b"set-cookie: a") < answer.head.lower().index(b"set-cookie: b")


def test_the_head_and_the_body_so_far_are_one_write(site):
    first = []

    def look(head, body, connection):
        first.append(body)
        return HTTP_200

    host, origin = site.origin(look)
    origin.read_bodies = False
    say(site.http, b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 5\r\n\r\nhello" % host.encode())
    assert first == [b"hello"]
