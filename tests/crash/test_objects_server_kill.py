"""kill -9 under load, through the product's own server: the examples forget nothing that they acknowledged.

Callers stay connected to the objects' address over the deaths of objects processes, and come back after the
death of everything.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edgestead.testing.server import EdgeServer
from tests.crash.objects_line import Cut, Line, new_line
from tests.crash.test_objects_kill import CALLERS, Told

EXAMPLES = Path(__file__).parents[2] / "examples"
ROUNDS = 10
LONG_ROUNDS = 1_000
WHOLE_SERVER_EVERY = 5
ROUND_SECONDS_MAX = 300


async def one_call(caller: Line, told: Told, chance: random.Random, who: int) -> None:
    """One of the examples' calls, noted when it was answered."""
    kind = chance.randrange(4)
    if kind == 0:
        player, score = f"p{who}-{chance.randrange(5)}", chance.randrange(10**6)
        await caller.call("Leaderboard/game/submit", player, score)
        told.best[player] = max(told.best.get(player, 0), score)
    elif kind == 1:
        payload = chance.randrange(10**6)
        told.jobs[await caller.call("WorkQueue/jobs/add", payload)] = payload
    elif kind == 2:
        await finish_a_job(caller, f"WorkQueue/of-{who}", told.done)
    else:
        await caller.call("RateLimiter/all/take", 10**9, 10**9)
        told.taken += 1
    told.count += 1


async def finish_a_job(caller: Line, queue: str, done: set[tuple[str, int]]) -> None:
    """In a queue with one worker: a job that was added is there, one that was done never comes back."""
    await caller.call(f"{queue}/add", "work")
    job = await caller.call(f"{queue}/claim", "worker")
    assert job is not None
    assert (queue, job["id"]) not in done
    if await caller.call(f"{queue}/done", job["id"], "worker"):
        done.add((queue, job["id"]))


async def load(server: EdgeServer, told: Told, chance: random.Random, kill: Callable[[], None]) -> None:
    """Call from several connections, kill after some more answers, and wait for all to notice or go on."""
    ended = asyncio.Event()

    async def keep_calling(who: int, own: random.Random) -> None:
        caller = new_line(server)
        while not ended.is_set():
            try:
                await one_call(caller, told, own, who)
            except Cut:
                continue
        caller.close()

    tasks = [asyncio.create_task(keep_calling(who, random.Random(chance.random()))) for who in range(CALLERS)]
    until = told.count + chance.randrange(20, 200)
    async with asyncio.timeout(ROUND_SECONDS_MAX):
        while told.count < until and not any(map(asyncio.Task.done, tasks)):  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.002)
    kill()
    ended.set()
    await asyncio.gather(*tasks)


async def check(server: EdgeServer, told: Told) -> None:
    caller = new_line(server)
    best = {row["player"]: row["best"] for row in await caller.insist("Leaderboard/game/top", 100)}
    for player, score in told.best.items():
        assert best[player] >= score
    assert await caller.insist("RateLimiter/all/used", 10**9) >= told.taken
    jobs: dict[int, Any] = {}
    for number in itertools.count():
        job = await caller.insist("WorkQueue/jobs/claim", f"judge-{number}")
        if job is None:
            break
        jobs[job["id"]] = job["payload"]
        assert await caller.insist("WorkQueue/jobs/done", job["id"], f"judge-{number}")
    assert told.jobs.items() <= jobs.items()
    told.jobs.clear()
    caller.close()


def rounds(server: EdgeServer, count: int, seed: int) -> int:
    chance, told = random.Random(seed), Told()
    server.start()
    for number in range(1, count + 1):
        asyncio.run(check(server, told))
        if number % WHOLE_SERVER_EVERY:
            pid = chance.choice([p for n, p in server.children().items() if n.startswith("objects")])
            asyncio.run(load(server, told, chance, partial(os.kill, pid, signal.SIGKILL)))
        else:
            asyncio.run(load(server, told, chance, server.kill))
            server.start()
    asyncio.run(check(server, told))
    return told.count


@pytest.mark.timeout(900)
def test_ten_kills_of_the_server_lose_nothing(new_server: Callable[..., EdgeServer]) -> None:
    server = new_server("--objects", str(EXAMPLES), "--objects-workers", "2")

    assert rounds(server, ROUNDS, seed=1) > ROUNDS


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_a_thousand_kills_of_the_server_lose_nothing(new_server: Callable[..., EdgeServer]) -> None:
    began = time.monotonic()
    server = new_server("--objects", str(EXAMPLES), "--objects-workers", "2")
    count = rounds(server, LONG_ROUNDS, seed=2)
    print(json.dumps({"acknowledged": count, "seconds": time.monotonic() - began}))  # noqa: T201
