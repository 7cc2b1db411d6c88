"""Attacks in a mix: whatever they are, other clients' queries, sites, objects and revocations go on.

Asserted is that each good client is served again and again under each mix; how long its longest gap was
is printed (`-s`), as a busy machine makes gaps, too: those of a client of nothing are printed beside them.
"""

import contextlib
import itertools
import json
import random
import time

import pytest

from tests.crash.test_objects_chaos import SOURCE
from tests.edge.origin import Origin
from tests.server import attacks
from tests.server.small_disk import small_disk, why_not

DISK_MIB = 640  # each of three objects processes keeps two segments of its log, 128 MiB
SERVED_MIN = 10  # by each good client, while a mix goes on
MIX_SECONDS, MIX_SECONDS_LONG = 2.0, 20.0
STEPS_SECONDS_MAX = 300.0  # a hang, not a measure
CONNECTIONS, CONNECTIONS_LONG = 100, 1_000
MIXES_LONG = 30
# The last two are what docs/how-to/run.md advises who wants that nobody waits for more than a second.
SETTINGS = """
disk-reserve-mib = 16
dns-workers = 2
edge-workers = 2
objects-workers = 2
objects-memory-mib = 250
silence-seconds = 3
objects-blocked-seconds = 0.5
control-spare = 2
"""
ATTACKS = {
    "narrow token": attacks.narrow_token,
    "guesses": attacks.guesses,
    "hostile class": attacks.hostile_class,
    "slow peers": attacks.slow_peers,
    "stopped processes": attacks.stopped_processes,
    "hanging processes": attacks.hanging_processes,
    "hanging control": attacks.hanging_control,
    "full disk": attacks.full_disk,
}
# In order; the last is everything at once.
MIXES = (
    (),
    ("narrow token", "guesses", "slow peers"),
    ("hostile class", "slow peers"),
    ("stopped processes", "narrow token"),
    ("hanging processes",),
    ("hanging control",),
    ("hanging control", "hostile class"),
    ("full disk", "narrow token"),
    tuple(ATTACKS),
)

WITHOUT_DISK = why_not()
pytestmark = pytest.mark.skipif(bool(WITHOUT_DISK), reason=WITHOUT_DISK)


class House:
    """A server with one of everything that good clients want."""

    def __init__(self, server, origin, disk):
        self.server, self.disk, self.site = server, disk, "www.example.com"
        self.connections, self.hanging, self.seed = CONNECTIONS, attacks.HANGING, random.randrange(2**32)
        self.unexpected, self.numbers = [], itertools.count()
        self.zone_id = server.make_zone("example.com")
        server.make_record(self.zone_id, "A", "www", origin.host, proxied=True)
        spaces = f"/accounts/{server.ready['account_id']}/storage/kv/namespaces"
        self.space = f"{spaces}/{server.call('POST', spaces, {'title': 'texts'}).result['id']}"
        groups = server.call("GET", "/user/tokens/permission_groups").result
        group = next(one["id"] for one in groups if one["name"] == "Workers KV Storage Write")
        resources = {f"com.cloudflare.api.account.{server.ready['account_id']}": "*"}
        policy = {"effect": "allow", "permission_groups": [{"id": group}], "resources": resources}
        self.narrow_fields = {"policies": [policy]}
        self.tokens = {
            name: server.call("POST", "/user/tokens", {**self.narrow_fields, "name": name}).result
            for name in ("victim", "attacker", "bystander")
        }

    def make_token(self, name):
        """Made before any disk was full."""
        return dict(self.tokens[name])

    def good_clients(self):
        asks = {
            "the machine": attacks.nothing(self),
            "queries": attacks.queries(self),
            "sites": attacks.sites(self),
            "revocations": attacks.revocations(self),
            **{f"objects {number}": attacks.objects(self, f"good{number}") for number in range(2)},
        }
        return [attacks.Client(name, ask) for name, ask in asks.items()]

    def mix(self, clients, names, seconds):
        """Attack until each client was served often enough; gives the longest gap of each."""
        with contextlib.ExitStack() as going_on:
            felt = [going_on.enter_context(ATTACKS[name](self)) for name in names]
            for client in clients:
                client.measure_anew()
            before, end = [client.served for client in clients], time.monotonic() + seconds

            def enough():
                served = min(client.served - was for client, was in zip(clients, before, strict=True))
                is_over = served >= SERVED_MIN and time.monotonic() > end and all(one() for one in felt)
                return is_over or any(client.error for client in clients)

            self.server.wait_until(enough, STEPS_SECONDS_MAX)
            gaps = {client.name_of_part: round(client.gap_so_far(), 2) for client in clients}
        assert self.unexpected == []
        return gaps

    def withstand(self, mixes, seconds):
        with contextlib.ExitStack() as ending:
            clients = self.good_clients()
            for client in clients:
                ending.callback(client.end)
            for names in mixes:
                print(" + ".join(names) or "nothing", self.mix(clients, names, seconds))  # noqa: T201


@pytest.fixture
def house(new_server, tmp_path):
    (tmp_path / "edge.toml").write_text(SETTINGS)
    origin = Origin("127.0.0.1")
    origin.keeps = origin.read_bodies = False
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        flags = ("--config", str(tmp_path / "edge.toml"), "--origin-port", str(origin.port))
        server = new_server("--objects", SOURCE, *flags)
        server.data_dir = disk / "data"
        server.start()
        yield House(server, origin, disk)
        server.close()
    origin.close()


@pytest.mark.timeout(1_800)
def test_good_clients_are_served_under_every_mix_of_attacks(house):
    house.withstand(MIXES, MIX_SECONDS)

    assert faults_of_ours(house.server) == []


def faults_of_ours(server):
    """Errors with a traceback, but for those of users' classes."""
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith('{"time_us')]
    return [one for one in lines if "fault" in one and not one["process"].startswith("objects")]


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_good_clients_are_served_under_mixes_at_random_and_when_control_hangs(house):
    house.connections, house.hanging = CONNECTIONS_LONG, (*attacks.HANGING, "control")
    chance = random.Random(house.seed)
    # Nothing first: a server has no spare control process in its first seconds.
    mixes = [(), *(tuple(chance.sample(list(ATTACKS), chance.randrange(2, 5))) for _ in range(MIXES_LONG))]
    print("seed", house.seed)  # noqa: T201

    house.withstand(mixes, MIX_SECONDS_LONG)

    assert faults_of_ours(house.server) == []
