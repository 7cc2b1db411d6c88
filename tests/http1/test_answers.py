"""Where an answer ends: no application can say something that would be read as the next answer."""

import pytest

from edgestead.http1.answering import Answering
from edgestead.http1.connection import Action
from edgestead.http1.messages import Response

EVIL = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL"


async def stream():
    yield EVIL


BODIES = {
    "short": lambda: (EVIL, None),
    "long": lambda: (EVIL * 2_000, None),
    "stream": lambda: (stream(), None),
    "stream of a length": lambda: (stream(), len(EVIL)),
}


def written(connection):
    actions, connection.actions = connection.actions, []
    return b"".join(value for action, value in actions if action is Action.WRITE)


@pytest.mark.parametrize(("method", "status"), [("GET", 204), ("GET", 304), ("HEAD", 200), ("HEAD", 204)])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_answer_that_has_no_body_ends_behind_its_head(method, status, body):
    connection = Answering(lambda status, reason, client: Response(status))
    connection.receive(b"%b / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n" % method.encode())
    content, length = body()

    connection.answer(Response(status, [], content, length))
    first = written(connection)
    connection.answer(Response(200, [], b"next"))

    head, end, rest = first.partition(b"\r\n\r\n")
    assert (end, rest) == (b"\r\n\r\n", b"")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    if status == 204:
        assert b"content-length" not in head
        assert b"transfer-encoding" not in head
    assert written(connection).startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n")
