"""A connection of HTTP/2 whose requests an application answers: `h2` is the client, without sockets."""

import asyncio

import pytest

from edgestead.http1 import limits
from edgestead.http1.connections import Connections
from edgestead.http1.messages import BodyBroken, BodyTooLarge, Response
from edgestead.http1.server import Server
from edgestead.http2 import wire
from edgestead.http2.answering import Answering
from edgestead.http2.driver import CLOSED
from edgestead.model.budgets import table
from tests.edge.http2_client import Http2Client, fields

LARGE = bytes(range(256)) * 600  # more than a window


def refuse(status, reason, client):
    return Response(status, [(b"content-type", b"text/plain")], reason.encode())


async def respond(request):
    try:
        body = await request.body.read(1_000)
    except BodyTooLarge:
        return refuse(413, "too large", "")
    except BodyBroken:
        return None
    return Response(200, [(b"x-client", request.client.encode())], body)


def answer(request):
    if request.target == b"/fails":
        raise ValueError("a fault of the application")
    if request.target == b"/large":
        return Response(200, [], LARGE)
    whole = request.body.taken_whole(1_000)
    return respond(request) if whole is None else Response(200, [], b"at once " + whole)


class Client(Http2Client):
    def __init__(self, *, per_address=None, **options):
        self.server = Server(answer, refuse, connections=Connections(None, per_address))
        self.now = self.server.loop.time()
        super().__init__(None, connection=Answering(self.server), **options)

    async def turn(self):
        """What the loop puts off is done, and its client hears of it."""
        for _ in range(5):
            await asyncio.sleep(0)
            self.listen()

    async def said(self, number):
        await self.turn()
        one = self.answers[number]
        return one.status, one.body, one.ended


def test(case):
    """A case of its own loop, within a minute."""

    def run():
        asyncio.run(asyncio.wait_for(case(), 60))

    run.__name__ = case.__name__
    return run


test.__test__ = False  # type: ignore[attr-defined]


@test
async def test_a_body_that_is_there_is_answered_at_once():
    client = Client()
    assert await client.said(client.ask(fields(b"POST", b"/"), b"four")) == (200, b"at once four", True)
    assert await client.said(client.ask()) == (200, b"at once ", True)
    assert client.answers[3].headers[b"content-length"] == b"8"
    assert b"date" in client.answers[3].headers


@test
async def test_a_body_may_come_late():
    client = Client()
    number = client.ask(fields(b"POST", b"/"), b"one ", ends=False)
    client.send(number, b"two", ends=True)
    assert await client.said(number) == (200, b"one two", True)
    assert client.answers[number].headers[b"x-client"] == b"192.0.2.9"


@test
async def test_who_sends_too_much_is_told_and_may_stop():
    client = Client()
    number = client.ask(fields(b"POST", b"/"), bytes(2_000), ends=False)
    assert await client.said(number) == (413, b"too large", True)
    assert client.answers[number].reset == wire.NO_ERROR
    assert await client.said(client.ask()) == (200, b"at once ", True)


@pytest.mark.parametrize("said", [b"3", b"5"])
def test_a_body_that_is_not_as_long_as_it_says_ends_its_stream(said):
    @test
    async def case():
        client = Client()
        head = fields(b"POST", b"/", (b"content-length", said))
        client.h2.config.validate_outbound_headers = False
        number = client.ask(head, b"", ends=False)
        client.h2.streams[number]._actual_content_length = 0
        client.send(number, b"four", ends=True)
        await client.turn()
        assert client.answers[number].reset == wire.PROTOCOL_ERROR
        assert await client.said(client.ask()) == (200, b"at once ", True)

    case()


@test
async def test_a_long_answer_waits_for_windows_and_is_in_nobodys_way():
    client = Client(window=1_000)
    long = client.ask(fields(b"GET", b"/large"))
    await client.turn()
    assert len(client.answers[long].body) == 1_000
    assert await client.said(client.ask()) == (200, b"at once ", True)
    while not client.answers[long].ended:
        client.give(30_000, long)
        await client.turn()
    assert client.answers[long].body == LARGE
    assert client.answers[long].headers[b"content-length"] == b"%d" % len(LARGE)


@test
async def test_who_takes_nothing_is_given_up_and_others_go_on():
    client = Client(window=0)
    number = client.ask(fields(b"GET", b"/large"))
    await client.turn()
    client.edge.sweep(client.now + limits.STALL_SECONDS_MAX + 3)
    await client.turn()
    assert client.answers[number].reset == wire.CANCEL
    assert client.edge._streams == {}


@test
async def test_a_body_that_does_not_come_is_given_up():
    client = Client()
    number = client.ask(fields(b"POST", b"/"), b"one", ends=False)
    client.edge.sweep(client.now + limits.BODY_SECONDS_MAX + 3)
    await client.turn()
    assert client.answers[number].reset == wire.CANCEL


@test
async def test_a_fault_of_the_application_ends_the_stream_alone():
    client = Client()
    number = client.ask(fields(b"GET", b"/fails"))
    await client.turn()
    assert client.answers[number].reset == wire.INTERNAL_ERROR
    assert await client.said(client.ask()) == (200, b"at once ", True)


REFUSED = {
    "a scheme of another connection": (fields(scheme=b"http"), 400),
    "a WebSocket": (
        [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *fields()[1:]],
        501,
    ),
    "no method": (fields(b"NONE"), 501),
    "a header of a connection": (fields(b"GET", b"/", (b"connection", b"close")), 400),
    "a body that it has not": (fields(b"POST", b"/", (b"content-length", b"4")), 400),
}


@pytest.mark.parametrize(("head", "status"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_request_is_refused(head, status):
    @test
    async def case():
        client = Client()
        number = client.ask(head)
        got, body, ended = await client.said(number)
        assert (got, ended) == (status, True)
        assert body
        assert await client.said(client.ask()) == (200, b"at once ", True)

    case()


@test
async def test_a_refused_head_has_no_body_either():
    client = Client()
    number = client.ask(fields(b"HEAD", b"/", (b"connection", b"close")))
    assert await client.said(number) == (400, b"", True)


@pytest.mark.parametrize(
    ("trailers", "ends"), [([(b"x-sum", b"4")], True), ([(b"transfer-encoding", b"chunked")], False)]
)
def test_trailers_end_a_body_where_they_are_some(trailers, ends):
    @test
    async def case():
        client = Client()
        number = client.ask(fields(b"POST", b"/"), b"four", ends=False)
        client.h2.send_headers(number, trailers, end_stream=True)
        client.talk()
        expected = (200, b"four", True) if ends else (None, b"", False)
        assert await client.said(number) == expected
        assert client.answers[number].reset == (None if ends else wire.PROTOCOL_ERROR)

    case()


@test
async def test_who_takes_requests_back_all_the_time_has_to_leave():
    client = Client()
    for _ in range(table.HTTP2_RESETS.limit + 1):
        client.reset(client.ask(fields(b"POST", b"/"), b"x", ends=False))
        if client.goaway is not None:
            break
    await client.turn()
    assert client.goaway == wire.ENHANCE_YOUR_CALM
    assert client.edge._state is CLOSED


@test
async def test_one_connection_too_many_is_turned_away():
    first = Client(per_address=0)
    await first.turn()
    assert first.goaway == wire.ENHANCE_YOUR_CALM


@test
async def test_the_end_of_the_server_lets_what_is_asked_finish():
    client = Client()
    number = client.ask(fields(b"POST", b"/"), b"one", ends=False)
    client.edge.finish()
    await client.turn()
    assert client.goaway == wire.NO_ERROR
    client.edge.data_received(b"\0\0\4\0\1" + number.to_bytes(4, "big") + b" two")  # `h2` sends no more
    for _ in range(5):
        await asyncio.sleep(0)
    assert client.transport.written.endswith(b"one two")
    assert client.transport.state == "closed"


@test
async def test_a_request_that_was_taken_back_is_not_answered():
    client = Client()
    number = client.ask(fields(b"POST", b"/"), b"one", ends=False)
    client.reset(number)
    assert await client.said(client.ask()) == (200, b"at once ", True)
    assert client.answers[number].status is None
