"""How fast are key-values in a cluster's database, against the same program on one machine?

    python benchmarks/cluster_kv.py [--seconds 4] [--rounds 3] [--connections 64]

put     values of 100 bytes under keys that change, each durable when it is answered
get     one value of 100 bytes

one machine     `edgecli serve`, its database synced to the disk
cluster         one of two nodes over PostgreSQL with a synchronous standby; PostgreSQL syncs both

Everything runs on this machine, load and databases too: what counts are the ratios. Rounds alternate;
medians are printed, with the processor time of the node's control process for each request.

Goals: put and get >= 0.3 x one machine at 64 in flight.
"""

import argparse
import sys
from pathlib import Path

from cluster_post import Rate, Side, measure, own_pair, report

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.testing.server import EdgeServer
from tests.support.cluster_nodes import ClusterNodes

VALUE_BYTES = 100
PUT = """
local n = 0
request = function()
  n = n + 1
  local path = "%(path)s/values/k" .. (n %%%% 100000) .. "%(run)s"
  return wrk.format("PUT", path, {["Authorization"]="Bearer %(token)s"}, string.rep("x", %(octets)d))
end
"""
GET = """
request = function()
  return wrk.format("GET", "%(path)s/values/one", {["Authorization"]="Bearer %(token)s"})
end
"""


def side(name: str, server: EdgeServer, script: str) -> Side:
    """A namespace with one value, and the load on it."""
    account = server.ready["account_id"]
    base = f"/accounts/{account}/storage/kv/namespaces"
    made = server.call("POST", base, {"title": f"bench {name} {len(script)}"}).result["id"]
    assert server.call("PUT", f"{base}/{made}/values/one", "x" * (VALUE_BYTES - 2)).status == 200
    words = {
        "path": f"/client/v4{base}/{made}",
        "octets": VALUE_BYTES,
        "run": "%(run)s",
        "token": "%(token)s",
    }
    url = server.ready["api_base"].removesuffix("/client/v4")
    return Side(name, url, server.ready["api_token"], script % words, server.children()["control"])


def main(seconds: float, rounds: int, connections: int) -> None:
    with own_pair() as (folder, pair, started):
        alone = EdgeServer(folder / "alone").start()
        started.callback(alone.close)
        nodes = ClusterNodes(folder / "nodes", pair.database(), ("a", "b"))
        started.callback(nodes.close)
        nodes.start()
        for operation, script in (("put", PUT), ("get", GET)):
            sides = [
                side("one machine", alone, script),
                side("leader", nodes.servers[nodes.leader], script),
                side("follower", nodes.servers[nodes.followers[0]], script),
            ]
            rates: dict[str, list[Rate]] = {}
            for number in range(rounds):
                for one in sides:
                    run = f"{number}{one.name.replace(' ', '')}"
                    rates.setdefault(one.name, []).append(measure(one, folder, run, seconds, connections))
            report(f"{operation} at {connections} in flight", rates)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    main(**vars(parser.parse_args()))
