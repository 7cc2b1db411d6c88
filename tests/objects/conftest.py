"""Fixtures of the object tests."""

from collections.abc import Iterator

import pytest

from edgestead.store.sqlite.objectlog.local import LocalObjectLog
from edgestead.testing.disks import SimulatedDisk
from tests.objects.logs import Logs


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def logs(disk: SimulatedDisk) -> Iterator[Logs]:
    with disk.vfs(f"simulated-{id(disk)}") as vfs:
        opened = Logs(disk, vfs)
        yield opened
        opened.abandon()


@pytest.fixture
def log(logs: Logs) -> LocalObjectLog:
    return logs.open()
