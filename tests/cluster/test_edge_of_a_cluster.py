"""A machine without control in a cluster of several control nodes: it follows any, and outlives each."""

import hashlib
import http.client
import json
import os
import re
import signal
from itertools import count
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict as parts_of

from edgestead import __version__
from edgestead.server.edge.challenge_keys import KEY_SECONDS
from edgestead.server.founding.found import AUTHORITY
from edgestead.server.founding.look import look
from edgestead.server.founding.node import opened
from edgestead.testing.server import EdgeServer, wait_until
from tests.cluster.test_control_nodes import until_done, zone_made
from tests.support.canary import found_at
from tests.support.cluster_nodes import ClusterNodes
from tests.support.links import Line

SECONDS_MAX = 300


@pytest.fixture(scope="module")
def cluster(postgres, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    made = ClusterNodes(folder / "nodes", postgres.database(), ("a", "b"))
    edge = EdgeServer(folder / "ams-1", "--join", made.invite("ams-1"))
    try:
        made.start()
        edge.start()
        yield made, edge
    finally:
        edge.close()
        made.close()


def test_what_any_control_node_has_answered_the_edge_answers(cluster):
    made, edge = cluster
    zone = zone_made(made.servers["a"], "example.com")
    numbers = count(1)

    def is_answered_at_once(at):
        """False where the answer names the edge as behind: a machine that stood still ends leases."""
        number = next(numbers)
        name, address = f"w{number}.example.com", f"192.0.2.{number}"
        answer = made.servers[at].make_record(zone, "A", name, address)
        if answer.status == 503 or "edge-behind" in answer.headers:
            return False
        assert answer.status == 200, answer
        assert edge.dig(name) == [address]
        return True

    for at in ["a", "b"] * 3:
        wait_until(lambda one=at: is_answered_at_once(one), SECONDS_MAX)


def test_the_answer_to_a_write_names_the_edge_that_is_behind_whoever_it_follows(cluster):
    made, edge = cluster
    leader, (follower,) = made.leader, made.followers
    zone = zone_made(made.servers[leader], "example.org")
    numbers = count(1)
    with_line = Line(address_of(made.addresses[follower]))
    try:
        follow(edge, "{}:{}".format(*with_line.address))
        for name in (leader, follower):
            wait_until(lambda at=name: told_behind(made.servers[at], zone, numbers) is None, SECONDS_MAX)
        wait_until(lambda: behind(made.servers[leader]) == 0, SECONDS_MAX)

        with_line.cut()

        for name in (leader, follower, leader):
            assert told_behind(made.servers[name], zone, numbers) == "ams-1"
        wait_until(lambda: behind(made.servers[leader]) == 1, SECONDS_MAX)
        wait_until(lambda: edge_facts(made).state == "away", SECONDS_MAX)
        with_line.heal()
        wait_until(lambda: behind(made.servers[leader]) == 0, SECONDS_MAX)
        wait_until(lambda: edge_facts(made)[1:3] == ("live", 0), SECONDS_MAX)
        assert edge_facts(made).release == __version__

        def is_waited_for(at):
            if told_behind(made.servers[at], zone, numbers) is not None:
                return False
            assert edge.dig(f"b{next(numbers) - 1}.example.org") != ["NXDOMAIN"]
            return True

        for name in (leader, follower):
            wait_until(lambda at=name: is_waited_for(at), SECONDS_MAX)
    finally:
        follow(edge, *made.addresses.values())
        with_line.close()


def edge_facts(made):
    """What `edgecli cluster status` shows of the edge, at any control node."""
    with opened(made.servers["a"].data_dir) as node:
        return next(one for one in look(node, sleep=lambda _: None).nodes if one.name == "ams-1")


def address_of(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def follow(edge, *addresses):
    """Let the edge's relay begin again with these addresses of control."""
    (edge.data_dir / "cluster" / "addresses").write_text("\n".join(addresses) + "\n")
    before, seen = edge.children()["relay"], len(edge.log)
    os.kill(before, signal.SIGKILL)
    edge.wait_for_life("relay", before)
    edge.wait_for_log("dns: following", "edge: following", after=seen)


def told_behind(server, zone, numbers):
    """Write a record, and see which nodes the answer names; again where nobody leads for a moment."""
    return until_done(lambda: _told_behind(server, zone, numbers))


def _told_behind(server, zone, numbers):
    base = urlsplit(server.ready["api_base"])
    connection = http.client.HTTPConnection(base.netloc, timeout=SECONDS_MAX)
    headers = {"authorization": f"Bearer {server.ready['api_token']}", "content-type": "application/json"}
    body = {"type": "A", "name": f"b{next(numbers)}.example.org", "content": "192.0.2.1"}
    connection.request("POST", f"{base.path}/zones/{zone}/dns_records", json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    assert response.status == 200, text
    return response.getheader("edge-behind")


def behind(server):
    text = server.call("GET", "//metrics").body
    return int(re.search(r"^edge_feed_nodes_behind(?:{[^}]*})? (\d+)", text, re.MULTILINE)[1])


def test_a_key_of_clearances_that_the_leader_makes_is_everybodys(cluster):
    made, _ = cluster
    files = [made.servers[name].data_dir / "challenge-keys.json" for name in (made.leader, *made.followers)]
    kept = json.loads(files[0].read_text())
    kept[0]["made_s"] -= KEY_SECONDS

    for file in files:  # whoever leads
        file.write_text(json.dumps(kept))

    def ids():
        return [[key["id"] for key in json.loads(file.read_text())] for file in files]

    wait_until(lambda: ids()[0][1:] == [key["id"] for key in kept] and ids()[0] == ids()[1], SECONDS_MAX)


def test_the_edge_holds_no_way_to_the_database_and_no_key_of_control(cluster):
    made, edge = cluster
    server = made.servers["a"]
    token = server.ready["api_token"].encode()
    database = made.dsn.encode()
    hidden = {
        "the database": database,
        "its name": b"dbname=" + parts_of(made.dsn)["dbname"].encode(),
        "the vault's key": (server.data_dir / "cluster" / "cluster.key").read_bytes().strip(),
        "the seal": (server.data_dir / "seal.key").read_bytes().strip(),
        "the token": token,
        "its hash": hashlib.sha256(token).digest(),
        "the authority": made.vault.read(AUTHORITY),
    }

    found = found_at(edge, hidden | {"what it serves": b"example"})

    assert {what for what, _ in found} == {"what it serves"}, found
    assert ("what it serves", "relay") in found, "the test reads no memory"
    assert ("the database", "control") in found_at(server, {"the database": database})


def test_the_edge_goes_to_another_control_node_when_its_own_is_gone(cluster):
    made, edge = cluster
    server = made.servers["a"]
    zone = zone_made(server, "example.net")
    before = len(edge.log)
    followed = edge.log.rsplit("dns: following ", 1)[1][0]
    other = made.servers["b" if followed == "a" else "a"]
    made.servers[followed].kill()

    edge.wait_for_log("dns: following", "edge: following", after=before)
    answers = []

    def is_written():
        answers.append(other.make_record(zone, "A", f"n{len(answers)}.example.net", "192.0.2.9"))
        return answers[-1].status == 200

    wait_until(is_written, SECONDS_MAX)
    name = f"n{len(answers) - 1}.example.net"
    wait_until(lambda: other.dig(name) == ["192.0.2.9"], SECONDS_MAX)
    edge.wait_until(lambda: edge.dig(name) == ["192.0.2.9"], SECONDS_MAX)
