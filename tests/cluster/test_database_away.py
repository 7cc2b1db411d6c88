"""The cluster's database stands still, and fails over: what is answered meanwhile; nothing is lost.

Of the nodes a and b go on with reads (`cluster.reads = stale`), c does not.
"""

import time

import dns.exception
import dns.message
import dns.query
import pytest

from edgestead.postgres.incarnations import want
from edgestead.testing.server import wait_until
from tests.cluster.checker import faults
from tests.cluster.test_control_nodes import SECONDS_MAX, written, zone_made
from tests.cluster.test_kills import Load
from tests.support.beside import Beside
from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import pair

LEASE_SECONDS = 2


@pytest.fixture(scope="module")
def two(postgres_binaries):
    with pair(postgres_binaries) as running:
        yield running


@pytest.fixture(scope="module")
def nodes(two, tmp_path_factory):
    made = ClusterNodes(tmp_path_factory.mktemp("cluster") / "nodes", two.database())
    for name, setting in (("a", 'reads = "stale"'), ("b", 'reads = "stale"'), ("c", 'stale = "stop"')):
        with (made.servers[name].data_dir / "cluster.toml").open("a") as settings:
            settings.write(f"{setting}\n")
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def zone(nodes):
    return zone_made(nodes.servers["a"], Load.DOMAIN)


def statuses(nodes, zone):
    return {server.call("GET", f"/zones/{zone}").status for server in nodes.servers.values()}


def is_old(server, zone):
    """Whether its answer says that it may be; None of one that gives none, as a node without a lease."""
    answer = server.call("GET", f"/zones/{zone}")
    if answer.status == 503:
        return None
    assert answer.result["id"] == zone
    return "edge-stale" in answer.headers


def ready(server):
    return server.call("GET", "//health/ready")


def is_silent(server):
    """Whether its DNS gives no answer at all."""
    host, _, port = server.ready["dns"].rpartition(":")
    try:
        dns.query.udp(dns.message.make_query(Load.DOMAIN, "SOA"), host, port=int(port), timeout=1)
    except dns.exception.Timeout:
        return True
    return False


class Reads(Beside):
    """Of one node, one after the other, in a thread: how many were answered, also old, and what was not."""

    def __init__(self, server, zone):
        super().__init__()
        self.answered, self.old, self.others = 0, 0, []
        self._server, self._path = server, f"/zones/{zone}/dns_records?per_page=5"
        self.run_beside(self._read)

    def _read(self):
        while not self._ended.wait(0.005):
            answer = self._server.call("GET", self._path)
            self.answered += answer.status == 200
            self.old += "edge-stale" in answer.headers
            if answer.status != 200:
                self.others.append(answer)


def test_without_the_database_the_api_answers_nothing_old_and_dns_does_as_its_policy_says(two, nodes, zone):
    server, stops = nodes.servers["b"], nodes.servers["c"]
    wait_until(lambda: want(nodes.link, "b"), SECONDS_MAX)  # whose office ends with a write under way
    wait_until(lambda: nodes.leader == "b", SECONDS_MAX)
    written(server, zone, "before.kills.example", '"x"')
    wait_until(lambda: statuses(nodes, zone) == {200}, SECONDS_MAX)
    two.primary.pause()
    try:
        assert server.make_record(zone, "TXT", "lost.kills.example", '"x"').status == 503
        words = "has no lease of its cluster's database"
        wait_until(lambda: words in str(stops.call("GET", f"/zones/{zone}").body), SECONDS_MAX)
        assert stops.call("GET", f"/zones/{zone}").status == 503
        assert server.make_record(zone, "TXT", "during.kills.example", '"x"').status == 503
        assert server.dig("before.kills.example", "TXT") == ['"x"']
        wait_until(lambda: is_silent(stops), SECONDS_MAX)
        wait_until(lambda: ready(stops).status == 503, SECONDS_MAX)

        wait_until(lambda: is_old(server, zone) and is_old(nodes.servers["a"], zone), SECONDS_MAX)
        seconds = int(server.call("GET", f"/zones/{zone}").headers["edge-stale"])
        wait_until(lambda: int(server.call("GET", "/user").headers["edge-stale"]) > seconds, SECONDS_MAX)
        wait_until(lambda: ready(server).status == 200, SECONDS_MAX)
    finally:
        two.primary.resume()

    wait_until(lambda: statuses(nodes, zone) == {200}, SECONDS_MAX)
    written(server, zone, "after.kills.example", '"x"')
    wait_until(lambda: is_old(server, zone) is False, SECONDS_MAX)
    wait_until(lambda: ready(stops).status == 200, SECONDS_MAX)
    wait_until(lambda: not is_silent(stops), SECONDS_MAX)
    assert stops.dig("after.kills.example", "TXT") == ['"x"']


def test_nothing_acknowledged_is_lost_and_chosen_reads_go_on_when_the_database_fails_over(two, nodes, zone):
    written(nodes.servers["b"], zone, "first.kills.example", '"x"')
    wait_until(lambda: want(nodes.link, "a"), SECONDS_MAX)  # whose office the outage ends
    wait_until(lambda: nodes.leader == "a", SECONDS_MAX)
    reads = [Reads(nodes.servers[name], zone) for name in ("a", "b")]
    with Load(nodes, zone, "failover") as load, reads[0], reads[1]:
        wait_until(lambda: len(load.history.acknowledged) > 20, SECONDS_MAX)
        two.primary.kill()
        wait_until(lambda: all(one.old for one in reads), SECONDS_MAX)
        time.sleep(LEASE_SECONDS)
        before = len(load.history.acknowledged)
        two.promote()
        wait_until(lambda: len(load.history.acknowledged) > before + 20, SECONDS_MAX)
        wait_until(lambda: all(is_old(nodes.servers[name], zone) is False for name in "ab"), SECONDS_MAX)

    for one in reads:
        print(f"{one.answered:,} reads answered, {one.old:,} of them old, {len(one.others)} not")  # noqa: T201
        assert len(one.others) <= one.answered / 1000, one.others[:3]
    assert faults(load.history.writes, load.history.reads) == []
    for name in nodes.servers:
        found = []
        wait_until(lambda n=name, to=found: to.append(load.names_at(n)) or to[-1] is not None, SECONDS_MAX)
        assert not load.history.acknowledged - found[-1]
