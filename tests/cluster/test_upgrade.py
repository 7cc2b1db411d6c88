"""A cluster is upgraded node by node, as the documentation says, under clients of everything it does.

Its control data are those of the release before. What stands for the next release writes a field more into
each document and message (`tests.support.newer`).
"""

import json
import os
import tarfile
from pathlib import Path

import msgspec
import pytest

import edgestead
from edgestead.model.served import KIND_ZONE, ServedZone
from edgestead.server import stores
from edgestead.testing.server import EdgeServer, wait_until
from tests.cluster.objects_nodes import FLAGS, Load, names_at, node_of
from tests.cluster.test_objects_nodes import cluster_command
from tests.cluster.upgrade_load import SECONDS_MAX, Traffic
from tests.releases.kept import RECORDS, ZONE
from tests.support import newer
from tests.support.cluster_nodes import ClusterNodes

NODES = ("a", "b", "c")
BEFORE = Path(__file__).parents[1] / "releases" / "0.2.0.tar.xz"
PATH = (str(Path(newer.__file__).parent), str(Path(edgestead.__file__).parents[1]))
IS_NEWER = ("env", "PYTHONPATH=" + os.pathsep.join(PATH))


@pytest.fixture
def nodes(postgres, tmp_path):
    with tarfile.open(BEFORE) as packed:
        packed.extractall(tmp_path, filter="data")
    of, known = tmp_path / "data", json.loads((tmp_path / "data" / "known.json").read_text())
    made = ClusterNodes(tmp_path / "nodes", postgres.database(), NODES, *FLAGS, of=of)
    try:
        yield made.start(), known
    finally:
        made.close()


def cluster(command, name, server):
    done = cluster_command(command, name, "--cluster", str(server.data_dir))
    assert done.exit_code == 0, done.output


def document_of(machine, zone):
    """A zone's document as the machine's relay keeps it."""
    store = stores.open_relay(machine.data_dir / "relay-dns.db")
    try:
        found = []
        store.feed.snapshot(frozenset((KIND_ZONE,)), found.extend)
    finally:
        store.close()
    return next(msgspec.msgpack.decode(one.doc) for one in found if one.scope == zone)


@pytest.mark.long
def test_an_upgrade_fails_no_request_and_both_releases_read_each_others_documents(nodes, tmp_path):
    made, known = nodes
    machine = EdgeServer(tmp_path / "ams-1", "--join", made.invite("ams-1"))
    servers = made.servers
    try:
        machine.start()
        zone = servers["a"].make_zone("upgrade.test")
        assert servers["a"].make_record(zone, "A", "first.upgrade.test", "192.0.2.1").status == 200
        spaces = f"/accounts/{servers['a'].ready['account_id']}/storage/kv/namespaces"
        space = servers["a"].call("POST", spaces, {"title": "upgrade"}).result["id"]
        lists = {node: names_at(made, node, 2, "upgraded") for node in NODES}
        objects = [name for names in lists.values() for name in names]
        with Load(made, objects) as load, Traffic(servers, {"ams-1": machine}, zone, space) as traffic:
            for node in (*made.followers, made.leader):
                traffic.wait_for(10)
                load.wait_for(30)
                server = servers[node]
                cluster("drain", node, servers["b" if node == "a" else "a"])
                traffic.leave(node)
                load.leave(node)
                assert server.stop() == 0
                traffic.wait_for(10)
                server.prefix = IS_NEWER
                server.start()
                wait_until(lambda at=node: node_of(made, lists[at][0]) == at, SECONDS_MAX)
                load.come_back(node)
                traffic.come_back(node)
            traffic.wait_for(10)
            load.wait_for(60)
            traffic.leave("ams-1")
            machine.stop()
            got = document_of(machine, zone)
            machine.prefix, machine.flags = IS_NEWER, ("--cluster", str(machine.data_dir))
            machine.start()
            traffic.come_back("ams-1")
            traffic.wait_for(10)
        print(f"first answers: {dict(traffic.first)}; appended to objects: {load.acked}")  # noqa: T201
        load.check()
        traffic.check(servers.values())
        assert not {("read", "503"), ("get", "503")} & traffic.first.keys(), "reads wait as writes do"
        assert load.refused == []
        assert len(got) == len(ServedZone.__struct_fields__) + 1, "a newer leader wrote it"
        for server in (*servers.values(), machine):
            assert server.dig(f"www.{ZONE}") == ["192.0.2.1"], "a zone of the release before"
            assert "Traceback" not in server.log
        records = f"/zones/{known['zone']}/dns_records"
        assert {
            server.call("GET", records).body["result_info"]["total_count"] for server in servers.values()
        } == {len(RECORDS)}
    finally:
        machine.close()
