"""What holds at every date holds on the wire: on each address that speaks HTTP, before and after its day."""

import socket
from pathlib import Path

import pytest

BOTH = (
    b"POST /client/v4/zones HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
)


def first_line_and_rest(address, octets):
    """What comes back until the other side closes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(octets)
        answer = b""
        while portion := connection.recv(65_536):
            answer += portion
    line, _, rest = answer.partition(b"\r\n")
    return line, rest


@pytest.fixture(scope="session")
def edge_flags():
    return ["--objects", str(Path(__file__).parents[2] / "examples")]


@pytest.mark.as_of("2023-06-30", "2023-07-01")
def test_a_request_of_two_lengths_is_declined_and_its_connection_closed(edge):
    for address in (edge.api_base.split("/")[2], edge.http, edge.objects):
        line, rest = first_line_and_rest(address, BOTH)

        assert line.startswith(b"HTTP/1.1 400"), address
        assert b"\r\nHTTP/1.1 " not in rest  # what was hidden behind it is no request


@pytest.mark.as_of("2025-06-14", "2025-06-15")
def test_what_a_removed_endpoint_says_is_on_the_wire(edge, edge_zone, edge_as_of):
    answer = edge.get(f"{edge_zone.path}/firewall/waf/overrides")

    if str(edge_as_of) == "2025-06-15":
        assert (answer.status, answer.codes) == (410, [1199])
        assert answer.headers["deprecation"] == "@1749945600"
        assert answer.headers["sunset"] == "Sun, 15 Jun 2025 00:00:00 GMT"
        assert (
            f"{edge_zone.path}/rulesets/phases/http_request_firewall_managed/entrypoint"
            in answer.headers["link"]
        )
    else:
        assert (answer.status, answer.result) == (200, [])
        assert "deprecation" not in answer.headers
