"""What an objects process shows goes on, whatever its users' code has taken or broken."""

import asyncio
import os
import resource
from types import SimpleNamespace

import pytest

from edgestead.model.counters import private_page, slot
from edgestead.server import process
from edgestead.server.objects import shown as module
from edgestead.server.objects.shown import Shown
from edgestead.store.objectlog import Progress


@pytest.fixture
def no_descriptors():
    """This process can open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_memory_can_be_looked_at_where_no_descriptor_is_left(request):
    memory = process.Memory()
    request.getfixturevalue("no_descriptors")

    with pytest.raises(OSError, match="Too many open files"):
        os.open("/proc/self/statm", os.O_RDONLY)
    assert memory.resident_bytes() > 0
    os.close(memory._statm)


class Host:
    """Of no classes; `faults` are what the next looks meet."""

    def __init__(self, faults):
        self.faults, self.live, self.is_ready = faults, 3, True
        self.log = SimpleNamespace(progress=Progress(7, 8, 9), history_bytes=0, is_history_damaged=False)
        self.node = SimpleNamespace(
            accounts={}, alarms=SimpleNamespace(running_count=0), held=self.held, held_classes=tuple
        )

    def held(self):
        if self.faults:
            raise self.faults.pop()
        return ()


def test_a_look_that_fails_is_not_the_last(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0)
    host, page, looks = Host([OSError("anything"), RuntimeError("anything")]), private_page(), []
    memory, fed = SimpleNamespace(resident_bytes=lambda: 5), SimpleNamespace(sequence=5)

    async def run():
        went = SimpleNamespace(classes=(), look=lambda: looks.append(1) or looking.cancel())
        looking = asyncio.create_task(Shown(host, page, fed, went, memory, is_aside=False).look_for_ever())
        await asyncio.wait([looking])

    asyncio.run(run())

    assert looks == [1]
    assert page.cells[slot("edge_feed_sequence")] == 5
    assert page.cells[slot("edge_objects_log_groups_total")] == 7
