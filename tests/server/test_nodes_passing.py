"""Connections of the nodes' port that are a worker's: calls and HTTP go through it, if the role allows."""

import asyncio
import os
import socket

import pytest

from edgestead.http1 import client
from edgestead.http1.messages import Response
from edgestead.http1.server import Server
from edgestead.objects.runtime.wire import Answering, Asker, Lost
from edgestead.server.nodes.passing import CALLS, REQUESTS, to_workers, way_to
from tests.support.nodes import Cluster

SECONDS_MAX = 300
BIG = os.urandom(5_000_000)


def play(tmp_path, scene):
    async def main():
        cluster = Cluster(tmp_path)
        cluster.main = cluster.node("one", "control", "objects")
        paths = {what: [str(tmp_path / f"{what}{place}") for place in range(2)] for what in ("c", "r")}
        async with (
            asyncio.timeout(SECONDS_MAX),
            cluster.listening(to_workers(paths["c"], paths["r"])),
        ):
            await scene(cluster, paths)

    asyncio.run(main())


async def answering(path, answer):
    return await asyncio.get_running_loop().create_unix_server(lambda: Answering(answer, set()), path)


def test_calls_reach_the_worker_of_that_place_whole(tmp_path):
    async def scene(cluster, paths):
        servers = []
        for place in range(2):

            async def answer(body, place=place):
                return b"%d " % place + body

            servers.append(await answering(paths["c"][place], answer))
        member = cluster.node("two", "objects")
        for place in range(2):
            asker = Asker(way_to(member, cluster.address, CALLS, place))
            assert await asker.ask(BIG) == b"%d " % place + BIG
            assert await asyncio.gather(*(asker.ask(b"%d" % n) for n in range(50))) == [
                b"%d %d" % (place, n) for n in range(50)
            ]
            asker.close()
        for server in servers:
            server.close()

    play(tmp_path, scene)


def test_requests_stream_both_ways(tmp_path):
    async def scene(cluster, paths):
        async def handle(request):
            return Response(200, [], await request.body.read(len(BIG)))

        server = Server(handle, lambda *_: Response(400, [], b""))
        listener = listening(paths["r"][1])
        await server.open([listener])
        kept = client.Kept(client.Own(way_to(cluster.node("two", "objects"), cluster.address, REQUESTS, 1)))
        for _ in range(2):
            answer = await client.exchange(kept, "POST", b"/", [(b"host", b"a")], BIG)
            assert b"".join([chunk async for chunk in answer.body]) == BIG
        kept.close()
        await server.close(1)

    play(tmp_path, scene)


def listening(path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(path)
    made.listen()
    return made


def test_a_worker_that_is_away_is_not_connected_to(tmp_path):
    """So that who has a call for it knows that it did not run."""

    async def scene(cluster, paths):
        asker = Asker(way_to(cluster.node("two", "objects"), cluster.address, CALLS, 0))

        with pytest.raises(ConnectionError, match="is not there") as caught:
            await asker.ask(b"")

        assert not isinstance(caught.value, Lost)

    play(tmp_path, scene)


def test_a_worker_that_ends_with_a_question_open_loses_it(tmp_path):
    async def scene(cluster, paths):
        asked = asyncio.Event()
        ends = []

        class Silent(asyncio.Protocol):
            def connection_made(self, transport):
                ends.append(transport)

            def data_received(self, data):
                asked.set()

        server = await asyncio.get_running_loop().create_unix_server(Silent, paths["c"][0])
        asker = Asker(way_to(cluster.node("two", "objects"), cluster.address, CALLS, 0))
        asking = asyncio.create_task(asker.ask(b"x"))
        await asked.wait()
        ends[0].abort()

        with pytest.raises(Lost):
            await asking
        server.close()

    play(tmp_path, scene)


def test_a_node_without_the_role_gets_no_connection(tmp_path):
    async def scene(cluster, paths):
        asker = Asker(way_to(cluster.node("edge", "edge"), cluster.address, CALLS, 0))

        with pytest.raises(ConnectionError, match="is not there"):
            await asker.ask(b"")

    play(tmp_path, scene)
