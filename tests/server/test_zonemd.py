"""A large zone of a real server has its digest again when it is quiet: by the command, through a transfer."""

import subprocess
import sys

import dns.query
import dns.zone
import pytest

from edgestead.testing.server import EdgeServer, environment, wait_until

ZONE = "large.test"
AT_ONCE = 200
RECORDS = 600  # more than have one with each change
WAIT_SECONDS = 300


@pytest.fixture
def server(tmp_path):
    started = EdgeServer(tmp_path / "data", "--transfer-to", "127.0.0.0/8").start()
    yield started
    started.close()


def zonemd(server, action):
    where = {"EDGE_API_BASE": server.ready["api_base"], "EDGE_TOKEN": server.ready["api_token"]}
    command = [sys.executable, "-P", "-m", "edgestead", "dns", "zonemd", ZONE, action]
    options = {"check": True, "capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(command, env=environment() | where, **options).stdout


def transferred(server):
    host, _, port = server.ready["dns"].rpartition(":")
    return dns.zone.from_xfr(
        dns.query.xfr(host, f"{ZONE}.", port=int(port), relativize=False), relativize=False
    )


def has_digest(server):
    """Raises where it is of another content."""
    zone = transferred(server)
    found = zone.get_rdataset(f"{ZONE}.", "ZONEMD")
    if found:
        zone.verify_digest()
    return bool(found)


def test_a_large_zone_has_a_digest_when_it_is_quiet(server):
    zone_id = server.make_zone(ZONE)
    posts = [{"type": "A", "name": f"n{number}", "content": "192.0.2.1"} for number in range(RECORDS)]
    for start in range(0, RECORDS, AT_ONCE):
        some = {"posts": posts[start : start + AT_ONCE]}
        assert server.call("POST", f"/zones/{zone_id}/dns_records/batch", some).status == 200

    assert "carries a digest" in zonemd(server, "on")
    wait_until(lambda: has_digest(server), WAIT_SECONDS)
    assert server.make_record(zone_id, "A", "one-more", "192.0.2.2").status == 200
    wait_until(lambda: has_digest(server), WAIT_SECONDS)
    assert transferred(server).get_rdataset(f"one-more.{ZONE}.", "A")
    assert "carries no digest" in zonemd(server, "off")
    assert not has_digest(server)
