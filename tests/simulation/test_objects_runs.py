"""Numbered runs of objects on invented time: each can be repeated, and none loses a write."""

import hashlib
import random
from collections.abc import Iterator

import pytest

from edgestead.testing.disks import SimulatedDisk
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.crash.objects_load import CLASSES, Acknowledged, judge, load
from tests.objects.logs import Logs
from tests.objects.nodes import make_node

RUNS = 200


@pytest.fixture
def logs() -> Iterator[Logs]:
    yield from fresh()


def fresh() -> Iterator[Logs]:
    disk = SimulatedDisk()
    with disk.vfs(f"run-{id(disk)}") as vfs:
        opened = Logs(disk, vfs)
        yield opened
        opened.abandon()
    disk.wipe()


def one_run(logs: Logs, seed: int) -> tuple[list[str], str]:
    """What was wrong, and the fingerprint of what happened on the disk, in which order and when."""
    told = Acknowledged()
    digest = hashlib.sha256()

    async def main(loop: SimulatedLoop) -> list[str]:
        def trace(operation: str, path: str) -> bool:
            digest.update(f"{loop.now} {operation} {path}\n".encode())
            return True

        logs.disk.fails_on = trace
        node = make_node(logs, loop, *CLASSES, segment_bytes=64 * 1024, idle_seconds=0.02)
        node.start()
        await load(node, told, random.Random(seed), writes=60, first=1)
        wrong = await judge(node, told)
        await node.close()
        return wrong

    wrong = simulate(main, seed)
    assert told.count > 20
    return wrong, digest.hexdigest()


@pytest.mark.parametrize("start", range(0, RUNS, 20))
def test_runs_lose_nothing(start: int) -> None:
    for seed in range(start, start + 20):
        for logs in fresh():
            assert one_run(logs, seed)[0] == [], seed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_run_is_repeated_by_its_number(seed: int) -> None:
    first, second, other = (
        [one_run(logs, number)[1] for logs in fresh()] for number in (seed, seed, seed + 10)
    )

    assert first == second
    assert first != other
