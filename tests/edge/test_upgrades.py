"""WebSocket passes both ways where the zone allows it."""

import pytest

from tests.edge.origin import HTTP_200, headers_of
from tests.edge.talk import connected, read_answer

SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: x\r\n\r\n"
)
HANDSHAKE = (
    b"GET /chat HTTP/1.1\r\nHost: %b\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.fixture
def allowed(site):
    site.set("websockets", "on")
    yield
    site.set("websockets", "off")


def echoes(head, body, connection):
    connection.sendall(SWITCHING + b"first")
    while data := connection.recv(65536):
        connection.sendall(data)


def test_bytes_pass_both_ways_after_the_switch(site, allowed):
    host, origin = site.origin(echoes)
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(HANDSHAKE % host.encode() + b"early")
        answer = read_answer(stream)
        assert (answer.status, answer.headers[b"upgrade"]) == (101, b"websocket")
        assert answer.headers[b"sec-websocket-accept"] == b"x"
        assert stream.read(10) == b"firstearly"
        big = bytes(range(256)) * 4096
        connection.sendall(big)
        assert stream.read(len(big)) == big
    head = headers_of(origin.heads[0])
    assert (head[b"connection"], head[b"upgrade"]) == (b"upgrade", b"websocket")
    assert head[b"sec-websocket-key"] == b"x"


def test_the_end_of_one_side_is_the_end_of_the_other(site, allowed):
    host, _ = site.origin(lambda head, body, connection: connection.sendall(SWITCHING))
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(HANDSHAKE % host.encode())
        assert read_answer(stream).status == 101
        assert stream.read() == b""


def test_an_origin_that_does_not_switch_answers_as_usual(site, allowed):
    host, _ = site.origin()
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        for _ in range(2):
            connection.sendall(HANDSHAKE % host.encode())
            assert read_answer(stream).body == b"ok"
        connection.sendall(HANDSHAKE % host.encode() + b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        assert [read_answer(stream).body for _ in range(2)] == [b"ok"] * 2


def test_a_zone_without_websockets_asks_its_origin_for_a_page(site):
    host, origin = site.origin(HTTP_200)
    with connected(site.http) as connection, connection.makefile("rb") as stream:
        connection.sendall(HANDSHAKE % host.encode() + b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        assert [read_answer(stream).body for _ in range(2)] == [b"ok"] * 2
    assert not {b"upgrade", b"connection"} & headers_of(origin.heads[0]).keys()


def test_a_switch_that_nobody_asked_for_is_no_answer(site, allowed):
    host, _ = site.origin(SWITCHING)
    assert site.get(host).status == 520
