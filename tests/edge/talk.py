"""Talking to the edge in bytes."""

import socket
import time
from contextlib import contextmanager
from typing import NamedTuple

from edgestead.edge import limits
from tests.edge.origin import headers_of

PATIENCE_SECONDS = 180
KEPT_SECONDS = limits.IDLE_ORIGIN_SECONDS_MAX - limits.SWEEP_SECONDS  # at least, by an edge that asks nobody


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes
    head: bytes


def in_one_go(scene):
    """What a scene gives in which the edge has to keep connections to its origin: anew where it took so long,
    on a machine that stood still, that they may have ended by themselves.
    """
    while True:
        began = time.monotonic()
        found = scene()
        if time.monotonic() - began < KEPT_SECONDS:
            return found


@contextmanager
def connected(address):
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_SECONDS) as connection:
        yield connection


def send(connection, data):
    """Everything; as long as some of it goes on, it may take as long as a busy machine takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[connection.send(rest) :]


def read_answer(stream, *, method="GET"):
    """One answer with its body as a client understands it; None when the connection ends first."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(1 << 20)
        if not line:
            return None
        head += line
    status, fields = int(head.split()[1]), headers_of(head)
    if method == "HEAD" or status in (101, 204, 304) or status < 200:
        return Answer(status, fields, b"", head)
    if fields.get(b"transfer-encoding") == b"chunked":
        return Answer(status, fields, _read_chunks(stream), head)
    if b"content-length" in fields:
        length = int(fields[b"content-length"])
        body = stream.read(length)
        assert len(body) == length, "the answer broke off"
        return Answer(status, fields, body, head)
    return Answer(status, fields, stream.read(), head)


def _read_chunks(stream):
    body = b""
    while size := int(stream.readline(), 16):
        body += stream.read(size)
        assert stream.read(2) == b"\r\n"
    assert stream.readline() == b"\r\n"
    return body


def say(address, data, *, method="GET"):
    """Send bytes on a connection of their own; the answer, or None when there is none."""
    with connected(address) as connection:
        send(connection, data)
        with connection.makefile("rb") as stream:
            return read_answer(stream, method=method)


def get(address, host, path="/", *headers, method="GET"):
    lines = "".join(f"{line}\r\n" for line in headers)
    return say(address, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode(), method=method)
