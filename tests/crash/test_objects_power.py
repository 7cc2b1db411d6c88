"""Power cuts, failing disks and full disks under load: nothing acknowledged is lost, nothing is torn."""

import contextlib
import errno
import json
import random
from collections.abc import Iterator

import pytest

from edgestead.objects.runtime.classes import Durability
from edgestead.store.objectlog import LogDamaged
from edgestead.testing.disks import PowerCut, SimulatedDisk, SimulatedFile
from edgestead.testing.simulation import SimulatedLoop, simulate
from tests.crash.objects_load import CLASSES, Acknowledged, judge, load
from tests.objects.logs import Logs, keys, put, ref
from tests.objects.nodes import make_node

SEGMENT_BYTES = 128 * 1024
ROUNDS = 50
LONG_ROUNDS = 1_000


@pytest.fixture
def logs() -> Iterator[Logs]:
    disk = SimulatedDisk()
    with disk.vfs(f"power-{id(disk)}") as vfs:
        opened = Logs(disk, vfs)
        yield opened
        opened.abandon()
    disk.wipe()


def until_it_fails(
    logs: Logs, told: Acknowledged, seed: int, writes: int, first: int, *, closing: bool = True
) -> int:
    """One life of a node under load; gives how many file operations it made."""

    def watch() -> None:
        logs.disk.raise_if_dead()
        if logs.fatal:
            raise PowerCut  # the process ends

    async def main(loop: SimulatedLoop) -> None:
        loop.watch = watch
        node = make_node(logs, loop, *CLASSES, segment_bytes=SEGMENT_BYTES, idle_seconds=0.05)
        node.start()
        await load(node, told, random.Random(seed), writes, first)
        if closing:
            await node.close()

    try:
        simulate(main, seed)
    except (PowerCut, Exception):
        # whatever a dying disk makes of it, but nothing else
        if not (logs.disk.dead or logs.fatal or logs.disk.fail_errno):
            raise
    return logs.disk.operations


def verdict(logs: Logs, told: Acknowledged) -> list[str]:
    async def main(loop: SimulatedLoop) -> list[str]:
        node = make_node(logs, loop, *CLASSES, segment_bytes=SEGMENT_BYTES)
        node.start()
        wrong = await judge(node, told)
        await node.close()
        return wrong

    wrong: list[str] = simulate(main, 0)
    return wrong


def crash_often(logs: Logs, seed: int) -> Acknowledged:
    """Three lives, each ended by a power cut at some file operation, also while recovering."""
    chance, told = random.Random(seed), Acknowledged()
    for life in range(3):
        logs.disk.fail_at, logs.disk.operations = (
            chance.choice((chance.randrange(1, 60), chance.randrange(1, 3_000))),
            0,
        )
        until_it_fails(logs, told, seed + life, writes=250, first=1 + 1_000 * life)
        logs.power_cut(chance.randrange(1 << 30))
        logs.fatal.clear()
    return told


@pytest.mark.parametrize(
    ("durability", "seed"),
    [("log", seed) for seed in range(ROUNDS)] + [("sqlite", seed) for seed in range(ROUNDS // 3)],
)
def test_a_power_cut_loses_nothing_acknowledged(logs: Logs, durability: Durability, seed: int) -> None:
    logs.durability = durability
    told = crash_often(logs, seed)

    assert verdict(logs, told) == []


@pytest.mark.parametrize("seed", range(3))
def test_the_very_first_start_may_be_cut_off_anywhere(logs: Logs, seed: int) -> None:
    logs.open().close()
    operations = logs.disk.operations
    assert operations > 100
    for operation in range(1, operations + 1):
        disk = SimulatedDisk()
        with disk.vfs(f"first-{operation}-{seed}") as vfs:
            new = Logs(disk, vfs)
            disk.fail_at = operation
            with contextlib.suppress(PowerCut, Exception):
                new.open()
            new.power_cut(seed)
            put(log := new.open(), log.lease(ref()), keys(a=b"1"))
            new.abandon()
        disk.wipe()


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_thousand_power_cuts() -> None:
    acknowledged = 0
    for seed in range(LONG_ROUNDS):
        disk = SimulatedDisk()
        with disk.vfs(f"power-{seed}") as vfs:
            logs = Logs(disk, vfs)
            told = crash_often(logs, 10_000 + seed)
            acknowledged += told.count
            assert verdict(logs, told) == [], seed
            logs.abandon()
        disk.wipe()
    assert acknowledged > 50 * LONG_ROUNDS
    print(json.dumps({"acknowledged": acknowledged}))  # noqa: T201


def test_the_judge_notices_a_disk_that_lies(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Acknowledged()
    honest = SimulatedFile.sync

    def sync(file: SimulatedFile) -> None:
        if file.inode.lengths or "segment-" not in file.path:  # a new segment's own sync is honest
            honest(file)

    monkeypatch.setattr(SimulatedFile, "sync", sync)
    until_it_fails(logs, told, 1, writes=200, first=1, closing=False)
    logs.power_cut(1)

    try:
        wrong = verdict(logs, told)
    except LogDamaged:  # noticed even before anybody reads
        return
    assert any("was acknowledged" in one for one in wrong)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("operation", range(1, 51))
def test_the_nth_file_operation_may_fail(logs: Logs, operation: int, number: int) -> None:
    told = Acknowledged()
    until_it_fails(logs, told, 1, writes=40, first=1)
    logs.killed()
    logs.disk.fail_at, logs.disk.operations, logs.disk.fail_errno = operation, 0, number

    until_it_fails(logs, told, 2, writes=40, first=1_001)

    logs.disk.fail_errno = 0
    logs.power_cut(operation)
    logs.fatal.clear()
    assert verdict(logs, told) == []
