"""kill -9 while alarms ring: every one of them has rung once in the end."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("objects_alarms_process.py")
TIMEOUT_SECONDS = 900  # of a machine that has other work, too


def process(folder: Path, count: int, what: str, ahead_ms: int) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), str(count), what, str(ahead_ms)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    )


def ring(folder: Path, count: int, kills: int, seed: int, ahead_ms: int = 1_000) -> list[int]:
    """Set alarms, kill a few times while they ring, wait for the rest; how often each one rang.

    With `ahead_ms` beyond the time that setting them takes, none has rung at the first kill.
    """
    chance = random.Random(seed)
    setting = process(folder, count, "set", ahead_ms)
    try:
        assert setting.stdout is not None
        assert setting.stdout.readline() == b"set\n"
        time.sleep(chance.uniform(0.2, 2.5))  # some have rung by then
    finally:
        setting.kill()
        setting.communicate()
    for _ in range(kills - 1):
        waiting = process(folder, count, "wait", ahead_ms)
        time.sleep(chance.uniform(0.3, 1.0))
        waiting.kill()
        waiting.communicate()
    last = process(folder, count, "wait", ahead_ms)
    try:
        out, _ = last.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        last.kill()
        last.communicate()
    assert last.returncode == 0
    rung: list[int] = json.loads(out)
    return rung


@pytest.mark.parametrize("seed", range(3))
def test_every_alarm_rings_once(tmp_path: Path, seed: int) -> None:
    assert ring(tmp_path / "objects", 400, kills=2, seed=seed) == [1] * 400


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_ten_thousand_pending_alarms_ring_once_after_a_kill(tmp_path: Path) -> None:
    assert ring(tmp_path / "objects", 10_000, kills=1, seed=0, ahead_ms=30_000) == [1] * 10_000


@pytest.mark.long
@pytest.mark.timeout(5_400)
def test_ten_thousand_alarms_ring_once(tmp_path: Path) -> None:
    for seed in range(5):
        assert ring(tmp_path / str(seed), 10_000, kills=3, seed=seed) == [1] * 10_000
