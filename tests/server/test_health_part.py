"""Health at the start of control."""

import asyncio

import pytest

from edgestead.server.health.control_part import HealthPart


@pytest.mark.parametrize("error", [OSError("no disk"), LookupError("odd row")])
def test_what_cannot_be_looked_at_keeps_control_from_no_start(monkeypatch, caplog, error):
    part = object.__new__(HealthPart)  # what it is made of is not looked at here
    watches = []

    def look():
        raise error

    async def watch():
        watches.append(1)

    monkeypatch.setattr(part, "look_at_disk", look)
    monkeypatch.setattr(part, "_watch", watch)

    async def live():
        await part.open()
        await part._task

    asyncio.run(live())

    assert watches == [1]
    assert str(error) in caplog.text
