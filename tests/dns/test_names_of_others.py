"""What a signed zone has for other zones of ours, through random changes of all of them and slices of work.

A name is there when the model says so, whatever came first: none is missing, and none is left behind.
"""

import random
import time

import pytest

from edgestead.usecases.zone import signing
from tests.dns.signed import DAY_US, SECOND_US, Signed
from tests.dns.test_bootstrapping import HOSTS, SERVERS, names_of, verify_hosts

OTHERS = (
    "example.com",
    "one.test",
    "two.test",
    "three.test",
    SERVERS[0],
    f"z.{HOSTS}",
    f"lab.{HOSTS}",
    f"kid.lab.{HOSTS}",
    f"a.kid.lab.{HOSTS}",
    f"b.kid.lab.{HOSTS}",
)
CUTS = (
    f"lab.{HOSTS}",
    f"kid.lab.{HOSTS}",
    f"_signal.{SERVERS[0]}",
    f"_signal.{SERVERS[1]}",
    f"com._signal.{SERVERS[1]}",
)
STEPS = 60


class World:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.signed = Signed(folder)
        self.signed.later(-120 * DAY_US)  # no step is later than the machine's clock, which verifiers know
        self.signed.zone(HOSTS)
        for server in SERVERS:
            self.signed.add(HOSTS, server, "A", "192.0.2.53")
        self.cuts = {}
        self.said = []

    def step(self):
        kinds = {
            "zone": 2,
            "sign": 2,
            "hosts": 2,
            "work": 3,
            "cut": 2,
            "zone_goes": 1,
            "unsign": 1,
            "later": 1,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        name = self.random.choice(CUTS if kind == "cut" else OTHERS)
        self.said.append((kind, name, self.signed.state(HOSTS)))
        getattr(self, kind)(name)

    def zone(self, name):
        if name not in self.signed.ids:
            self.signed.zone(name)

    def zone_goes(self, name):
        if name in self.signed.ids:
            self.signed.api.delete(f"/zones/{self.signed.ids.pop(name)}")
            self.signed.take()

    def sign(self, name):
        if name in self.signed.ids:
            self.signed.set(name, "active")

    def unsign(self, name):
        if name in self.signed.ids:
            self.signed.set(name, "disabled")

    def hosts(self, _):
        """Begin to sign or to end it, also in the middle of the other; let the end come."""
        state = self.signed.state(HOSTS)
        if state == "leaving":
            self.signed.parent_says(HOSTS)
            self.signed.later(3 * DAY_US)
            self.signed.parent_says(HOSTS)
        else:
            self.signed.set(HOSTS, "active" if state in (None, "unsigning") else "disabled")

    def cut(self, name):
        """Have somebody delegate a name, or take that back."""
        if name in self.cuts:
            self.signed.remove(HOSTS, self.cuts.pop(name))
        else:
            self.cuts[name] = self.signed.add(HOSTS, name, "NS", "ns.other.test").result["id"]

    def work(self, _):
        if self.signed.has_work():
            self.signed.work_once()

    def later(self, _):
        self.signed.later(DAY_US)

    def wanted(self):
        """The names with records, where no work is left."""
        own = {HOSTS, *SERVERS, *self.cuts}
        if self.signed.state(HOSTS) is None:
            return own
        there = {name for name in self.signed.ids if self._zone_above(name) == HOSTS}
        for zone in self.signed.ids:
            if self.signed.state(zone) in ("offered", "active"):
                hosts = [one for one in SERVERS if not f".{one}".endswith(f".{zone}")]
                there.update(
                    f"_dsboot.{zone}._signal.{host}"
                    for host in hosts
                    if self._zone_above(f".{host}") == HOSTS
                )
        return own | {name for name in there if not any(name.endswith(f".{cut}") for cut in self.cuts)}

    def _zone_above(self, name):
        while name:
            name = name.partition(".")[2]
            if name in self.signed.ids:
                return name
        return None


@pytest.fixture
def new_world(tmp_path, monkeypatch):
    made = []
    for slices, size in {"OTHERS_AT_ONCE": 2, "LOOKED_AT_ONCE": 2, "SIGNED_AT_ONCE": 3}.items():
        monkeypatch.setattr(signing, slices, size)
    yield lambda seed: made.append(World(tmp_path, seed)) or made[0]
    made[0].signed.close()


def live(world, folder):
    for done in range(STEPS):
        world.step()
        if done % 15 == 14:
            world.signed.work()
            assert names_of(world.signed) == world.wanted(), world.said
    signed = world.signed
    signed.now_us = int(time.time()) * SECOND_US
    signed.work()
    assert names_of(signed) == world.wanted(), world.said
    if signed.state(HOSTS) is not None:
        verify_hosts(signed, folder)


@pytest.mark.parametrize("seed", range(10))
def test_a_zone_has_the_names_of_others_that_it_should(new_world, tmp_path, seed):
    live(new_world(seed), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1_000, 1_200))
def test_many_zones_have_the_names_of_others_that_they_should(new_world, tmp_path, seed):
    live(new_world(seed), tmp_path)
