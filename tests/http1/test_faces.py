"""One reading for all: the same bytes at the REST API, at the edge and at the objects' address.

Each face gets each row, with its own path and Host, and credentials that it takes or ignores. A row says the
status of every answer until the connection ends; END stands for a last request that asks for the end.
"""

import socket
from contextlib import suppress
from typing import NamedTuple

import pytest

from edgestead.http1 import limits
from tests.edge.conftest import Site
from tests.edge.talk import connected, read_answer, send

OBJECT = """
from edgestead import Response, StatefulObject


class Echo(StatefulObject):
    async def fetch(self, request):
        await request.text()
        return Response("ok")
"""
END = b"GET PATH HTTP/1.1\r\nHost: HOST\r\nAUTHConnection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: 5"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
TAKEN, REFUSED = (200, 200), (400,)


def get(*lines, start=b"GET PATH HTTP/1.1", host=b"Host: HOST"):
    return b"\r\n".join((start, *(host,) * bool(host), b"AUTHX-Face: y", *lines, b"", b""))


def put(*lines, body=b"", version=b"HTTP/1.1"):
    return get(*lines, start=b"PUT PATH " + version) + body


def many(count, line=b"X-Many: y"):
    """`get` has three headers of its own."""
    return (line,) * (count - 3)


ROWS = {
    # framing
    "get": (get(), TAKEN),
    "a length": (put(LENGTH, body=b"hello"), TAKEN),
    "chunks": (put(CHUNKED, body=CHUNKS), TAKEN),
    "pipelined": (get() + put(LENGTH, body=b"hello") + get(), (200, 200, 200, 200)),
    "a length and chunks": (put(LENGTH, CHUNKED, body=CHUNKS), REFUSED),
    "chunks and a length": (put(CHUNKED, LENGTH, body=CHUNKS), REFUSED),
    "one length twice": (put(LENGTH, LENGTH, body=b"hello"), REFUSED),
    "two lengths": (put(LENGTH, b"Content-Length: 6", body=b"hello"), REFUSED),
    "a list of lengths": (put(b"Content-Length: 5, 5", body=b"hello"), REFUSED),
    "a length with a sign": (put(b"Content-Length: +5", body=b"hello"), REFUSED),
    "a length in hex": (put(b"Content-Length: 0x5", body=b"hello"), REFUSED),
    "an endless length": (put(b"Content-Length: " + b"1" * 19), REFUSED),
    "chunked twice": (put(CHUNKED, CHUNKED, body=CHUNKS), REFUSED),
    "another encoding": (put(b"Transfer-Encoding: gzip, chunked", body=CHUNKS), REFUSED),
    "identity": (put(b"Transfer-Encoding: identity", body=b"hello"), REFUSED),
    "a blank before the colon": (put(b"Transfer-Encoding : chunked", body=CHUNKS), REFUSED),
    "a chunk's size that is none": (put(CHUNKED, body=b"x\r\nhello\r\n"), REFUSED),
    "bare line feeds": (get().replace(b"\r\n", b"\n"), REFUSED),
    "a folded header": (get(b"X: a\r\n b"), REFUSED),
    "a NUL": (get(b"X: a\0b"), REFUSED),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", REFUSED),
    # versions and methods
    "HTTP/1.0": (get(start=b"GET PATH HTTP/1.0"), (200,)),
    "HTTP/1.0 that keeps alive": (get(b"Connection: keep-alive", start=b"GET PATH HTTP/1.0"), TAKEN),
    "HTTP/1.0 in chunks": (put(CHUNKED, body=CHUNKS, version=b"HTTP/1.0"), REFUSED),
    "HTTP/0.9": (get(start=b"GET PATH HTTP/0.9"), (505,)),
    "HTTP/1.2": (get(start=b"GET PATH HTTP/1.2"), (505,)),
    "HTTP/2.0": (get(start=b"GET PATH HTTP/2.0"), (505,)),
    "no version": (b"GET PATH\r\n\r\n", (505,)),
    "CONNECT": (get(start=b"CONNECT HOST:443 HTTP/1.1"), (501,)),
    "a method of its own": (get(start=b"BREW PATH HTTP/1.1"), (501,)),
    "an upgrade": (get(b"Connection: Upgrade", b"Upgrade: h2c"), TAKEN),
    "an upgrade and a body": (put(b"Connection: Upgrade", b"Upgrade: h2c", LENGTH, body=b"hello"), TAKEN),
    "an upgrade and chunks": (put(b"Connection: Upgrade", b"Upgrade: h2c", CHUNKED, body=CHUNKS), TAKEN),
    # Host and target
    "no Host": (get(host=b""), REFUSED),
    "an empty Host": (get(host=b"Host:"), REFUSED),
    "two Hosts": (get(b"Host: HOST"), REFUSED),
    "a Host with a blank": (get(host=b"Host: HOST b"), REFUSED),
    "a Host with a user": (get(host=b"Host: a@HOST"), REFUSED),
    "a Host with a path": (get(host=b"Host: HOST/a"), REFUSED),
    "a Host with a port": (get(host=b"Host: HOST:8080"), TAKEN),
    "a Host in capitals": (get(host=b"HOST: HOST"), TAKEN),
    "the absolute form": (get(start=b"GET http://HOSTPATH HTTP/1.1"), TAKEN),
    "the absolute form and another Host": (
        get(start=b"GET http://HOSTPATH HTTP/1.1", host=b"Host: elsewhere.example"),
        TAKEN,
    ),
    "the absolute form of no host": (get(start=b"GET http:///PATH HTTP/1.1"), REFUSED),
    "the absolute form with a user": (get(start=b"GET http://a@HOSTPATH HTTP/1.1"), REFUSED),
    "the absolute form of another scheme": (get(start=b"GET ftp://HOSTPATH HTTP/1.1"), REFUSED),
    "the absolute form without a Host": (get(start=b"GET http://HOSTPATH HTTP/1.1", host=b""), REFUSED),
    "the asterisk of another method": (get(start=b"GET * HTTP/1.1"), REFUSED),
    "a query beyond ASCII": (get(start="GET PATH?é HTTP/1.1".encode()), TAKEN),
    "empty lines before the request": (b"\r\n\r\n" + get(), TAKEN),
    "a fragment": (get(start=b"GET PATH#a HTTP/1.1"), REFUSED),
    # counts and sizes
    "as many headers as may be": (get(*many(limits.HEADERS_MAX)), TAKEN),
    "too many headers": (get(*many(limits.HEADERS_MAX + 1)), (431,)),
    "a large head": (get(b"X-Large: " + b"x" * (limits.HEAD_BYTES_MAX - 1_000)), TAKEN),
    "too large a head": (get(b"X-Large: " + b"x" * limits.HEAD_BYTES_MAX), (431,)),
    "too large a head without an end": (get()[:-2] + b"X-Large: " + b"x" * limits.HEAD_BYTES_MAX, (431,)),
    "too long a target": (get(start=b"GET PATH?%b HTTP/1.1" % (b"x" * limits.HEAD_BYTES_MAX)), (431,)),
    # trailers
    "a trailer": (put(CHUNKED, body=CHUNKS[:-2] + b"X-Trailer: y\r\n\r\n"), TAKEN),
    "a trailer that is a length": (put(CHUNKED, body=CHUNKS[:-2] + b"Content-Length: 50\r\n\r\n"), REFUSED),
    "as many trailers as may be": (
        put(CHUNKED, body=CHUNKS[:-2] + b"a: b\r\n" * limits.HEADERS_MAX + b"\r\n"),
        TAKEN,
    ),
    "too many trailers": (
        put(CHUNKED, body=CHUNKS[:-2] + b"a: b\r\n" * (limits.HEADERS_MAX + 1) + b"\r\n"),
        (431,),
    ),
}
FACES = ("rest", "edge", "objects")


class Face(NamedTuple):
    address: str
    host: bytes
    path: bytes
    credentials: bytes

    def written(self, data):
        data = data.replace(b"PATH", self.path).replace(b"AUTH", self.credentials)
        return (
            data.replace(b": HOST", b": " + self.host)
            .replace(b"/HOST", b"/" + self.host)
            .replace(b"@HOST", b"@" + self.host)
        )

    def statuses(self, data):
        """Of the answers to some bytes, in order, until the connection ends."""
        with connected(self.address) as connection:
            with suppress(ConnectionError):
                send(connection, self.written(data))
            return read_statuses(connection)


def read_statuses(connection):
    found = []
    with connection.makefile("rb") as stream, suppress(ConnectionError):
        while (answer := read_answer(stream)) is not None:
            found.append(answer.status)
    return tuple(found)


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faces")
    (folder / "echo.py").write_text(OBJECT)
    # One process: the second reading of a request that one passes on to another has bounds of its own.
    site = Site(folder, "--objects", str(folder / "echo.py"), "--objects-workers", "1")
    try:
        host, _ = site.origin()
        site.server.wait_until(lambda: site.get(host).status == 200, 180)
        ready = site.server.ready
        account = ready["account_id"]
        namespaces = f"/accounts/{account}/storage/kv/namespaces"
        namespace = site.server.call("POST", namespaces, {"title": "faces"}).result["id"]
        key = f"/client/v4{namespaces}/{namespace}/values/key".encode()
        bearer = f"Authorization: Bearer {ready['api_token']}\r\n".encode()
        rest, objects = (ready[name].split("//")[-1].split("/")[0] for name in ("api_base", "objects"))
        made = {
            "rest": Face(rest, b"localhost", key, bearer),
            "edge": Face(site.http, host.encode(), b"/", bearer),
            "objects": Face(objects, b"localhost", b"/objects/Echo/a/fetch/", bearer),
        }
        assert made["rest"].statuses(put(LENGTH, body=b"hello") + END) == TAKEN
        yield made
    finally:
        site.close()


@pytest.fixture(scope="module")
def slow(faces):
    """Connections on which half a head came, and some on which nothing did, begun before all other tests."""
    opened = [
        (face, said, socket.create_connection(faces[face].address.rsplit(":", 1), timeout=60))
        for face in FACES
        for said in (b"GET / HTTP/1.1\r\nHo", b"")
    ]
    for _, said, connection in opened:
        connection.sendall(said)
    yield opened
    for _, _, connection in opened:
        connection.close()


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_read_alike(faces, slow, name, face):
    data, expected = ROWS[name]

    assert faces[face].statuses(data + END) == expected


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", ["get", "chunks", "HTTP/2.0", "a trailer", "two Hosts"])
def test_so_it_is_byte_by_byte(faces, name, face):
    data, expected = ROWS[name]
    with connected(faces[face].address) as connection, suppress(ConnectionError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for octet in faces[face].written(data + END):
            connection.sendall(bytes((octet,)))
        assert read_statuses(connection) == expected


@pytest.mark.parametrize("face", FACES)
def test_a_head_that_does_not_come_is_408_and_a_silent_connection_is_closed(slow, face):
    found = {said: read_statuses(connection) for of, said, connection in slow if of == face}

    assert list(found.values()) == [(408,), ()]
