"""Connections to workers of another machine end with the one beside them that carries nothing.

That the kernel ends that one when its machine is not reached: `tests/cluster/test_cut_ways.py`.
"""

import asyncio
import socket

import pytest

from edgestead.objects.runtime.wire import Answering, Asker, Lost
from edgestead.server.nodes import alive as module
from edgestead.server.nodes import port
from edgestead.server.nodes.alive import Machines
from edgestead.server.nodes.passing import ALIVE, CALLS, to_workers
from tests.support.nodes import Cluster

SECONDS_MAX = 300
NOBODY = "127.0.0.1:1"


class World:
    """A node with one worker, which echoes, and another node that asks it."""

    def __init__(self, folder):
        self.cluster = Cluster(folder)
        self.cluster.main = self.cluster.node("one", "control", "objects")
        self.path = str(folder / "c")
        self.handlers = to_workers([self.path], [])
        self.opened, self.links = 0, []
        self.go_on = asyncio.Event()
        self.handlers[ALIVE] = self._counted(self.handlers[ALIVE])
        self.machines = Machines(self.cluster.node("two", "objects"))

    def _counted(self, accept):
        world = self

        class Counted(asyncio.Protocol):
            def connection_made(self, transport):
                world.opened += 1
                world.links.append(transport)

        def counted(peer):
            accept(peer)
            return Counted()

        return counted

    async def answer(self, body):
        if body == b"wait":
            await self.go_on.wait()
        return body

    def asker(self):
        return Asker(self.machines.way_to(self.cluster.address, CALLS, 0))


def play(tmp_path, scene, *, is_old=False):
    async def main():
        world = World(tmp_path)
        if is_old:
            del world.handlers[ALIVE]
        loop = asyncio.get_running_loop()
        worker = await loop.create_unix_server(lambda: Answering(world.answer, set()), world.path)
        async with asyncio.timeout(SECONDS_MAX), world.cluster.listening(world.handlers) as opened:
            await scene(world, opened)
            world.go_on.set()
            world.machines.close()
        worker.close()

    asyncio.run(main())


def test_what_is_open_ends_with_it_and_the_next_question_is_answered(tmp_path):
    async def scene(world, opened):
        asker, another = world.asker(), world.asker()
        assert await asyncio.gather(asker.ask(b"1"), another.ask(b"2")) == [b"1", b"2"]
        assert world.opened == 1, "one of each machine"
        asking = asyncio.create_task(asker.ask(b"wait"))
        await asyncio.sleep(0)

        world.links[0].abort()

        with pytest.raises(Lost):
            await asking
        assert await asker.ask(b"3") == b"3"
        assert world.opened == 2

    play(tmp_path, scene)


def test_a_connection_that_is_made_when_it_ends_asks_nothing(tmp_path):
    async def scene(world, opened):
        asker = world.asker()
        await asker.ask(b"")
        (watched,) = world.machines._watched.values()
        reached = watched.reached

        async def and_then_lost():
            silent = await reached()
            silent.transport.abort()
            return silent

        watched.reached = and_then_lost
        another = world.asker()

        with pytest.raises(ConnectionError, match="not reached") as caught:
            await another.ask(b"")
        assert not isinstance(caught.value, Lost)

    play(tmp_path, scene)


def test_a_node_of_an_older_release_is_asked_without_it(tmp_path):
    async def scene(world, opened):
        assert await world.asker().ask(b"1") == b"1"
        assert await world.asker().ask(b"2") == b"2"

    play(tmp_path, scene, is_old=True)


def test_no_call_ends_when_a_node_of_an_older_release_is_to_be_asked_for_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNKNOWN_SECONDS", 0.0)

    async def scene(world, opened):
        asker, another = world.asker(), world.asker()
        await asker.ask(b"1")
        asking = asyncio.create_task(asker.ask(b"wait"))
        await asyncio.sleep(0)

        assert await another.ask(b"2") == b"2"
        assert not asking.done()
        world.go_on.set()
        assert await asking == b"wait"

    play(tmp_path, scene, is_old=True)


def test_a_machine_that_is_not_reached_is_forgotten(tmp_path):
    async def scene(world, opened):
        gone = world.machines.way_to(NOBODY, CALLS, 0)
        with pytest.raises(OSError, match=r"."):
            await gone(asyncio.Protocol)
        await world.asker().ask(b"")

        assert list(world.machines._watched) == [world.cluster.address]

    play(tmp_path, scene)


def test_a_machine_that_refuses_is_not_reached(tmp_path):
    async def scene(world, opened):
        opened.close()
        await asyncio.sleep(0)

        with pytest.raises(OSError, match="Connect"):
            await world.asker().ask(b"")

    play(tmp_path, scene)


def test_both_ends_ask_whether_the_other_is_there(tmp_path):
    async def scene(world, opened):
        asker = world.asker()
        await asker.ask(b"")
        ours = asker._connection.transport.get_extra_info("socket")
        theirs = world.links[0].get_extra_info("socket")

        for link in (ours, theirs):
            assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == port.SILENT_SECONDS
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == port.ASKS

    play(tmp_path, scene)


def test_many_connections_of_one_purpose_leave_room_for_others(tmp_path, monkeypatch):
    """Requests cannot keep followers out."""
    monkeypatch.setattr(port, "LINKS_MAX", 1)

    async def scene(world, opened):
        first, second = world.asker(), world.asker()
        assert await first.ask(b"1") == b"1"

        with pytest.raises(ConnectionError):
            await second.ask(b"2")

        assert opened._counts == {"edgestead-alive": 1, "edgestead-calls": 1}
        first.close()
        while opened._counts["edgestead-calls"]:  # noqa: ASYNC110 - the port has no event for it
            await asyncio.sleep(0.001)
        assert await second.ask(b"2") == b"2"

    play(tmp_path, scene)


def test_a_machine_that_one_connection_does_not_reach_holds_no_other(tmp_path):
    async def scene(world, opened):
        asker = world.asker()
        await asker.ask(b"")
        asking = asyncio.create_task(asker.ask(b"wait"))
        await asyncio.sleep(0)
        silent = next(one for one, link in opened._links.items() if link.purpose == "edgestead-alive")

        opened.left(silent, TimeoutError(110, "Connection timed out"))

        with pytest.raises(Lost):
            await asking
        assert opened._counts["edgestead-alive"] == 0

    play(tmp_path, scene)


def test_who_runs_no_objects_has_no_such_connection(tmp_path):
    async def scene(world, opened):
        world.machines = Machines(world.cluster.node("edge", "edge"))

        with pytest.raises(ConnectionError):
            await world.asker().ask(b"")

    play(tmp_path, scene)
