"""Bytes on a real socket: what can be read in two ways is refused in the envelope, and closed."""

import asyncio
import json
import socket
import threading

import pytest

from edgestead.http1 import server as http1
from edgestead.http1.connection import SECONDS, State
from edgestead.testing.server import wait_until
from tests.support.api import BEARER, LocalApi

DRAIN_SECONDS_MAX = 5
AUTH = b"Host: a\r\nAuthorization: " + BEARER["authorization"].encode() + b"\r\n"
GET = b"GET /client/v4/user HTTP/1.1\r\n" + AUTH
BODY = json.dumps({"name": "sent.test"}).encode()
POST = b"POST /client/v4/zones HTTP/1.1\r\nContent-Type: application/json\r\n" + AUTH
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
HIDDEN = b"0\r\n\r\n" + GET + b"\r\n"

ACCEPTED = {
    "get": GET + b"\r\n",
    "content-length": POST + LENGTH + b"\r\n" + BODY,
    "chunked": POST + CHUNKED + b"\r\n" + CHUNKS,
}
REFUSED = {
    "te then cl": POST + CHUNKED + LENGTH + b"\r\n" + CHUNKS,
    "cl then te": POST + LENGTH + CHUNKED + b"\r\n" + CHUNKS,
    "cl 4 hides a request in chunks": POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n" + HIDDEN,
    "equal cl twice": POST + LENGTH + LENGTH + b"\r\n" + BODY,
    "different cl twice": POST + LENGTH + b"Content-Length: 5\r\n\r\n" + BODY,
    "blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS,
    "bare line feeds": (GET + b"\r\n").replace(b"\r\n", b"\n"),
    "identity, chunked": POST + b"Transfer-Encoding: identity, chunked\r\n" + LENGTH + b"\r\n" + CHUNKS,
    "plus sign": POST + b"Content-Length: +5\r\n\r\n" + BODY,
    # beyond the twelve
    "identity, chunked alone": POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + CHUNKS,
    "te twice": POST + CHUNKED + CHUNKED + b"\r\n" + CHUNKS,
    "list of lengths": POST + b"Content-Length: 5, 5\r\n\r\n" + BODY,
    "length in hex": POST + b"Content-Length: 0x10\r\n\r\n" + BODY,
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "control in a header": GET + b"X: a\x00b\r\n\r\n",
    "folded header": GET + b"X: a\r\n b\r\n\r\n",
    "chunked in http/1.0": (POST + CHUNKED + b"\r\n" + CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "no host": (GET + b"\r\n").replace(b"Host: a\r\n", b""),
    "two hosts": GET + b"Host: b\r\n\r\n",
}


class Server:
    """LocalApi's application behind a socket, on a loop in a thread."""

    def __init__(self, folder, **options) -> None:
        self.api = LocalApi(folder, **options)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self.api._loop.run_until_complete, args=(self._run(),))
        self._thread.start()

    async def _run(self) -> None:
        app = self.api.app
        self.http1 = server = http1.Server(
            app, app.refuse, connections=app.context.connections, stalled=app.stalled
        )
        await server.open([self._listener])
        await self._ended.wait()
        await server.close(DRAIN_SECONDS_MAX)

    def close(self) -> None:
        self.api._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self.api.close()

    def connect(self, source="127.0.0.1") -> socket.socket:
        return socket.create_connection(self.address, timeout=60, source_address=(source, 0))

    def exchange(self, *parts: bytes) -> bytes:
        """Send, then read until the server closes."""
        with self.connect() as connection:
            for part in parts:
                connection.sendall(part)
            return read_all(connection)


def read_all(connection) -> bytes:
    said = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:  # closed with bytes of ours unread
            return said
        if not part:
            return said
        said += part


def read_answer(connection) -> tuple[int, dict[str, str], bytes]:
    said = b""
    while b"\r\n\r\n" not in said:
        said += read_exactly(connection, 1)
    status, headers = read_head(said)
    return status, headers, read_exactly(connection, int(headers["content-length"]))


def read_exactly(connection, count) -> bytes:
    """MSG_WAITALL does not wait where the socket has a timeout."""
    said = b""
    while len(said) < count:
        part = connection.recv(count - len(said))
        assert part, f"the connection ended after {said!r}"
        said += part
    return said


def read_head(said: bytes) -> tuple[int, dict[str, str]]:
    lines = said.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("framing"))
    yield made
    made.close()


@pytest.mark.parametrize("octets", ACCEPTED.values(), ids=ACCEPTED)
def test_well_framed_requests_are_answered_and_the_connection_stays(server, octets):
    with server.connect() as connection:
        connection.sendall(octets)
        first = read_answer(connection)
        connection.sendall(GET + b"\r\n")
        second = read_answer(connection)

    assert first[0] in (200, 400)  # the same zone is sent twice
    assert json.loads(first[2])["success"] is True or b"already exists" in first[2]
    assert second[0] == 200
    assert "connection" not in first[1]


@pytest.mark.parametrize("octets", REFUSED.values(), ids=REFUSED)
def test_ambiguous_or_broken_framing_is_400_in_the_envelope_and_closed(server, octets):
    said = server.exchange(octets)

    status, headers = read_head(said)
    body = json.loads(said.partition(b"\r\n\r\n")[2])
    assert said.count(b"\r\ncf-ray: ") == 1  # a hidden request is never answered
    assert (status, headers["connection"], headers["content-type"]) == (400, "close", "application/json")
    assert (body["success"], body["result"], body["errors"][0]["code"]) == (False, None, 1400)
    assert len(headers["cf-ray"]) == 20


def test_a_request_in_single_bytes_is_a_request(server):
    with server.connect() as connection:
        for octet in GET + b"\r\n":
            connection.sendall(bytes((octet,)))
        assert read_answer(connection)[0] == 200


def test_pipelined_requests_are_answered_in_order_until_a_broken_one(server):
    said = server.exchange(GET + b"\r\n" + POST + LENGTH + b"\r\n" + BODY + b"nonsense\r\n\r\n")

    assert said.count(b"HTTP/1.1 200") + said.count(b"already exists") == 2


def test_a_head_that_is_too_large_is_refused(server):
    with server.connect() as connection:
        connection.sendall(GET)
        for _ in range(100):
            try:
                connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
            except OSError:
                break
        said = read_all(connection)

    assert said.startswith(b"HTTP/1.1 431")
    assert b"larger than 65536 bytes" in said


def test_a_head_that_does_not_come_is_refused_and_a_silent_connection_closed(server, monkeypatch):
    monkeypatch.setitem(SECONDS, State.HEAD, 0.05)
    for begun in (GET, b"GET /client/v4/user\r\n"):
        said = server.exchange(begun)
        assert said.startswith(b"HTTP/1.1 408")
        assert b"did not arrive within" in said
    assert server.exchange() == b""


def test_a_large_body_does_not_count_for_the_next_head(server):
    large = json.dumps({"name": "x" * 200_000}).encode()
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(large) + large)
        first = read_answer(connection)
        connection.sendall(GET)
        connection.sendall(b"\r\n")
        second = read_answer(connection)

    assert (first[0], second[0]) == (400, 200)


def test_a_body_that_is_too_large_is_413_and_closed(server):
    head = POST + b"Content-Length: 999999999\r\n\r\n"

    status, headers = read_head(server.exchange(head))

    assert (status, headers["connection"]) == (413, "close")


def test_expect_continue_is_answered_before_the_body(server):
    with server.connect() as connection:
        connection.sendall(POST + LENGTH + b"Expect: 100-continue\r\n\r\n")
        assert read_exactly(connection, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert read_answer(connection)[0] in (200, 400)


def test_head_has_the_length_and_no_body(server):
    said = server.exchange(GET.replace(b"GET", b"HEAD", 1) + b"Connection: close\r\n\r\n")

    status, headers = read_head(said)
    assert (status, said.partition(b"\r\n\r\n")[2]) == (200, b"")
    assert int(headers["content-length"]) > 100


def test_http_1_0_is_answered_and_closed(server):
    said = server.exchange((GET + b"\r\n").replace(b"HTTP/1.1", b"HTTP/1.0", 1))

    assert read_head(said)[1]["connection"] == "close"


def test_a_client_that_leaves_in_the_middle_of_a_body_changes_nothing_and_is_logged(server):
    with server.connect() as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n{")

    wait_until(lambda: any(b'"event":"disconnected"' in line for line in server.api.lines), 180)
    (line,) = (one for one in map(json.loads, server.api.lines) if one["event"] == "disconnected")
    assert (line["status"], line["route"]) == (0, "/client/v4/zones")
    assert server.exchange(GET + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_answers_are_the_same_bytes_over_a_socket_and_in_process(server):
    with server.connect() as connection:
        connection.sendall(b"GET /client/v4/accounts HTTP/1.1\r\n" + AUTH + b"\r\n")
        status, headers, body = read_answer(connection)

    assert status == 200
    assert set(headers) >= {"date", "cf-ray", "cache-control", "x-content-type-options"}
    assert json.loads(body)["result_info"]["count"] == 1


def test_large_answers_arrive_whole_at_a_slow_reader(server):
    connection = server.connect()
    with connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(200):
            connection.sendall(GET + b"\r\n")
        answers = [read_answer(connection) for _ in range(200)]

    assert {answer[0] for answer in answers} == {200}
    assert len({answer[1]["cf-ray"] for answer in answers}) == 200
