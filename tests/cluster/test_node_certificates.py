"""Control nodes whose certificates have ended, as real servers: each makes its next one when it starts."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from edgestead.server.nodes import identity
from tests.cluster.test_control_nodes import answered, zone_made
from tests.support.cluster_nodes import ClusterNodes

AWAY = timedelta(days=identity.CERTIFICATE_DAYS + 1)


@pytest.fixture
def nodes(postgres, tmp_path):
    made = ClusterNodes(tmp_path / "nodes", postgres.database(), ("a", "b"))
    try:
        for name in made.servers:
            made.certify(name, datetime.now(UTC) - AWAY)
        yield made
    finally:
        made.close()


def test_nodes_that_were_off_when_their_certificates_ended_speak_to_each_other_again(nodes):
    nodes.start()
    (follower,) = nodes.followers
    # the leader makes it, over the nodes' port
    zone = zone_made(nodes.servers[follower], "example.com")
    listed = answered(partial(nodes.servers[nodes.leader].call, "GET", "/zones")).result
    assert zone in {one["id"] for one in listed}
    for server in nodes.servers.values():
        certificate = (server.data_dir / "cluster" / "node.crt").read_bytes()
        assert identity.renewal_of(certificate) > datetime.now(UTC)
