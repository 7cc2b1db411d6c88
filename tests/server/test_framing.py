"""Byte strings at the API's socket: one reading, or 400 in the envelope and the connection closed."""

import contextlib
import json
import socket

import pytest

from edgestead.http1.limits import HEAD_BYTES_MAX
from edgestead.testing.server import EdgeServer

# The body is "{}\n" and so on; what a route says of it is its own business, as long as it reads exactly it.
TARGET = b"POST /client/v4/zones HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
HIDDEN = b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n"

READ_ONCE = {
    "GET": b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n",
    "Content-Length body": TARGET + b"Content-Length: 2\r\n\r\n{}",
    "chunked": TARGET + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}

REFUSED = {
    "TE + CL": TARGET + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "CL + TE": TARGET + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "CL 4 + chunked hiding a second request": TARGET
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "equal CL twice": TARGET + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "different CL twice": TARGET + b"Content-Length: 2\r\nContent-Length: 7\r\n\r\n{}",
    "blank before the colon": TARGET + b"Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "bare LF": b"GET /health/live HTTP/1.1\nHost: a\n\n",
    "identity, chunked + CL": TARGET
    + b"Transfer-Encoding: identity, chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Content-Length: +5": TARGET + b"Content-Length: +5\r\n\r\n{   }",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = EdgeServer(tmp_path_factory.mktemp("framing") / "data").start()
    yield made
    made.close()


def exchange(server, octets, *, closes):
    """Send, and read until the server closes; a server that should go on is told that nothing follows."""
    host, _, port = server.ready["api_base"].split("/")[2].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.sendall(octets)
        if not closes:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return read_all(connection)


def read_all(connection):
    """Until the server closes, which may be with bytes of ours unread."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            said += part
    return said


def answers(octets):
    """(status, body) of each answer in a stream; every one of ours has a Content-Length."""
    while octets:
        head, _, rest = octets.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        yield int(lines[0].split()[1]), json.loads(rest[:length])
        octets = rest[length:]


def is_live(answer):
    status, body = answer
    return status == 200 and body["result"] == {"status": "live"}


@pytest.mark.parametrize("name", READ_ONCE)
def test_a_certain_request_is_read_once_and_the_next_one_after_it(server, name):
    found = list(answers(exchange(server, READ_ONCE[name], closes=False)))

    assert len(found) == 2
    assert is_live(found[1])


@pytest.mark.parametrize("name", REFUSED)
def test_an_uncertain_request_is_refused_in_the_envelope_and_nothing_after_it_is_read(server, name):
    found = list(answers(exchange(server, REFUSED[name], closes=True)))

    assert len(found) == 1
    status, body = found[0]
    assert status == 400
    assert (body["success"], body["result"], body["messages"]) == (False, None, [])
    assert len(body["errors"]) == 1


def test_a_head_that_grows_beyond_the_limit_is_refused_before_it_ends(server):
    host, _, port = server.ready["api_base"].split("/")[2].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nX: ")
        connection.sendall(b"x" * (HEAD_BYTES_MAX + 1))
        found = list(answers(read_all(connection)))

    assert [status for status, _ in found] == [431]


def test_an_earlier_request_on_the_connection_keeps_its_own_answer(server):
    found = list(answers(exchange(server, READ_ONCE["GET"] + REFUSED["TE + CL"], closes=True)))

    assert is_live(found[0])


def test_unreadable_bytes_are_counted(server):
    before = counted(server)
    exchange(server, REFUSED["bare LF"], closes=True)

    assert counted(server) == before + 1


def counted(server):
    line = 'edge_api_unreadable_total{process="control",reason="framing"} '
    metrics = server.call("GET", "//metrics").body
    return next(int(row.removeprefix(line)) for row in metrics.splitlines() if row.startswith(line))
