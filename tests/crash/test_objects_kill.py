"""kill -9 under load, on real files: the examples forget nothing that they acknowledged."""

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.objects.hosts import Client

ROUNDS = 10
LONG_ROUNDS = 1_000
CALLERS = 8
ANSWERS = range(20, 200)  # before a kill; who is killed in a call again and again, and answers none, is held
ROUND_SECONDS_MAX = 300


class Told:
    """What the process acknowledged."""

    def __init__(self) -> None:
        self.best: dict[str, int] = {}
        self.jobs: dict[int, int] = {}
        self.done: set[tuple[str, int]] = set()  # queue and job, in queues with one worker
        self.taken = 0
        self.count = 0


async def caller(port: int, told: Told, chance: random.Random, who: int) -> None:
    """Call until the process is gone."""
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    try:
        while True:
            kind = chance.randrange(3)
            if kind == 0:
                player, score = f"p{who}-{chance.randrange(5)}", chance.randrange(10**6)
                await client.call("Leaderboard/game/submit", player, score)
                told.best[player] = max(told.best.get(player, 0), score)
            elif kind == 1:
                payload = chance.randrange(10**6)
                told.jobs[await client.call("WorkQueue/jobs/add", payload)] = payload
            else:
                await client.call("RateLimiter/all/take", 10**9, 10**9)
                told.taken += 1
            told.count += 1
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        client.writer.close()


async def check(port: int, told: Told) -> None:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    with contextlib.closing(client.writer):
        best = {row["player"]: row["best"] for row in await client.call("Leaderboard/game/top", 100)}
        for player, score in told.best.items():
            assert best[player] >= score
        assert await client.call("RateLimiter/all/used", 10**9) >= told.taken
        jobs: dict[int, Any] = {}
        while (job := await client.call("WorkQueue/jobs/claim", "judge")) is not None:
            jobs[job["id"]] = job["payload"]
            assert await client.call("WorkQueue/jobs/done", job["id"], "judge")
    assert told.jobs.items() <= jobs.items()
    told.jobs.clear()


def start(folder: Path) -> tuple["subprocess.Popen[bytes]", int]:
    script = Path(__file__).with_name("objects_process.py")
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def rounds(folder: Path, count: int, seed: int) -> int:
    chance, told = random.Random(seed), Told()
    for _ in range(count):
        process, port = start(folder)
        try:

            async def load(port: int = port, process: "subprocess.Popen[bytes]" = process) -> None:
                await check(port, told)
                until = told.count + chance.choice(ANSWERS)
                callers = [
                    asyncio.create_task(caller(port, told, random.Random(chance.random()), who))
                    for who in range(CALLERS)
                ]
                async with asyncio.timeout(ROUND_SECONDS_MAX):
                    while told.count < until and not any(map(asyncio.Task.done, callers)):  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                process.kill()
                await asyncio.gather(*callers)

            asyncio.run(load())
        finally:
            process.kill()
            process.communicate()
    process, port = start(folder)
    try:
        asyncio.run(check(port, told))
    finally:
        process.kill()
        process.communicate()
    return told.count


def test_ten_kills_lose_nothing(tmp_path: Path) -> None:
    assert rounds(tmp_path / "objects", ROUNDS, seed=1) > ROUNDS


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_thousand_kills_lose_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    count = rounds(tmp_path / "objects", LONG_ROUNDS, seed=2)
    print(json.dumps({"acknowledged": count, "seconds": time.monotonic() - began}))  # noqa: T201
