"""`kill -9` of a process that writes objects to a cluster's database: nothing acknowledged is lost."""

import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog import opening
from tests.store.contract.object_stores import ref
from tests.support.postgres import Postgres

ROUNDS, LONG_ROUNDS = 2, 300
LINES_MAX = 60  # before the kill


def rounds(dsn: str, folder: Path, count: int, seed: int) -> int:
    chance, acked, before = random.Random(seed), set[int](), dict[str, list[int]]()
    for number in range(1, count + 1):
        command = [sys.executable, "-m", "tests.crash.objects_cluster_process", dsn, str(folder), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for _ in range(chance.randrange(2, LINES_MAX)):
                    line = process.stdout.readline()
                    assert line
                    acked |= {int(one) for one in line.split() if one.isdecimal()}
            finally:
                process.kill()
            acked |= {
                int(one) for one in process.stdout.read().rpartition("\n")[0].split() if one.isdecimal()
            }
        with closing(Link(dsn)) as link:
            now = {name: _list(link, name) for name in "abc"}
        whole = [one for numbers in now.values() for one in numbers]
        assert acked <= set(whole)
        assert len(set(whole)) == len(whole)
        assert all(now[name][: len(numbers)] == numbers for name, numbers in before.items())
        before = now
    return len(acked)


def _list(link: Link, name: str) -> list[int]:
    opened = opening.read(link, ref(name))
    found: list[int] = msgspec.msgpack.decode((opened and opened.state.tail.get("list")) or b"\x90")
    return found


def test_what_a_killed_process_had_acknowledged_is_in_the_database(
    postgres: Postgres, tmp_path: Path
) -> None:
    assert rounds(postgres.emptied(), tmp_path / "cache", ROUNDS, seed=1) > ROUNDS


@pytest.mark.long
def test_the_same_many_times(postgres: Postgres, tmp_path: Path) -> None:
    assert rounds(postgres.emptied(), tmp_path / "cache", LONG_ROUNDS, seed=2) > LONG_ROUNDS
