"""Fixtures of the object tests."""

from collections.abc import Iterator

import pytest

from edgestead.objects.runtime.classes import Durability
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.testing.disks import SimulatedDisk
from tests.objects.logs import Logs

OF_BOTH = {
    "test_keys",
    "test_sql",
    "test_transactions",
    "test_visits",
    "test_runtime",
    "test_model",
    "test_recovery",
    "test_alarms",
}


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    made = SimulatedDisk()
    yield made
    made.wipe()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What storage promises it promises with both durabilities."""
    if metafunc.module.__name__.rpartition(".")[2] in OF_BOTH and "durability" in metafunc.fixturenames:
        metafunc.parametrize("durability", ["log", "sqlite"], indirect=True)


@pytest.fixture
def durability(request: pytest.FixtureRequest) -> Durability:
    found: Durability = getattr(request, "param", "log")
    return found


@pytest.fixture
def logs(disk: SimulatedDisk, durability: Durability) -> Iterator[Logs]:
    with disk.vfs(f"simulated-{id(disk)}") as vfs:
        opened = Logs(disk, vfs)
        opened.durability = durability
        yield opened
        opened.abandon()


@pytest.fixture
def log(logs: Logs) -> LocalObjectLog:
    return logs.open()
