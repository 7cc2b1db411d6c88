"""The owner of objects whose way to the database is broken in one direction, with real nodes under clients.

Simulated with every other fault: `test_slots_random`.
"""

import pytest

from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.server.founding import act
from edgestead.server.founding.node import opened
from edgestead.server.places import COMMON_HOST
from edgestead.testing.server import wait_until
from tests.cluster.objects_nodes import FLAGS, SECONDS_MAX, Load, names_at, node_of, workers_of
from tests.support.cluster_nodes import ClusterNodes
from tests.support.links import Line
from tests.support.postgres import CLUSTER_ID, Owned, own_folder

NODES = ("a", "b", "c")
CUT = "c"


class Cut:
    """Nodes, of which one has a line to the database."""

    def __init__(self, folder, server):
        dsn = server.dsn("edge")
        link = Link(dsn)
        schema.create(link, CLUSTER_ID)
        link.close()
        self.nodes = ClusterNodes(folder / "nodes", dsn, NODES, *FLAGS)
        self.to_database = Line((COMMON_HOST, server.port))
        settings = self.nodes.folder / CUT / "cluster.toml"
        theirs = dsn.replace(f"port={server.port}", f"port={self.to_database.address[1]}")
        settings.write_text(settings.read_text().replace(dsn, theirs))

    def close(self):
        self.nodes.close()
        self.to_database.close()


@pytest.fixture(scope="module")
def cut(postgres_binaries, tmp_path_factory):
    with own_folder() as folder:
        server = Owned(postgres_binaries, folder / "pg", synced=False, tcp=True)
        server.create()
        server.start()
        made = None
        try:
            server.psql("CREATE DATABASE edge;", check=True)
            made = Cut(tmp_path_factory.mktemp("cut"), server)
            made.nodes.start()
            with opened(made.nodes.servers["a"].data_dir) as node:
                act.move_leader(node, "a")
            yield made
        finally:
            if made is not None:
                made.close()
            server.kill()


def number_at(nodes, node):
    return max((n for n, one in workers_of(nodes).items() if one.node == node), default=0)


@pytest.mark.long
def test_an_owner_that_does_not_reach_the_database_and_is_reached_answers_nothing_old(cut):
    """Others have its objects after its lease; what it is asked then, it refuses."""
    nodes = cut.nodes
    lists = {node: names_at(nodes, node, 2, "up") for node in NODES}
    (name, _), before = lists[CUT], number_at(nodes, CUT)
    with Load(nodes, [one for names in lists.values() for one in names]) as load:
        load.wait_for(60)
        cut.to_database.cut("up")
        try:
            wait_until(lambda: node_of(nodes, name) in ("a", "b"), SECONDS_MAX)
            load.leave(CUT)
            load.wait_for(60)
        finally:
            cut.to_database.heal()
        load.come_back(CUT)
        wait_until(lambda: number_at(nodes, CUT) > before, SECONDS_MAX)
        wait_until(lambda: node_of(nodes, name) == CUT, SECONDS_MAX)
        load.wait_for(60)
    load.check()
