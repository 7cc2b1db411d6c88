"""What follows a restore: new serials for all zones, and no zone that fails holds up another one."""

import asyncio
from datetime import date

import pytest

from edgestead.health import checks
from edgestead.health.facts import Facts
from edgestead.model.call import Actor, Call, Profile
from edgestead.server.control import restoring
from edgestead.server.control.restoring import Restoring
from edgestead.tables import zones
from edgestead.usecases import restored
from tests.support.api import LocalApi

NOW_US = 2_000_000_000_000_000
NAMES = tuple(f"z{number}.example" for number in range(7))


class World:
    """An API with zones of which some cannot be written, and the data of `Restoring`."""

    def __init__(self, folder, monkeypatch):
        self.api = LocalApi(folder)
        self.ids = {name: self.api.post("/zones", {"name": name}).result["id"] for name in NAMES}
        self.read = self.api.store.read
        self.broken, self.now_us = set(), NOW_US
        begin_again = restored._begin_again

        def may_fail(call, tx, platform, zone):
            begin_again(call, tx, platform, zone)
            if zone.name in self.broken:
                raise KeyError("a fault of this zone")

        monkeypatch.setattr(restored, "_begin_again", may_fail)
        self.restoring = Restoring(self, self.api.platform, self.call)

    def call(self):
        actor = Actor(kind="account", id="")
        return Call(
            actor=actor, as_of=date(2026, 1, 1), profile=Profile.SPEC, now_us=self.now_us, request_id=""
        )

    async def write(self, fn):
        return self.api.store.write(fn).result().value

    def serials(self):
        return {zone.name: zone.serial for zone in self.read(zones.every)}

    def settle(self):
        async def until_idle():
            while await self.restoring.poll():
                pass

        asyncio.run(until_idle())

    def rows(self):
        return [
            finding.subject
            for name, finding in checks.examine(Facts(zones_held=restoring.held(self)))
            if name == "restored-zones" and finding.state != "ok"
        ]


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_a_zone_that_fails_holds_up_no_other_one_and_is_a_row_of_the_health(world):
    before = world.serials()
    world.broken = {NAMES[0], NAMES[4]}
    world.api.store.write(lambda tx: restored.mark(tx, NOW_US)).result()

    world.settle()

    after = world.serials()
    assert {name for name in NAMES if after[name] == before[name]} == world.broken
    assert set(world.rows()) == world.broken
    assert not world.read(restored.is_marked)


def test_it_is_tried_again_each_hour_until_it_succeeds(world):
    before = world.serials()
    world.broken = {NAMES[2]}
    world.api.store.write(lambda tx: restored.mark(tx, NOW_US)).result()
    world.settle()

    world.now_us += restored.LATER_US - 1
    world.broken.clear()
    world.settle()
    assert world.serials()[NAMES[2]] == before[NAMES[2]]

    world.broken = {NAMES[2]}
    world.now_us += 1
    world.settle()
    assert world.rows() == [NAMES[2]]

    world.broken.clear()
    world.now_us += restored.LATER_US
    world.settle()
    assert world.serials()[NAMES[2]] > before[NAMES[2]]
    assert world.rows() == []


def test_a_held_zone_that_is_deleted_is_forgotten(world):
    world.broken = {NAMES[2]}
    world.api.store.write(lambda tx: restored.mark(tx, NOW_US)).result()
    world.settle()
    world.api.delete(f"/zones/{world.ids[NAMES[2]]}")
    world.now_us += restored.LATER_US
    world.settle()

    assert world.read(restored.held) == {}


def test_a_store_that_takes_nothing_steps_over_no_zone(world):
    world.api.store.write(lambda tx: restored.mark(tx, NOW_US)).result()
    write = world.write

    async def refuse(_fn):
        raise OSError("the disk")

    world.write = refuse
    with pytest.raises(OSError, match="disk"):
        asyncio.run(world.restoring.poll())
    world.write = write
    world.settle()

    assert world.read(restored.held) == {}
