"""Calls and requests in a cluster find the process that has their object, by maps that may be old.

The "processes" are on one loop, with Unix sockets in place of the nodes' port; each has a map of its own.
"""

import asyncio
import socket

import pytest

from edgestead.http1.messages import Body, Request, Response
from edgestead.http1.server import Server
from edgestead.objects import ids
from edgestead.objects.errors import ObjectReset, Overloaded
from edgestead.objects.runtime import spread as module
from edgestead.objects.runtime.calls import Reply, error_of
from edgestead.objects.runtime.shards import client_of
from edgestead.objects.runtime.spread import Owner, Reach, Spread
from edgestead.store.objectlog import WrongOwner

REF = ids.from_name("Counter", "a")
SECONDS_MAX = 180


class Map:
    """What one process knows; `newest` is what is so, and what a look shows."""

    def __init__(self, number, newest):
        self.number, self._newest, self.looks = number, newest, 0
        self.version, self._owner = newest.version, newest.owner

    def look(self):
        self.looks += 1
        self.version, self._owner = self._newest.version, self._newest.owner

    def slot_of(self, ref):
        return 7

    def version_of(self, ref):
        return self.version

    def has(self, ref):
        return self._owner == self.number

    async def owner(self, ref, since=-1):
        if self._owner is None or self.version < since:
            self.look()
        if self._owner is None or self.version < since:
            raise Overloaded("No process has it.")
        return Owner(self._owner, "", 0)

    def others(self):
        return [Owner(number, "", 0) for number in range(3) if number != self.number]

    async def looked(self):
        self.look()
        await asyncio.sleep(0)


class Newest:
    def __init__(self, owner):
        self.version, self.owner = 1, owner

    def move(self, owner):
        self.version, self.owner = self.version + 1, owner


class Node:
    def __init__(self, number):
        self.number, self.ran, self.refuses, self.go_on = number, 0, [], asyncio.Event()

    async def call(self, ref, method, arguments, *, ask_again=None):
        if self.refuses:
            raise self.refuses.pop()
        self.ran += 1
        if method == "wait":
            await self.go_on.wait()
        return Reply(True, b"%d by %d" % (self.ran, self.number))


class World:
    """Three processes. `dead` ones cannot be reached, of those that hang nobody hears that they cannot."""

    def __init__(self, folder, owner=0):
        self.folder, self.newest, self.dead = folder, Newest(owner), set()
        self.hangs, self.hanging = set(), 0
        self.nodes = [Node(number) for number in range(3)]
        self.maps = [Map(number, self.newest) for number in range(3)]
        self.spreads = [
            Spread(node, lambda request, permission: None, owners, self.reach)
            for node, owners in zip(self.nodes, self.maps, strict=True)
        ]

    def reach(self, owner):
        def way(kind):
            async def open_(make):
                if owner.number in self.dead:
                    raise ConnectionRefusedError("nobody listens")
                if owner.number in self.hangs:
                    self.hanging += 1
                    await asyncio.get_running_loop().create_future()
                path = str(self.folder / f"{kind}{owner.number}")
                await asyncio.get_running_loop().create_unix_connection(make, path)

            return open_

        return Reach(way("calls"), way("requests"))

    def listen(self, kind, number):
        made = socket.socket(socket.AF_UNIX)
        made.bind(str(self.folder / f"{kind}{number}"))
        made.listen()
        return made

    async def __aenter__(self):
        for number, spread in enumerate(self.spreads):
            await spread.open(self.listen("calls", number))
        return self

    async def __aexit__(self, *_):
        for spread in self.spreads:
            await spread.finish(1)
            await spread.close()

    @property
    def ran(self):
        return [node.ran for node in self.nodes]


def play(tmp_path, scene, **options):
    async def main():
        async with asyncio.timeout(SECONDS_MAX), World(tmp_path, **options) as world:
            await scene(world)

    asyncio.run(main())


def error(reply):
    assert not reply.ok
    return error_of(reply)


def test_a_call_runs_where_its_object_is(tmp_path):
    async def scene(world):
        for spread in world.spreads:
            assert (await spread.call(REF, "add", b"")).data.endswith(b"by 0")
        assert world.ran == [3, 0, 0]

    play(tmp_path, scene)


def test_an_asker_with_an_old_map_hears_of_a_newer_one_and_asks_once_more(tmp_path):
    async def scene(world):
        world.newest.move(2)
        world.maps[0].look()

        assert (await world.spreads[1].call(REF, "add", b"")).data == b"1 by 2"

        assert world.ran == [0, 0, 1]
        assert world.maps[1].version == 2

    play(tmp_path, scene)


def test_who_is_asked_looks_at_a_map_that_is_not_older_than_the_askers(tmp_path):
    async def scene(world):
        world.newest.move(2)
        world.maps[1].look()

        assert (await world.spreads[1].call(REF, "add", b"")).data == b"1 by 2"

        assert world.maps[2].looks == 1

    play(tmp_path, scene)


def test_an_object_that_moves_at_that_moment_is_called_where_it_went(tmp_path):
    async def scene(world):
        world.newest.move(1)
        world.nodes[0].refuses.append(WrongOwner("moved", 2))

        assert (await world.spreads[0].call(REF, "add", b"")).data == b"1 by 1"

    play(tmp_path, scene)


def test_a_call_that_finds_its_object_elsewhere_again_and_again_is_refused(tmp_path):
    async def scene(world):
        world.nodes[0].refuses += [WrongOwner("moved", 1)] * (module.WRONG_MAX + 2)

        refusal = error(await world.spreads[1].call(REF, "add", b""))

        assert isinstance(refusal, Overloaded)
        assert world.ran == [0, 0, 0]
        assert len(world.nodes[0].refuses) == 2, "so many times, and then it ends"

    play(tmp_path, scene)


def test_a_process_that_died_is_tried_until_another_has_its_objects(tmp_path):
    async def scene(world):
        world.dead.add(0)
        calling = asyncio.create_task(world.spreads[1].call(REF, "add", b""))
        while world.maps[1].looks < 3:  # noqa: ASYNC110 - a fake's number has no event
            await asyncio.sleep(0)
        world.newest.move(2)

        assert (await calling).data == b"1 by 2"

    play(tmp_path, scene)


def test_a_process_that_stays_away_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNREACHED_SECONDS_MAX", 0.05)

    async def scene(world):
        world.dead.add(0)

        assert isinstance(error(await world.spreads[1].call(REF, "add", b"")), Overloaded)

    play(tmp_path, scene)


def test_a_call_whose_process_ends_is_not_asked_again(tmp_path):
    """It may have run."""

    async def scene(world):
        calling = asyncio.create_task(world.spreads[1].call(REF, "wait", b""))
        while world.ran[0] == 0:  # noqa: ASYNC110 - a fake's number has no event
            await asyncio.sleep(0.001)
        world.spreads[1]._known[0].asker._connection.transport.abort()

        assert isinstance(error(await calling), ObjectReset)
        assert world.ran == [1, 0, 0]
        world.nodes[0].go_on.set()

    play(tmp_path, scene)


def test_an_object_that_nobody_has_is_refused(tmp_path):
    async def scene(world):
        assert isinstance(error(await world.spreads[1].call(REF, "add", b"")), Overloaded)

    play(tmp_path, scene, owner=None)


def test_ways_to_processes_that_are_gone_are_forgotten(tmp_path):
    async def scene(world):
        await world.spreads[1].call(REF, "add", b"")
        world.maps[1].others = lambda: [Owner(2, "", 0)]
        world.newest.move(2)
        world.maps[1].look()

        await world.spreads[1].call(REF, "add", b"")

        assert set(world.spreads[1]._known) == {2}

    play(tmp_path, scene)


@pytest.mark.parametrize("hangs", ["connecting", "running"])
def test_a_process_that_is_gone_and_never_hangs_up_is_waited_for_no_longer(tmp_path, hangs):
    async def scene(world):
        if hangs == "connecting":
            world.hangs.add(0)
        calling = asyncio.create_task(world.spreads[1].call(REF, "wait", b""))
        while not (world.ran[0] or world.hanging):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
        world.maps[1].others = lambda: [Owner(2, "", 0)]
        world.newest.move(2)
        world.nodes[2].go_on.set()
        world.maps[1].look()

        world.spreads[1].forget_gone()

        reply = await calling
        if hangs == "connecting":
            assert reply.data == b"1 by 2", "nothing had run"
        else:
            assert isinstance(error(reply), ObjectReset)
        world.nodes[0].go_on.set()

    play(tmp_path, scene)


def test_a_request_to_a_process_that_is_gone_is_waited_for_no_longer(tmp_path):
    async def scene(world):
        world.hangs.add(0)
        passing = asyncio.create_task(world.spreads[1].pass_on(REF, request()))
        while not world.hanging:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
        world.maps[1].others = lambda: [Owner(2, "", 0)]

        world.spreads[1].forget_gone()

        with pytest.raises(OSError, match="is gone"):
            await passing

    play(tmp_path, scene)


def request():
    return Request("POST", b"/x", [(b"host", b"a")], "192.0.2.9", Body(lambda: None, ended=True))


@pytest.mark.parametrize("knows", [True, False], ids=["newest map", "old map"])
def test_a_request_reaches_the_owner_over_who_had_the_object_before(tmp_path, knows):
    async def scene(world):
        servers = []
        for number, spread in enumerate(world.spreads):
            here = spread.of_passed_on()

            async def handle(asked, here=here, number=number):
                asked.client = client_of(asked)
                if not here.is_local(REF):
                    return await here.pass_on(REF, asked)
                return Response(200, [], b"%d for %s" % (number, asked.client.encode()))

            servers.append(Server(handle, lambda *_: Response(400, [], b""), client_of=client_of))
            await servers[-1].open([world.listen("requests", number)])
        world.newest.move(2)
        world.maps[0].look()  # who gave it knows
        if knows:
            world.maps[1].look()
        answer = await world.spreads[1].pass_on(REF, request())

        assert b"".join([chunk async for chunk in answer.body]) == b"2 for 192.0.2.9"
        for server in servers:
            await server.close(1)

    play(tmp_path, scene)


def test_a_process_that_says_nothing_is_named_to_who_asks_all(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "OTHERS_SECONDS_MAX", 0.01)

    async def scene(world):
        world.hangs.update((0, 2))
        world.maps[1].others = lambda: [Owner(0, "", 0, "amsterdam")]

        with pytest.raises(OSError, match="process 0 of node amsterdam has not answered within"):
            await world.spreads[1].ask_others(request())

    play(tmp_path, scene)
