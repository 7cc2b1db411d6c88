"""What stands around the content of a chunked body is bounded, for a server's connection and a client's."""

import asyncio
import itertools

import pytest

from edgestead.http1 import limits
from edgestead.http1.client import ExchangeError, Tcp, exchange
from edgestead.http1.connection import State
from edgestead.http1.messages import BodyBroken, Response
from edgestead.http1.protocol import Protocol
from edgestead.http1.server import Server
from tests.http1.floods import FAIR, FLOOD_BYTES_MAX, FLOODS, pieces

POST = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = "5\r\nhello\r\n0\r\n\r\n"
TAKEN_BYTES_MAX = 2 * limits.HEAD_BYTES_MAX
BODY_BYTES_MAX = 1 << 20
ROUNDS_MAX = 1_000  # of the loop, until what was put off is read


class Transport:
    """Remembers what was written, and whether it was ended."""

    def __init__(self):
        self.written, self.is_over, self.is_paused = b"", False, False

    def get_extra_info(self, name):
        return ("192.0.2.9", 5)

    def set_write_buffer_limits(self, octets):
        pass

    def write(self, data):
        self.written += data

    def pause_reading(self):
        self.is_paused = True

    def resume_reading(self):
        self.is_paused = False

    def close(self):
        self.is_over = True

    def abort(self):
        self.is_over = True

    def is_closing(self):
        return self.is_over

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.is_over = True


def served(feed):
    """What a server's connection wrote, the requests it handed on, and what `feed` returned."""
    seen = []

    async def handle(request):
        before = list(request.headers)
        try:
            body = await request.body.read(BODY_BYTES_MAX)
        except BodyBroken:
            return Response(400)
        seen.append((before, body, request.headers))
        return Response()

    async def serve():
        transport = Transport()
        server = Server(handle, lambda status, reason, client: Response(status, [], reason.encode()))
        protocol = Protocol(server)
        protocol.connection_made(transport)
        returned = feed(protocol)
        if asyncio.iscoroutine(returned):
            returned = await returned
        if protocol.task is not None:
            await protocol.task
        return transport, seen, returned

    return asyncio.run(serve())


def transport_of(connection):
    return connection._transport


def is_over(connection):
    return connection._connection.state is State.LINGERING or transport_of(connection).is_over


@pytest.mark.parametrize("name", FLOODS)
def test_a_request_that_floods_is_refused(name):
    first, again = FLOODS[name]

    async def feed(connection):
        """As a socket does: nothing comes while reading is paused."""
        taken = 0
        for piece in itertools.chain((POST, first), itertools.repeat(again, FLOOD_BYTES_MAX // len(again))):
            for _ in range(ROUNDS_MAX):
                if not transport_of(connection).is_paused or is_over(connection):
                    break
                await asyncio.sleep(0)
            if is_over(connection):
                break
            connection.data_received(piece)
            taken += len(piece)
        return taken

    transport, seen, taken = served(feed)

    assert taken <= TAKEN_BYTES_MAX
    assert transport.written[9:12] in (b"400", b"431")
    assert transport.is_over
    assert seen == []


@pytest.mark.parametrize("name", FAIR)
def test_a_fair_request_is_served_and_its_trailers_are_nobodys_headers(name):
    body, content = FAIR[name]

    def feed(connection):
        for piece in pieces(POST + body):
            connection.data_received(piece)

    transport, seen, _ = served(feed)

    ((before, got, after),) = seen
    assert transport.written.startswith(b"HTTP/1.1 200")
    assert content is None or got == content
    assert before == after == [(b"host", b"a"), (b"transfer-encoding", b"chunked")]


def asked(send):
    """(status, body) of the answer of a server that does `send(writer)`; the body may be "broken"."""

    async def run():
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            try:
                await send(writer)
            except OSError:
                pass
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            to = Tcp(*server.sockets[0].getsockname())
            got = await exchange(to, "GET", b"/", [(b"host", b"a")], b"")
            try:
                return got.status, b"".join([chunk async for chunk in got.body])
            except BodyBroken:
                return got.status, "broken"

    return asyncio.run(run())


@pytest.mark.parametrize("name", FLOODS)
def test_an_answer_that_floods_breaks_off(name):
    first, again = FLOODS[name]

    async def send(writer):
        writer.write(ANSWER + first)
        for _ in range(FLOOD_BYTES_MAX // len(again)):
            writer.write(again)
            await writer.drain()
        writer.write(b"\r\n\r\n")

    assert asked(send) == (200, "broken")


@pytest.mark.parametrize("name", FAIR)
def test_a_fair_answer_is_read(name):
    body, content = FAIR[name]

    async def send(writer):
        writer.write(ANSWER + body)
        await writer.drain()

    status, got = asked(send)

    assert status == 200
    assert got == content if content is not None else got != "broken"


@pytest.mark.parametrize("status", [0, 99, 104, 199])
@pytest.mark.parametrize(
    "before", ["content-length: 5\r\n\r\nhello", "transfer-encoding: chunked\r\n\r\n" + HELLO]
)
def test_a_body_before_the_answer_is_no_part_of_it(status, before):
    async def send(writer):
        writer.write(b"HTTP/1.1 %03d X\r\n%b" % (status, before.encode()) + ANSWER + HELLO.encode())

    with pytest.raises(ExchangeError):
        asked(send)
