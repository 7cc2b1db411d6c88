"""Leaders and followers are killed and stopped under load, and the history of all clients is checked.

Over a primary with a synchronous standby, as clusters have it. Each run prints how often it really hit one:
`pytest --long -s tests/cluster/test_kills.py -k many`.
"""

import http.client
import itertools
import os
import random
import signal
import time
from collections import Counter
from operator import gt

import pytest

from edgestead.testing.server import wait_until
from tests.cluster.checker import History, faults
from tests.cluster.test_control_nodes import SECONDS_MAX, contents_of, zone_made
from tests.support.beside import Beside
from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import pair

LEADERS = 20  # are lost in a short run
DONE_A_ROUND = 5  # writes and reads, however slow the machine is
ROUNDS_LONG = 100
PAUSE_SECONDS = (0.3, 1.0, 3.0)
FAILED = (OSError, http.client.HTTPException)


class Load(Beside):
    """A writer and a reader at each node."""

    DOMAIN = "kills.example"

    def __init__(self, nodes, zone, run):
        super().__init__()
        self.nodes, self.zone, self.run, self.history = nodes, zone, run, History()
        self.counts = {}  # status of writes
        for name in nodes.servers:
            self.run_beside(self._write, name)
            self.run_beside(self._read, name)

    @property
    def done(self):
        """Writes that were acknowledged, reads that were answered."""
        return self.history.acknowledged, self.history.reads

    def _write(self, node):
        for number in itertools.count():
            if self._ended.is_set():
                return
            name, began = f"{self.run}-{node}-{number}", time.monotonic()
            try:
                answer = self.nodes.servers[node].make_record(
                    self.zone, "TXT", f"{name}.{self.DOMAIN}", f'"{name}"'
                )
                status = answer.status
            except FAILED:
                status = 0
            self.history.wrote(name, began, status == 200)
            self.counts[status] = self.counts.get(status, 0) + 1
            time.sleep(0.01)

    def _read(self, node):
        while not self._ended.is_set():
            began = time.monotonic()
            if (names := self.names_at(node)) is not None:
                self.history.saw(node, began, names)
            time.sleep(0.05)

    def names_at(self, node):
        """In one answer: several would not be one read. None when it gave none, or one that may be old."""
        path = f"/zones/{self.zone}/dns_records?type=TXT&name.startswith={self.run}-&per_page=50000"
        try:
            answer = self.nodes.servers[node].call("GET", path)
        except FAILED:
            return None
        if answer.status != 200 or "edge-stale" in answer.headers:
            return None
        assert answer.body["result_info"]["total_count"] == len(answer.result)
        return frozenset(record["name"].partition(".")[0] for record in answer.result)


# Each says what it really hit; "" when that was gone already.


def kill_leader(nodes, rnd):
    return "leaders killed" if kill_control(nodes, nodes.leader) else ""


def kill_follower(nodes, rnd):
    return "followers killed" if kill_control(nodes, rnd.choice(nodes.followers)) else ""


def kill_control(nodes, name):
    pid = nodes.servers[name].children().get("control")
    return pid is not None and sent(pid, signal.SIGKILL)


def stop_leader(nodes, rnd):
    """The whole node stands still, and goes on."""
    server = nodes.servers[nodes.leader]
    children = server.children()
    pids = [server.pid, *children.values()]
    hit = [pid for pid in pids if sent(pid, signal.SIGSTOP)]
    time.sleep(rnd.choice(PAUSE_SECONDS))
    for pid in pids:
        sent(pid, signal.SIGCONT)
    return "leaders stopped" if children.get("control") in hit else ""


def sent(pid, what):
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


def end_node(nodes, rnd):
    leader = nodes.leader
    name = rnd.choice([leader, "a", "c"])
    nodes.servers[name].kill()
    nodes.servers[name].start()
    return "nodes of a leader killed" if name == leader else "other nodes killed"


WAYS = (kill_leader, kill_leader, kill_leader, kill_follower, stop_leader, end_node)


def hurt(nodes, seed, ways, is_enough):
    rnd, hits = random.Random(seed), Counter()
    zone = zone_made(nodes.servers["a"], Load.DOMAIN)
    with Load(nodes, zone, f"r{seed}") as load:
        while not is_enough(hits):
            hits[rnd.choice(ways)(nodes, rnd)] += 1
            goal = [len(found) + DONE_A_ROUND for found in load.done]
            wait_until(lambda g=goal: all(map(gt, map(len, load.done), g)), SECONDS_MAX)
            time.sleep(rnd.uniform(0.2, 1.5))
    return load, hits


def check(nodes, load):
    history = load.history
    found: dict[str, frozenset[str]] = {}

    def all_answer():
        found.update({name: names for name in nodes.servers if (names := load.names_at(name)) is not None})
        return len(found) == len(nodes.servers)

    wait_until(all_answer, SECONDS_MAX)
    for name, names in found.items():
        assert not history.acknowledged - names, f"acknowledged writes are lost at {name}"
    assert faults(history.writes, history.reads) == []

    def are_equal():
        """In the end: processes write of themselves."""
        copies = [contents_of(server) for server in nodes.servers.values()]
        return copies[0] == copies[1] == copies[2]

    wait_until(are_equal, SECONDS_MAX)


def run(nodes, seed, ways, is_enough):
    load, hits = hurt(nodes, seed, ways, is_enough)
    check(nodes, load)
    rounds, missed = hits.total(), hits.pop("", 0)
    said = ", ".join(f"{number} {what}" for what, number in sorted(hits.items()))
    acknowledged = len(load.history.acknowledged)
    print(f"\nseed {seed}: {said}; {acknowledged} acknowledged, 0 lost ({missed} missed)")  # noqa: T201
    assert missed <= rounds / 2
    assert load.counts[200] > DONE_A_ROUND * rounds
    assert len(load.history.reads) > DONE_A_ROUND * rounds


def leaders_lost(hits):
    return sum(number for what, number in hits.items() if "leader" in what)


@pytest.fixture
def nodes(postgres_binaries, tmp_path):
    with pair(postgres_binaries) as database:
        made = ClusterNodes(tmp_path / "nodes", database.database())
        try:
            yield made.start()
        finally:
            made.close()


@pytest.mark.timeout(1_800)
def test_no_acknowledged_write_is_lost_and_no_read_is_old_under_kills(nodes):
    """Nodes are not ended: their start takes longer than all else, and other tests have it."""
    ways = (kill_leader, kill_leader, kill_follower, stop_leader)
    run(nodes, 1, ways, lambda hits: leaders_lost(hits) >= LEADERS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 16))
def test_nor_under_many(nodes, seed):
    run(nodes, seed, WAYS, lambda hits: hits.total() >= ROUNDS_LONG)
