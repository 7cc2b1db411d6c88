"""Machines without control whose network breaks: a link goes down, packets of one direction are lost.

Control and two nodes in network namespaces of their own; each test leaves both nodes live.
"""

import json
import subprocess
import sys
import time
from itertools import count

import dns.exception
import dns.message
import dns.query
import pytest

from edgestead.server.folder import read_state
from edgestead.server.supervisor.admin import ask as ask_admin
from edgestead.testing.server import EdgeServer, wait_until
from tests.support.namespaces import HUB, Star

SECONDS_MAX = 300
NAMES = ("serves", "stops")
HALF_HOUR_SECONDS = 30 * 60


class Network:
    def __init__(self, folder):
        self.star = Star(*NAMES)
        config = folder / "main.toml"
        config.write_text(f'barrier-ms = 2000\n[cluster]\nlisten = "{HUB}:8790"\n')
        self.main = EdgeServer(folder / "main", "--config", str(config), prefix=self.star.prefix("hub"))
        self.nodes = {}
        self.numbers = count(1)

    def start(self):
        self.main.start()
        with self.star.inside("hub"):
            self.zone = self.main.make_zone("example.com")
        for name in NAMES:
            stale = name.removesuffix("s")
            invite = ["cluster", "invite", name, "--role", "edge", "--wait", "--stale", stale]
            command = [sys.executable, "-P", "-m", "edgestead", *invite, "--cluster", str(self.main.data_dir)]
            token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            where = self.main.data_dir.with_name(name)
            node = EdgeServer(where, "--join", token, prefix=self.star.prefix(name))
            self.nodes[name] = node
            node.start()

    def write(self):
        """A new record; its name and address when the write was answered."""
        return self._written()[:2]

    def _written(self):
        number = next(self.numbers)
        name, address = f"w{number}.example.com", f"192.0.{number >> 8}.{number & 255}"
        with self.star.inside("hub"):
            answer = self.main.make_record(self.zone, "A", name, address)
        assert answer.status == 200, answer
        return name, address, answer.headers.get("edge-behind", "")

    def write_to_all(self):
        """One whose answer names no node as behind: a machine that stood still ends leases."""
        found = []

        def names_nobody():
            found.append(self._written())
            return not found[-1][2]

        wait_until(names_nobody, SECONDS_MAX)
        return found[-1][:2]

    def dig(self, node, name):
        with self.star.inside(node):
            return self.nodes[node].dig(name)

    def is_silent(self, node, name):
        host, _, port = self.nodes[node].ready["dns"].rpartition(":")
        with self.star.inside(node):
            try:
                dns.query.udp(dns.message.make_query(name, "A"), host, port=int(port), timeout=1)
            except dns.exception.Timeout:
                return True
        return False

    def is_live(self, node):
        state = read_state(self.nodes[node].data_dir)
        groups = json.loads(ask_admin(state.admin_socket, "node"))["groups"].values()
        return all(group["live"] and group["answers"] for group in groups)

    def close(self):
        for server in (*self.nodes.values(), self.main):
            server.close()
        self.star.close()


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    try:
        made = Network(tmp_path_factory.mktemp("network"))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root and iproute2 for network namespaces: {error}")
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    "how", ["link", *(pytest.param(way, marks=pytest.mark.long) for way in ("there", "back", "link", "back"))]
)
def test_a_node_whose_network_breaks_does_as_its_policy_says_and_comes_back(network, how):
    old, old_address = network.write_to_all()
    for name in NAMES:
        assert network.dig(name, old) == [old_address]
        network.star.cut(name, how)

    name, address = network.write()  # after the leases
    network.write()

    assert network.dig("serves", old) == [old_address]
    wait_until(lambda: network.is_silent("stops", old), SECONDS_MAX)
    if how != "back":  # what control sends still arrives then
        assert network.dig("serves", name) == ["NXDOMAIN"]
    for node in NAMES:
        network.star.heal(node)
    for node in NAMES:
        wait_until(lambda one=node: network.is_live(one), SECONDS_MAX)
        wait_until(lambda one=node: not network.is_silent(one, old), SECONDS_MAX)
        assert network.dig(node, name) == [address]
    name, address = network.write_to_all()
    for node in NAMES:
        assert network.dig(node, name) == [address]


@pytest.mark.long
def test_half_an_hour_without_control_is_as_short_as_a_moment(network):
    """In real time: one node answers all along, also after a restart of the machine, the other one never;
    writes wait for neither; afterwards both have all of them.
    """
    old, old_address = network.write()
    serves = network.nodes["serves"]
    for name in NAMES:
        network.star.cut(name, "link")
    network.write()  # after the leases
    wait_until(lambda: network.is_silent("stops", old), SECONDS_MAX)

    began, restarted, written = time.monotonic(), False, []
    while (passed := time.monotonic() - began) < HALF_HOUR_SECONDS:
        assert network.dig("serves", old) == [old_address], f"after {passed:.0f} s"
        assert network.is_silent("stops", old), f"after {passed:.0f} s"
        written.append(network.write())
        if not restarted and passed > HALF_HOUR_SECONDS / 2:
            restarted = True  # all of its processes
            serves.stop()
            serves.flags = ("--cluster", str(serves.data_dir), *serves.flags[2:])
            serves.start()
        time.sleep(10)  # real time is what is tried here
    for name in NAMES:
        network.star.heal(name)

    for name in NAMES:
        wait_until(lambda one=name: network.is_live(one), SECONDS_MAX)
        wait_until(lambda one=name: not network.is_silent(one, old), SECONDS_MAX)
        for record, address in written:
            assert network.dig(name, record) == [address]
