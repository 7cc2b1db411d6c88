"""The way between two nodes is cut, and nobody resets their connections: both reach all else.

The nodes are in network namespaces of their own; the database is on a Unix socket, which all of them reach.
"""

import http.client
import subprocess
import time
from contextlib import suppress

import pytest

from edgestead.server.errors import StartError
from edgestead.server.founding import act
from edgestead.server.founding.node import opened
from edgestead.testing.server import wait_until
from tests.cluster.objects_classes import CHUNK, CHUNKS
from tests.cluster.objects_nodes import FLAGS, SECONDS_MAX, names_at, node_of, workers_of
from tests.cluster.test_control_nodes import answered
from tests.support.beside import Beside
from tests.support.cluster_nodes import ClusterNodes
from tests.support.namespaces import HUB, Star

PORT = 8790
CALLER, OWNER = "b", "c"
SLOW_SECONDS = 8.0  # of a reader: longer than it takes to notice a cut
WAYS = ("there", pytest.param("back", marks=pytest.mark.long), "both")


class Apart(ClusterNodes):
    """The node `a` is at the hub of a star and leads, `b` and `c` are at spokes."""

    def __init__(self, folder, dsn):
        self.star = Star(CALLER, OWNER)
        try:
            self.star.join(CALLER, OWNER)
            super().__init__(folder, dsn, ("a", CALLER, OWNER), *FLAGS)
        except BaseException:
            self.star.close()
            raise

    def place_of(self, name):
        return (HUB if name == "a" else self.star.address(name), PORT)

    def prefix_of(self, name):
        return self.star.prefix("hub" if name == "a" else name)

    def asking(self, name):
        return self.star.inside("hub" if name == "a" else name)

    def cut(self, how):
        if how != "back":
            self.star.part(CALLER, OWNER)
        if how != "there":
            self.star.part(OWNER, CALLER)

    def heal(self):
        self.star.join(CALLER, OWNER)

    def close(self):
        super().close()
        self.star.close()


@pytest.fixture(scope="module")
def apart(postgres, tmp_path_factory):
    try:
        made = Apart(tmp_path_factory.mktemp("apart"), postgres.database())
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root and iproute2 for network namespaces: {error}")
    try:
        yield made.start(in_turn=True)
    finally:
        made.close()


def leads(nodes, name):
    """Whether it does, when it was asked to: a leader at either end of the way would be cut off itself."""
    with opened(nodes.servers[name].data_dir) as node, suppress(StartError):
        act.move_leader(node, name)
    return nodes.leader == name


class Waiting(Beside):
    """A client of the caller's node that has asked, and waits for its answer."""

    def __init__(self, nodes, path):
        super().__init__()
        self._nodes, self._path = nodes, path
        self.answers = []
        self.run_beside(self._ask)

    def _ask(self):
        self.answers.append(answer_at(self._nodes, CALLER, self._path))


def answer_at(nodes, node, path, *arguments):
    with nodes.asking(node):
        return nodes.servers[node].call_object(path, *arguments)


@pytest.mark.parametrize("how", WAYS)
def test_a_call_over_a_way_that_is_cut_ends_and_the_owner_keeps_its_object(apart, how):
    """The caller is told, and so is who asks later; clients of other nodes notice nothing."""
    wait_until(lambda: leads(apart, "a"), SECONDS_MAX)
    (name,) = names_at(apart, OWNER, 1, how)
    wait_until(lambda: answer_at(apart, CALLER, f"Numbers/{name}/append", 1).status == 200, SECONDS_MAX)
    before = {number for number, one in workers_of(apart).items() if one.node == OWNER}
    with Waiting(apart, f"Numbers/{name}/wait") as waiting:
        wait_until(lambda: answer_at(apart, OWNER, f"Numbers/{name}/waits").body["result"], SECONDS_MAX)
        apart.cut(how)
        try:
            wait_until(lambda: waiting.answers, SECONDS_MAX)
            later = answer_at(apart, CALLER, f"Numbers/{name}/read")
            others = [
                answered(lambda at=node: answer_at(apart, at, f"Numbers/{name}/read"))
                for node in ("a", OWNER)
            ]
        finally:
            apart.heal()

    assert waiting.answers[0].status == 503
    assert "reached" in str(waiting.answers[0].body)
    assert later.status == 503
    assert [one.body["result"] for one in others] == [[1], [1]]
    if before <= workers_of(apart).keys():  # else its machine stood still for a lease, on a busy one
        assert node_of(apart, name) == OWNER
    wait_until(lambda: answer_at(apart, CALLER, f"Numbers/{name}/append", 2).status == 200, SECONDS_MAX)


def test_a_body_whose_reader_is_slow_arrives_whole(apart):
    """Nothing is sent meanwhile, for longer than it takes to notice a cut."""
    (name,) = names_at(apart, OWNER, 1, "slow")
    server = apart.servers[CALLER]
    with apart.asking(CALLER):
        connection = http.client.HTTPConnection(server.ready["objects"], timeout=SECONDS_MAX)
        headers = {"Authorization": f"Bearer {server.ready['api_token']}"}
        connection.request("GET", f"/objects/Numbers/{name}/fetch/large", headers=headers)
    answer = connection.getresponse()
    read, until = [], time.monotonic() + SLOW_SECONDS
    while time.monotonic() < until:
        read.append(answer.read(1_024))
        time.sleep(1)
    read.append(answer.read())
    connection.close()

    assert b"".join(read) == CHUNK * CHUNKS
