"""How fast does a cluster of three control nodes take writes, against the same program on one machine?

    python benchmarks/cluster_post.py [--seconds 4] [--rounds 3] [--connections 64] [--peer]

POST of a record from so many connections, each durable when it is answered and applied by every process:

one machine     `edgecli serve`, its database synced to the disk
leader          of three nodes over PostgreSQL with a synchronous standby; PostgreSQL syncs both
follower        the same cluster, through a node that passes the request on
PowerDNS        with --peer: its API over the same kind of PostgreSQL pair, one PATCH of an RRset each

Everything runs on this machine, load and databases too: what counts are the ratios. Rounds alternate;
medians are printed, with the processor time of the node's control process for each request. While the leader
is asked, the followers' control processes are looked at, too: what each of them spends for a request.

Goals: leader >= 0.6 x one machine, >= 5 x PowerDNS; a follower <= 0.1 x the leader's processor time.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from processes import free_port, processor_seconds, wait_for

sys.path.insert(0, str(Path(__file__).parent.parent))


from edgestead.cli.parent import end_with_parent
from edgestead.testing.server import EdgeServer
from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import Owned, Pair, find_binaries

POST = """
local n = 0
request = function()
  n = n + 1
  local body = string.format('{"type":"A","name":"p%%d-%(run)s","content":"192.0.2.1","ttl":300}', n)
  local head = {["Authorization"]="Bearer %(token)s", ["Content-Type"]="application/json"}
  return wrk.format("POST", nil, head, body)
end
"""
PATCH = """
local n = 0
request = function()
  n = n + 1
  local body = string.format('{"rrsets":[{"name":"p%%d-%(run)s.example.com.","type":"A","ttl":300,' ..
    '"changetype":"REPLACE","records":[{"content":"192.0.2.1","disabled":false}]}]}', n)
  return wrk.format("PATCH", nil, {["X-API-Key"]="%(token)s", ["Content-Type"]="application/json"}, body)
end
"""
PEER_SCHEMA = Path("/usr/share/pdns-backend-pgsql/schema/schema.pgsql.sql")


class Side(NamedTuple):
    name: str
    url: str
    token: str
    script: str
    pid: int
    followers: tuple[int, ...] = ()  # their control processes


class Rate(NamedTuple):
    per_second: float
    cpu_us: float
    latency_ms: float
    follower_us: float  # the mean of them


def synced_pair(folder: Path) -> Pair:
    """A primary and its synchronous standby, both of which sync to the disk."""
    binaries = find_binaries()
    assert binaries is not None, "apt install postgresql"
    folder.chmod(0o755)
    one, other = (Owned(binaries, folder / name, name=name) for name in "ab")
    one.create()
    one.start()
    other.follow(one)
    other.start()
    one.require_standby(True)
    return Pair(one, other)


def close_pair(pair: Pair) -> None:
    for server in (pair.primary, pair.standby):
        server.kill()


@contextmanager
def own_pair() -> Iterator[tuple[Path, Pair, ExitStack]]:
    """A folder and the pair in it; what is entered into the stack ends before them."""
    folder = Path(tempfile.mkdtemp(prefix="edge-bench-"))
    with ExitStack() as started:
        started.callback(shutil.rmtree, folder, ignore_errors=True)
        pair = synced_pair(folder)
        started.callback(close_pair, pair)
        yield folder, pair, started


def side(name: str, server: EdgeServer, zone_id: str) -> Side:
    url = f"{server.ready['api_base']}/zones/{zone_id}/dns_records"
    return Side(name, url, server.ready["api_token"], POST, server.children()["control"])


def peer(folder: Path, pair: Pair, started: ExitStack) -> Side:
    """PowerDNS, with its tables in a database of the same pair."""
    pair.primary.psql("CREATE DATABASE pdns;", check=True)
    tables = f"\\c pdns\n{PEER_SCHEMA.read_text()}"
    zone = "INSERT INTO domains (name, type) VALUES ('example.com', 'NATIVE');"
    soa = (
        "INSERT INTO records (domain_id, name, type, content, ttl) "
        "SELECT id, 'example.com', 'SOA', 'ns1.example.com h.example.com 1 1 1 1 1', 300 FROM domains;"
    )
    pair.primary.psql(f"{tables}\n{zone}\n{soa}", check=True)
    dns, api = free_port(), free_port()
    config = {
        "launch": "gpgsql",
        "gpgsql-host": pair.primary.host,
        "gpgsql-port": pair.primary.port,
        "gpgsql-user": "postgres",
        "gpgsql-dbname": "pdns",
        "local-address": "127.0.0.1",
        "local-port": dns,
        "webserver": "yes",
        "webserver-port": api,
        "api": "yes",
        "api-key": "key",
        "socket-dir": folder,
        "setuid": "",
        "guardian": "no",
        "daemon": "no",
    }
    (folder / "pdns.conf").write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    command = ["pdns_server", f"--config-dir={folder}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
    started.callback(process.wait)
    started.callback(process.terminate)
    wait_for(api)
    url = f"http://127.0.0.1:{api}/api/v1/servers/localhost/zones/example.com."
    return Side("PowerDNS", url, "key", PATCH, process.pid)


def measure(one: Side, folder: Path, run: str, seconds: float, connections: int) -> Rate:
    """Every answer must be a success."""
    script = folder / "load.lua"
    script.write_text(one.script % {"run": run, "token": one.token})
    before, following = processor_seconds(one.pid), sum(map(processor_seconds, one.followers))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", str(script), one.url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, f"{one.name}: {said}"
    count = int(re.search(r"(\d+) requests in", said)[1])
    per_second = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
    found, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", said).groups()
    latency_ms = float(found) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]
    own_us = (processor_seconds(one.pid) - before) * 1e6 / count
    followed = sum(map(processor_seconds, one.followers)) - following
    return Rate(per_second, own_us, latency_ms, followed * 1e6 / count / max(1, len(one.followers)))


def main(seconds: float, rounds: int, connections: int, with_peer: bool) -> None:
    with own_pair() as (folder, pair, started):
        alone = EdgeServer(folder / "alone").start()
        started.callback(alone.close)
        nodes = ClusterNodes(folder / "nodes", pair.database())
        started.callback(nodes.close)
        nodes.start()
        leader = nodes.leader
        zone_id = nodes.servers[leader].make_zone("example.com")
        sides = [
            side("one machine", alone, alone.make_zone("example.com")),
            side("leader", nodes.servers[leader], zone_id)._replace(
                followers=tuple(nodes.servers[name].children()["control"] for name in nodes.followers)
            ),
            side("follower", nodes.servers[nodes.followers[0]], zone_id),
            *([peer(folder, pair, started)] if with_peer else []),
        ]
        rates: dict[str, list[Rate]] = {}
        for number in range(rounds):
            for one in sides:
                run = f"{number}-{one.name.replace(' ', '')}".lower()
                rates.setdefault(one.name, []).append(measure(one, folder, run, seconds, connections))
        report_posts(rates, connections)


def report(title: str, rates: dict[str, list[Rate]], of: str = "control") -> dict[str, Rate]:
    """Each side's rounds beside those of one machine; gives the medians. `of` is whose processor time."""
    medians = {
        name: Rate(*(statistics.median(column) for column in zip(*found, strict=True)))
        for name, found in rates.items()
    }
    first = medians["one machine"]
    print(title)
    for name, median in medians.items():
        each = ", ".join(f"{one.per_second:,.0f}" for one in rates[name])
        print(
            f"{name:12} {median.per_second:8,.0f}/s  p50 {median.latency_ms:6.1f} ms  "
            f"{median.cpu_us:6.0f} us of {of}   {median.per_second / first.per_second:5.2f} x   ({each})"
        )
    return medians


def report_posts(rates: dict[str, list[Rate]], connections: int) -> None:
    medians = report(f"POST of a record at {connections} in flight", rates)
    leader, ratios = medians["leader"], sorted(one.follower_us / one.cpu_us for one in rates["leader"])
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"a follower's control, while the leader is asked: {leader.follower_us:.0f} us a request,"
        f" {statistics.median(ratios):.2f} x the leader's   ({each})"
    )
    if "PowerDNS" in medians:
        print(f"leader / PowerDNS {medians['leader'].per_second / medians['PowerDNS'].per_second:.1f} x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--peer", dest="with_peer", action="store_true")
    main(**vars(parser.parse_args()))
