"""Lists in a cluster are linearizable while processes are killed, stand still, start, drain and end."""

import asyncio
import itertools
import time
from contextlib import closing, contextmanager
from itertools import product
from random import Random

import pytest

from edgestead.cluster.forms import Forms
from edgestead.cluster.placement import SLOTS, wanted
from edgestead.objects import ids
from edgestead.postgres.connection import Link
from edgestead.postgres.slots import drain, look
from tests.cluster.list_checker import faults
from tests.cluster.objects_processes import Processes

NAMES = [f"list-{number}" for number in range(6)]
PATIENCE_SECONDS = 300
MANY_FAULTS = 100
APPENDED = ("object_log", "object_chunks")
FULL = "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';"
GOES_BACK = (
    "SELECT number FROM (SELECT number, time_us, lag(time_us) OVER (PARTITION BY number ORDER BY position) "
    "AS before FROM object_log) AS times WHERE time_us < before"
)


async def until_read(world, process, name):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await world.read(process, name):  # noqa: ASYNC110 - it may be refused for a while
            await asyncio.sleep(0.05)


async def client(world, seed, stop):
    random = Random(seed)
    while not stop.is_set():
        process, name = random.choice(world.living), random.choice(NAMES)
        await (world.append if random.random() < 0.5 else world.read)(process, name)
        await asyncio.sleep(random.choice((0, 0.001, 0.01)))


async def play(dsn, folder, scene):
    world = Processes(dsn, folder)
    try:
        for node in "abc":
            await world.start(node)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as clients:  # one that fails ends the scene, which would wait for it
            for seed in range(6):
                clients.create_task(client(world, seed, stop))
            await scene(world)
            stop.set()
        for name in NAMES:
            await until_read(world, world.living[0], name)
    finally:
        await world.close()
    return world


async def acknowledged(world, more):
    """So many more appends."""

    wanted = world.acknowledged + more
    async with asyncio.timeout(PATIENCE_SECONDS):
        while world.acknowledged < wanted:  # noqa: ASYNC110 - clients note it in a list
            await asyncio.sleep(0.01)


async def kills(world, rounds=2):
    """The place of a process that was killed has another one, at once or after others took its slots."""
    random = Random(rounds)
    for number in range(rounds):
        await acknowledged(world, 50)
        killed = random.choice(world.living)
        killed.kill()
        await acknowledged(world, 20 if number % 2 else 0)
        await world.start(killed.name)


async def zombie(world):
    """It answers whoever asks it: nothing that is old."""
    await acknowledged(world, 50)
    still, had = next(((one, lists) for one in world.living if (lists := lists_of(one))), (None, []))
    for name in had:
        await until_read(world, still, name)
    assert had
    still.stand_still()
    await until_gone(world, still)
    for name in had:
        await until_appended(world, name)
    assert not any(await asyncio.gather(*(world.read(still, name) for name in had))), "an old answer left"
    for name in had:
        assert await world.append(still, name) is not None, "a process without its row has written"
    return still


def lists_of(process):
    """Those that it has."""
    return [name for name in NAMES if process.clustered.has(ids.from_name("Numbers", name))]


async def until_appended(world, name):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await world.append(world.living[0], name) is not None:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)


async def drains(world):
    await acknowledged(world, 50)
    await hand_over(world, "a")
    await acknowledged(world, 300)


async def hand_over(world, node):
    """All slots of its process go to others."""
    process = next(process for process in world.living if process.name == node)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (had := len(process.clustered.slots.held)):
            await process.clustered.looked()
        with closing(Link(world.dsn)) as link:
            drain(link, node)
        while process.clustered.slots.held:
            await process.clustered.looked()
    world.handed_over += had


async def clocks(world):
    """An hour behind, an hour ahead: the places of those that end are taken by clocks that differ."""
    for node, ahead_s in (("a", -3_600), ("b", 3_600), ("a", 3_600)):
        await acknowledged(world, 30)
        next(process for process in world.living if process.name == node).kill()
        await acknowledged(world, 10)
        await world.start(node, ahead_s)
    await acknowledged(world, 50)
    with closing(Link(world.dsn)) as link:
        assert link.rows(GOES_BACK) == [], "a later commit of an object has an earlier time"


@contextmanager
def each_append(dsn, does):
    """Whoever writes rows of objects meets this in the database; so does who looks whether there is room."""
    with closing(Link(dsn)) as link:
        link.script(
            f"CREATE FUNCTION meets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} RETURN NULL; END $$"
        )
        for table in APPENDED:
            link.script(f"CREATE TRIGGER meets BEFORE INSERT ON {table} EXECUTE FUNCTION meets()")
        try:
            yield
        finally:
            link.script("DROP FUNCTION meets() CASCADE")


async def full_disk(world):
    """Writes are refused and reads answered until there is room; nobody loses a slot or starts anew."""
    await acknowledged(world, 50)
    with each_append(world.dsn, FULL):
        for process, name in product(world.living, NAMES):
            while await world.append(process, name) is None:  # one that was under way
                pass
            await until_read(world, process, name)
        assert any(process.log.room.is_full for process in world.living)
    await acknowledged(world, 50)
    assert len(world.living) == len(world.all) == 3


async def releases(world):
    """One process after the other begins anew with the next release, which writes in two forms."""
    for node in "abc":
        await acknowledged(world, 40)
        next(process for process in world.living if process.name == node).kill()
        await world.start(node, forms=Forms(1, 2))
    await acknowledged(world, 40)


async def slow_disk(world):
    """Renewals wait for no commit."""
    with each_append(world.dsn, "PERFORM pg_sleep(0.5);"):
        await acknowledged(world, 20)
    assert len(world.living) == len(world.all) == 3


async def many_kills(world):
    await kills(world, 200)


async def many_faults(world):
    """A process is killed, stands still, or hands its slots over, one behind the other."""
    random = Random(MANY_FAULTS)
    for _ in range(MANY_FAULTS):
        await settled(world)
        fault = random.choice(("kill", "stand still", "hand over"))
        if fault == "kill":
            await kills(world, 1)
        elif fault == "stand still":
            still = await zombie(world)
            still.end()
            await world.start(still.name)
        else:
            node = random.choice(world.living).name
            await hand_over(world, node)
            await acknowledged(world, 50)
            with closing(Link(world.dsn)) as link:
                drain(link, node, ends=True)


async def settled(world):
    """Each slot is where it is wanted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with closing(Link(world.dsn)) as link:
            while True:
                view = look(link)
                held = [view.slots[slot].holder if slot in view.slots else None for slot in range(SLOTS)]
                if len(view.workers) == len(world.living) and held == wanted(view.workers.values()):
                    return
                await asyncio.sleep(0.1)


SCENES = [kills, zombie, drains, clocks, full_disk, slow_disk, releases]
LONG = [pytest.param(scene, marks=pytest.mark.long) for scene in (many_kills, many_faults)]


@pytest.mark.parametrize("scene", [*SCENES, *LONG], ids=lambda scene: scene.__name__)
def test_lists_are_linearizable(postgres, tmp_path, monkeypatch, scene):
    monkeypatch.setattr("edgestead.cluster.slots.GIVE_MS", 1)
    monkeypatch.setattr("edgestead.cluster.slots.GIVING_MAX", 256)
    world = asyncio.run(play(postgres.database(), tmp_path, scene))

    for name in NAMES:
        assert faults(world.appends.get(name, []), world.reads[name]) == []
    print(  # noqa: T201 - for the sums in docs/design/0057
        f"{scene.__name__}: {world.killed} killed, {world.stopped} stopped, {world.handed_over} slots handed "
        f"over, {world.acknowledged} acknowledged, 0 lost"
    )


async def apart(dsn, folder):
    """What a process says to one of a release that is too far from its own, in either direction."""
    world = Processes(dsn, folder)
    try:
        old, new = await world.start("a"), await world.start("b", forms=Forms(2, 3))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (old.clustered.slots.held and new.clustered.slots.held):
                await new.clustered.looked()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(new.clustered.slots.held) < 1_000:
                await new.clustered.looked()
        await old.clustered.looked()
        at_old, at_new = (
            next(name for name in map(str, range(1_000)) if at.clustered.has(ids.from_name("Numbers", name)))
            for at in (old, new)
        )
        told = [str(await world.append(asked, name)) for asked, name in ((new, at_old), (old, at_new))]
        assert await world.append(old, at_old) is None
        return told
    finally:
        await world.close()


def test_a_release_that_is_too_far_from_another_is_told_so_and_nothing_runs(postgres, tmp_path, monkeypatch):
    monkeypatch.setattr("edgestead.cluster.slots.GIVE_MS", 1)
    monkeypatch.setattr("edgestead.cluster.slots.GIVING_MAX", 256)

    to_old, to_new = asyncio.run(apart(postgres.database(), tmp_path))

    assert "node a has an older release" in to_old
    assert "of an older release (form 1, here from 2)" in to_new


IN_FLIGHT = 64
UNSET = "SELECT count(*) FROM objects WHERE alarm_us IS NOT NULL"


async def each(bells, does):
    """What each bell answers, so many at a time."""
    at_a_time = asyncio.Semaphore(IN_FLIGHT)

    async def one(bell):
        async with at_a_time:
            return await does(bell)

    return await asyncio.gather(*map(one, bells))


async def ring(dsn, folder, count):
    """Bells that are to ring while processes are killed and start; returns how often each did.

    A third of them is set before each kill, to ring behind it: on a slow machine all may ring before it, and
    others are set with more time. The second place stays empty until others have rung all that was set.
    """
    bells = [f"bell-{number}" for number in range(count)]
    world, said = Processes(dsn, folder), []
    patience_s = PATIENCE_SECONDS + count / 20

    async def set_bells(some, link):
        for due_ms in (more * (2_000 + count) for more in itertools.count(1)):

            async def set_bell(bell, due_ms=due_ms):
                await answered(world, bell, "ring_at", int(time.time() * 1000) + due_ms)

            await each(some, set_bell)
            if link.rows(UNSET)[0][0]:
                return
            some = [f"bell-{number}" for number in range(len(bells), len(bells) + len(some))]
            bells.extend(some)

    try:
        for node in "abc":
            await world.start(node)
        with closing(Link(dsn)) as link:
            for number, node in enumerate("abc"):
                async with asyncio.timeout(patience_s):
                    await set_bells(bells[:count][number::3], link)
                    said.append(await rung_without(world, node, link, all_of_them=node == "b"))
                await world.start(node)
        async with asyncio.timeout(patience_s):
            await each(bells, lambda bell: answered(world, bell, "rung"))
            print(f"{count} alarms: {', '.join(said)}")  # noqa: T201 - for the docs
            return await each(bells, lambda bell: answered(world, bell, "rung"))  # none has rung again
    finally:
        await world.close()


async def rung_without(world, node, link, *, all_of_them):
    """Kill a process, and wait until some of what is set has rung: its lease may not be over yet. With
    `all_of_them` its place stays empty for longer, and others ring what was its own.
    """
    process = next(process for process in world.living if process.name == node)
    process.kill()
    pending = left = link.rows(UNSET)[0][0]
    if all_of_them:
        await until_gone(world, process)
    while left if all_of_them else left == pending > 0:
        await asyncio.sleep(0.05)
        left = link.rows(UNSET)[0][0]
    return f"{pending - left} of {pending} rang while {node} was away"


async def until_gone(world, process):
    """Its lease is over, and others have its slots, or are about to."""
    other = world.living[0].clustered
    async with asyncio.timeout(PATIENCE_SECONDS):
        while process.number in other.slots.workers:
            await other.looked()


async def answered(world, bell, method, *arguments):
    """Asked until it is no error: slots move meanwhile. `rung` is asked until it has rung at least once."""
    while not (found := await world.ask(world.living[0], bell, method, *arguments)):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return found


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_alarms_ring_once_whichever_process_has_them(postgres, tmp_path, count):
    rung = asyncio.run(ring(postgres.database(), tmp_path, count))
    assert len(rung) >= count
    assert set(rung) == {1}
