"""A whole server keeps its bounds: connections, bodies, requests, and an end in the middle of a body."""

import json
import resource
import socket

import pytest

from edgestead.model.budgets.table import HTTP_CONNECTIONS
from edgestead.rest.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX
from edgestead.testing.server import EdgeServer, wait_until

GET = b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n"
PER_ADDRESS = 3
SECONDS_MAX = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds")
    settings = folder / "edge.toml"
    settings.write_text(f"api-connections-per-address = {PER_ADDRESS}\n")
    made = EdgeServer(folder / "data", "--config", str(settings), "--api-quota", "50")
    try:
        yield made.start()
    finally:
        made.close()


def connect(server, source="127.0.0.1"):
    host, _, port = server.ready["api_base"].split("/")[2].rpartition(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS_MAX, source_address=(source, 0))


def ask(connection, octets=GET):
    """The answer's status, headers and JSON."""
    connection.sendall(octets)
    return read(connection)


def read(connection):
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, json.loads(stream.read(int(headers["content-length"])))


def test_one_address_has_so_many_connections_and_others_have_theirs(server):
    held = [connect(server, "127.0.0.9") for _ in range(PER_ADDRESS)]
    assert [ask(one)[0] for one in held] == [200] * PER_ADDRESS

    with connect(server, "127.0.0.9") as refused, connect(server, "127.0.0.10") as other:
        status, headers, said = ask(refused)
        assert (status, said["errors"][0]["code"], headers["retry-after"]) == (429, 10429, "1")
        assert ask(other)[0] == 200

    held.pop().close()
    wait_until(lambda: _is_taken(server, "127.0.0.9"), SECONDS_MAX)
    for one in held:
        one.close()


def _is_taken(server, source):
    with connect(server, source) as connection:
        return ask(connection)[0] == 200


TOO_MUCH = {
    "too large": (b'"' + b"x" * BODY_BYTES_MAX + b'"', 413, 1413),
    "too deep": (b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1), 400, 9207),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_body_beyond_its_bounds_is_refused(server, name):
    content, status, code = TOO_MUCH[name]
    with connect(server) as connection:
        found = ask(connection, _post(server, len(content)) + (content if status != 413 else b""))

    assert (found[0], found[2]["errors"][0]["code"]) == (status, code)


def _post(server, length, more=""):
    head = (
        f"POST /client/v4/zones HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.ready['api_token']}\r\n"
        f"Content-Length: {length}\r\n{more}\r\n"
    )
    return head.encode()


def test_a_user_who_asks_too_often_is_told_when_to_come_back(server):
    """The last test with this server: it uses up the quota."""
    authorization = f"Authorization: Bearer {server.ready['api_token']}"
    request = f"GET /client/v4/user HTTP/1.1\r\nHost: a\r\n{authorization}\r\n\r\n".encode()
    with connect(server) as connection:
        status, headers, _ = ask(connection, request)
        left = int(headers["x-ratelimit-remaining"])
        for _ in range(left):
            assert ask(connection, request)[0] == 200
        refused, again, said = ask(connection, request)
        live, _, _ = ask(connection)

    assert (status, headers["x-ratelimit-limit"]) == (200, "50")
    assert (refused, said["errors"][0]["code"]) == (429, 971)
    assert 0 < int(again["retry-after"]) <= 300
    assert live == 200


@pytest.fixture
def many_files():
    """Descriptors for both ends of all connections, where the system lets us have them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < HTTP_CONNECTIONS.limit + 500:
        pytest.skip("too few open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_full_server_says_so_in_the_envelope_and_ends_cleanly_with_a_body_half_sent(tmp_path, many_files):
    server = EdgeServer(tmp_path / "data").start()
    held = []
    try:
        for number in range(HTTP_CONNECTIONS.limit):
            held += [connect(server, f"127.0.1.{1 + number % 4}")]
            held[-1].sendall(GET)  # one that says nothing is closed after ten seconds
        assert read(held[-1])[0] == 200  # all before it are taken: they were accepted before

        with connect(server) as refused:
            status, headers, said = ask(refused)
        assert (status, said["success"], said["errors"][0]["code"]) == (503, False, 1505)
        assert headers["connection"] == "close"

        half = held[0]
        assert read(half)[0] == 200
        half.sendall(_post(server, 100, "Expect: 100-continue\r\n"))
        with half.makefile("rb") as stream:
            assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"  # from here on its body is waited for
            assert stream.readline() == b"\r\n"
        half.sendall(b"{")
        assert server.stop() == 0
        status, _, said = read(half)
        assert (status, said["errors"][0]["code"]) == (503, 1506)
        assert "Traceback" not in server.log
    finally:
        for one in held:
            one.close()
        server.close()
