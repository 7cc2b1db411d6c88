"""The database is what docs/how-to/cluster.md sets up: its deaths under load lose nothing acknowledged.

A server that dies is started again where it was; a machine that dies is replaced when Patroni's time is over.
"""

import time
from contextlib import closing

import pytest

from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.testing.server import wait_until
from tests.cluster.test_kills import Load, check
from tests.support import patroni
from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import CLUSTER_ID

SECONDS_MAX = 120


@pytest.fixture
def members():
    if not patroni.is_installed():
        pytest.skip("PATRONI IS NOT TESTED: apt install patroni etcd-server")
    with patroni.patroni() as made:
        yield made


@pytest.mark.long
def test_a_server_and_a_machine_of_the_database_die_under_load(members, tmp_path):
    with closing(Link(members.dsn("postgres"))) as link:
        link.run("CREATE DATABASE edge")
    with closing(Link(members.dsn("edge"))) as link:
        schema.create(link, CLUSTER_ID)
        assert not link.copies.is_one
    nodes = ClusterNodes(tmp_path / "nodes", members.dsn("edge"))
    try:
        nodes.start()
        zone = nodes.servers["a"].make_zone("example.com")
        with Load(nodes, zone, "p") as load:
            for hurt in (members.kill_server, members.kill_machine):
                members.wait_for_standby()
                wait_until(lambda: len(load.history.acknowledged) > 20, SECONDS_MAX)
                former = members.primary()
                began_s, before = time.monotonic(), len(load.history.acknowledged)
                hurt(former)
                members.wait_for_primary(but=former if hurt == members.kill_machine else "")
                wait_until(lambda b=before: len(load.history.acknowledged) > b + 20, SECONDS_MAX)
                print(f"{hurt.__name__} of {former}: writes go on after {time.monotonic() - began_s:.1f} s")  # noqa: T201
                if hurt == members.kill_machine:
                    members.start_member(former)
        check(nodes, load)
    finally:
        nodes.close()
