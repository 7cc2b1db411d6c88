"""Uses in a cluster, of tokens and of what is dated: a follower tells the leader, which writes them down."""

import asyncio

import pytest

from edgestead.server.control.uses import UsesPart
from edgestead.usecases.account.dated_uses import Key
from tests.support.api import LocalApi


class Data:
    def __init__(self, store):
        self.read, self._store = store.read, store

    async def write(self, fn):
        return await asyncio.wrap_future(self._store.write(fn))


@pytest.fixture
def api(tmp_path):
    made = LocalApi(tmp_path)
    yield made
    made.close()


def used_us(api):
    return [used for _, used in api.store.read(lambda r: r.rows("select token_id, used_us from token_uses"))]


def test_what_a_follower_has_seen_is_written_by_the_leader_and_never_an_older_use(api):
    [(token_id,)] = api.store.read(lambda r: r.rows("select id from tokens"))

    async def run():
        leader = UsesPart(Data(api.store))
        follower = UsesPart(Data(api.store), lambda: False)
        follower.pass_on = leader.take
        for seen_us, others_us, kept in ((5, 3, 5), (7, 9, 9), (8, 0, 9)):
            follower.uses.note(token_id, seen_us)
            if others_us:
                leader.uses.note(token_id, others_us)
            await follower._write_once()
            await leader._write_once()
            assert used_us(api) == [kept]
        told = []
        follower.pass_on = lambda content: told.append(content)
        await follower._write_once()
        assert told == []  # nothing twice

    asyncio.run(run())


def test_a_leader_that_was_not_told_writes_an_older_use_over_none(api):
    """A process that followed for long and leads then has seen less than those before it."""
    [(token_id,)] = api.store.read(lambda r: r.rows("select id from tokens"))

    async def run():
        before, now = (UsesPart(Data(api.store)) for _ in range(2))
        before.uses.note(token_id, 9)
        now.uses.note(token_id, 5)
        await before._write_once()
        await now._write_once()

    asyncio.run(run())
    assert used_us(api) == [9]


def test_uses_of_what_is_dated_are_counted_wherever_they_came(api):
    """By whichever process leads: the counts of those before it stay."""
    [(token_id,)] = api.store.read(lambda r: r.rows("select id from tokens"))
    key = Key(token_id, "tunnels", "GET /x", "")

    async def run():
        leader, next_leader = UsesPart(Data(api.store)), UsesPart(Data(api.store))
        follower = UsesPart(Data(api.store), lambda: False)
        for one in (leader, next_leader, follower):
            api.store.read(one._load)
        follower.pass_on_dated = leader.take_dated
        for now_us in (7, 8):
            follower.dated.note(key, now_us)
        leader.dated.note(key, 5)
        assert [row.uses for row in api.store.read(follower.dated.rows)] == [2]
        for one in (follower, leader, follower):  # nothing is told twice
            await one._write_once()
        next_leader.dated.note(key, 6)
        await next_leader._write_once()
        for one in (leader, next_leader, follower):
            assert [row[4:] for row in api.store.read(one.dated.rows)] == [(4, 5, 8)]

    asyncio.run(run())


def uses_of(api, part):
    return [row.uses for row in api.store.read(part.dated.rows)]


def test_a_follower_that_leads_when_it_tells_counts_its_own_once(api):
    [(token_id,)] = api.store.read(lambda r: r.rows("select id from tokens"))

    async def run():
        leads = []
        part = UsesPart(Data(api.store), lambda: bool(leads))
        api.store.read(part._load)
        part.pass_on_dated = part.take_dated
        part.dated.note(Key(token_id, "tunnels", "GET /x", ""), 7)
        await part._write_once()
        leads.append(1)
        await part._write_once()
        return UsesPart(Data(api.store))

    again = asyncio.run(run())
    api.store.read(again._load)
    assert uses_of(api, again) == [1]


@pytest.mark.parametrize("leads", [True, False])
def test_an_end_while_uses_are_written_or_told_counts_none_twice(api, monkeypatch, leads):
    """The cancelled round's write lands; so may what was just told."""
    monkeypatch.setattr("edgestead.server.control.uses.WRITE_SECONDS", 0)
    [(token_id,)] = api.store.read(lambda r: r.rows("select id from tokens"))

    class Slow(Data):
        async def write(self, fn):
            landed = asyncio.wrap_future(self._store.write(fn))
            begun.set()
            await asyncio.sleep(0.05)
            return await landed

    async def slow_take(content):
        await leader.take_dated(content)
        begun.set()
        await asyncio.get_running_loop().create_future()

    async def run():
        nonlocal begun, leader
        begun, leader = asyncio.Event(), UsesPart(Data(api.store))
        api.store.read(leader._load)
        part = UsesPart(Slow(api.store), lambda: leads)
        part.pass_on_dated = slow_take
        part.open()
        part.dated.note(Key(token_id, "tunnels", "GET /x", ""), 7)
        await begun.wait()
        part._may_write = lambda: True
        await part.close()
        await leader._write_once()

    begun = leader = None
    asyncio.run(run())
    again = UsesPart(Data(api.store))
    api.store.read(again._load)
    assert uses_of(api, again) == [1]
