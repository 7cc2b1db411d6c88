"""What stands around the content of a chunked body is bounded, and ends with it, at the REST address too."""

from contextlib import suppress

import pytest

from tests.http1.floods import FLOOD_BYTES_MAX, FLOODS
from tests.rest.test_framing import CHUNKED, CHUNKS, GET, POST, Server, read_all, read_answer, read_head


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("overhead"))
    yield made
    made.close()


@pytest.mark.parametrize("name", FLOODS)
def test_what_stands_around_the_content_of_a_body_is_bounded(server, name):
    first, again = FLOODS[name]
    with server.connect() as connection:
        connection.sendall(POST + CHUNKED + b"\r\n" + first)
        with suppress(OSError):  # closed, with bytes of ours unread: the refusal may be lost with it
            for _ in range(FLOOD_BYTES_MAX // len(again)):
                connection.sendall(again)
        said = read_all(connection)  # the kernel may take all of it, whatever the server reads: it ends then

    assert not said or read_head(said)[0] in (400, 431)


def test_trailers_of_a_request_are_not_its_headers(server):
    trailers = b"0\r\nAuthorization: Bearer x\r\nContent-Type: text/plain\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(POST + CHUNKED + b"\r\n" + CHUNKS.removesuffix(b"0\r\n\r\n"))
        connection.sendall(trailers)
        assert read_answer(connection)[0] in (200, 400)
        connection.sendall(GET + b"\r\n")
        assert read_answer(connection)[0] == 200
