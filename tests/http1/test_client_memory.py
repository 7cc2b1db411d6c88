"""What an exchange with another process of ours leaves: no garbage, and a connection to use again."""

import asyncio
import gc
import socket

import pytest

from edgestead.http1 import client
from edgestead.http1.answering import Answering
from edgestead.http1.client import Kept, Unix, exchange
from edgestead.http1.messages import Response
from edgestead.http1.protocol import Protocol
from edgestead.http1.server import Server
from tests.edge.bench import Transport

CROWD = 200
KINDS = (client._Exchange, Protocol, Answering)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "closed"])
def test_an_exchange_leaves_no_cycle_for_the_collector(tmp_path, is_kept):
    """A crowd left 17 objects each; five collections a second took 10 ms, in which nobody was served."""

    async def answer(request):
        return Response(200, [(b"a", b"b")], b"content")

    async def main():
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "socket"))
        server = Server(answer, lambda *_: Response(400, [], b""))
        await server.open([bound])
        to = Unix(str(tmp_path / "socket"))
        kept = Kept(to)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                found = await exchange(kept if is_kept else to, "GET", b"/", [(b"host", b"x")], b"")
                assert b"".join([chunk async for chunk in found.body]) == b"content"
            del found
            while len(server._open) > is_kept:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            return [sum(isinstance(one, kind) for one in gc.get_objects()) for kind in KINDS]
        finally:
            gc.enable()
            kept.close()
            await server.close(1)

    open_at_the_server = int(is_kept)
    assert asyncio.run(main()) == [0, open_at_the_server, open_at_the_server]


def test_a_connection_that_the_other_end_has_closed_is_not_used_again():
    """Between the end and `connection_lost` is a round of the loop, in which a request would be lost."""
    kept, links = Kept(Unix("/nowhere")), [client._Link() for _ in range(2)]
    for link in links:
        link.connection_made(Transport())
        kept.give_back(link)
    links[1].transport.close()

    assert kept.take() is links[0]
    assert kept.take() is None


def test_a_crowd_that_comes_again_opens_no_connection(tmp_path):
    """Of those that end at once 64 were kept: the others were opened, accepted and closed each time."""
    opened = []

    async def answer(request):
        await asyncio.sleep(0)
        return Response(200, [], b"content")

    async def main():
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "socket"))
        server = Server(answer, lambda *_: Response(400, [], b""))
        connection = server.connection
        server.connection = lambda: opened.append(1) or connection()
        await server.open([bound])
        kept = Kept(Unix(str(tmp_path / "socket")))

        async def ask():
            found = await exchange(kept, "GET", b"/", [(b"host", b"x")], b"")
            assert b"".join([chunk async for chunk in found.body]) == b"content"

        for _ in range(3):
            await asyncio.gather(*(ask() for _ in range(CROWD)))
        kept.close()
        await server.close(1)

    asyncio.run(main())
    assert len(opened) <= CROWD
