"""Asking for targets: nobody waits for a slow one, the pace holds, and little is said of many failures."""

import asyncio
import logging
from datetime import date
from ipaddress import ip_address

import pytest

from edgestead.model.call import Actor, Call, Profile
from edgestead.model.counters import private_page, slot
from edgestead.model.served import ServedRRset
from edgestead.server.control import resolving, targets
from edgestead.server.control.targets import TARGETS_PER_POLL_MAX, Targets, resolver_at
from edgestead.tables import flattened
from edgestead.usecases.serving.flattening import Answer
from tests.support.api import LocalApi

NOW_US = 2_000_000_000_000_000
FOUND = Answer((ServedRRset(1, 60, (ip_address("198.51.100.1").packed,)),))


class World:
    """An API with one zone, and a resolver that is a coroutine function. It is the data of `Targets`, too."""

    def __init__(self, folder):
        self.api = LocalApi(folder)
        self.zone = "/zones/" + self.api.post("/zones", {"name": "example.com"}).result["id"]
        self.read = self.api.store.read
        self.asked = []
        self.broken = False
        self.answer = self.found
        self.page = private_page()

    async def write(self, fn):
        if self.broken:
            raise OSError("the disk")
        return self.api.store.write(fn).result().value

    async def found(self, _name):
        return FOUND

    async def nothing(self, _name):
        return None

    def aliases(self, *target_names):
        for number, target in enumerate(target_names):
            body = {"type": "CNAME", "name": f"w{number}-{target.partition('.')[0]}", "content": target}
            answer = self.api.post(f"{self.zone}/dns_records", body | {"settings": {"flatten_cname": True}})
            assert answer.status == 200

    def targets(self):
        actor = Actor(kind="account", id="")
        call = Call(actor=actor, as_of=date(2026, 1, 1), profile=Profile.SPEC, now_us=NOW_US, request_id="")

        async def ask(name):
            self.asked.append(name)
            return await self.answer(name)

        return Targets(self, self.api.platform, self.page, lambda: call, lambda: ask)

    def known(self):
        """(all targets, those without an answer)"""
        return self.read(flattened.counts)[:2]

    def counted(self, outcome):
        return self.page.cells[slot("edge_flattening_asked_total", outcome)]


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.api.close()


def run(coroutine):
    asyncio.run(asyncio.wait_for(coroutine, 300))


async def until(is_true):
    while not is_true():  # noqa: ASYNC110
        await asyncio.sleep(0)


def test_who_is_asked_now_does_not_wait_for_one_that_is_slow(world):
    world.aliases("slow.example.net")

    async def main():
        come = asyncio.Event()

        async def answer(name):
            if name == "slow.example.net":
                await come.wait()
            return FOUND

        world.answer = answer
        asking = world.targets()
        await asking.poll()
        await asyncio.to_thread(world.aliases, "quick.example.net")
        await asking.poll()
        await until(lambda: world.known() == (2, 1))
        await asking.poll()
        come.set()
        await until(lambda: world.known() == (2, 0))

    run(main())
    assert world.asked == ["slow.example.net", "quick.example.net"]  # and nobody twice
    assert world.counted("answered") == 2


def test_a_poll_asks_no_more_than_its_share_also_while_others_are_on_their_way(world):
    share = TARGETS_PER_POLL_MAX
    old, new = ([f"{age}{number}.example.net" for number in range(share + 4)] for age in ("old", "new"))
    world.aliases(*old)

    async def main():
        come = asyncio.Event()

        async def answer(_name):
            await come.wait()
            return FOUND

        world.answer = answer
        asking = world.targets()
        await asking.poll()
        await until(lambda: len(world.asked) == share)
        await asyncio.to_thread(world.aliases, *new)
        await asking.poll()
        await until(lambda: len(world.asked) == 2 * share)
        come.set()
        while world.known()[1]:
            await asking.poll()
            await asyncio.sleep(0)

    run(main())
    assert set(world.asked[share : 2 * share]) < set(new)
    assert sorted(world.asked) == sorted(old + new)


def test_a_target_of_a_deleted_record_is_forgotten_without_a_question(world):
    world.aliases("gone.example.net")
    (record,) = world.api.get(f"{world.zone}/dns_records").result
    world.api.delete(f"{world.zone}/dns_records/{record['id']}")
    assert world.known() == (1, 1)

    run(world.targets().poll())

    assert (world.known(), world.asked) == ((0, 0), [])


def test_many_failures_are_one_line(world, caplog):
    caplog.set_level(logging.INFO)
    world.aliases(*(f"t{number}.example.net" for number in range(5)))
    world.answer = world.nothing

    async def main():
        await world.targets().poll()
        await until(lambda: world.counted("failed") == 5)

    run(main())
    (line,) = [one.getMessage() for one in caplog.records if one.name == targets.__name__]
    assert "example.net is, the target of a flattened alias (failures since the last such line: 1)" in line


def test_an_answer_that_cannot_be_kept_is_asked_for_again(world, caplog):
    world.aliases("t.example.net")

    async def main():
        asking = world.targets()
        world.broken = True
        await asking.poll()
        await until(lambda: caplog.messages)
        world.broken = False
        while world.known() != (1, 0):
            await asking.poll()
            await asyncio.sleep(0)

    run(main())
    assert world.asked == ["t.example.net"] * 2


def test_a_machine_without_a_resolver_leaves_its_targets_unknown(world, monkeypatch):
    def none(_address):
        raise resolving.NoResolver

    monkeypatch.setattr(resolving, "resolver_at", none)
    world.aliases("t.example.net")

    async def main():
        asking = Targets(
            world, world.api.platform, world.page, world.targets()._call, lambda: resolver_at(None)
        )
        await asking.poll()
        await until(lambda: world.counted("failed") == 1)

    run(main())
    assert world.known() == (1, 1)


def test_the_questions_on_their_way_are_bounded_by_their_time():
    on_their_way = targets.TARGETS_PER_POLL_MAX / targets.POLL_SECONDS * resolving.QUESTION_SECONDS_MAX

    assert on_their_way <= 400  # a socket for each of two types: well under what a process may open
