"""From POST to the first DNS answer of another machine that shows the record, against one machine alone.

    PYTHONPATH=src:. python benchmarks/cluster_visible.py [--changes 200] [--rounds 3] [--delay-ms 0]

one machine     `edgecli serve` without nodes; its own DNS is asked
a node          the same with a machine that follows it; that machine's DNS is asked
a follower      three control nodes over a PostgreSQL pair; written at the leader, asked at another one
through it      the same, written at the node that is asked

The query is sent after the 200; an answer without the record is a miss, and there must be none. Rounds
alternate. All of it runs on this machine: `--delay-ms` holds up what travels to the node and back.
Goals: each median at most 3 x one machine's, each p99 at most 250 ms.
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles

from cluster_post import ClusterNodes, own_pair

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.visible import APEX, Client
from edgestead.testing.server import EdgeServer
from tests.support.edge_nodes import EdgeNodes


def changes(asked: Client, name: str, count: int) -> list[float]:
    found = [asked.change(f"{name}-{number}") for number in range(count)]
    misses = sum(not shown for _, shown in found)
    assert misses == 0, f"{misses} answers came without the record"
    return [took_ms for took_ms, _ in found]


def through(main: EdgeServer, node: EdgeServer, zone_id: str) -> Client:
    """Writes at one server, asks another one's DNS."""
    client = Client(main, zone_id)
    host, _, port = node.ready["dns"].rpartition(":")
    client._udp.connect((host, int(port)))
    return client


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--changes", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--delay-ms", type=float, default=0)
    asked = options.parse_args()
    with own_pair() as (folder, pair, undo):
        alone = undo.enter_context(closing(EdgeServer(folder / "alone"))).start()
        cluster = undo.enter_context(closing(ClusterNodes(folder / "cluster", pair.database()))).start()
        leader, follower = cluster.servers[cluster.leader], cluster.servers[cluster.followers[0]]
        zone_id = leader.make_zone(APEX)
        nodes = undo.enter_context(closing(EdgeNodes(folder)))
        nodes.main.start()
        node = nodes.join("node")
        nodes.lines["node"].delay_seconds = asked.delay_ms / 1000
        sides = {
            "one machine": Client(alone, alone.make_zone(APEX)),
            "a node": through(nodes.main, node, nodes.main.make_zone(APEX)),
            "a follower": through(leader, follower, zone_id),
            "through it": Client(follower, zone_id),
        }
        took: dict[str, list[float]] = {name: [] for name in sides}
        for round_ in range(asked.rounds + 1):  # the first one warms up
            for name, client in sides.items():
                found = changes(client, f"{name.replace(' ', '-')}-{round_}", asked.changes)
                took[name] += found if round_ else []
    print(f"{asked.rounds} x {asked.changes} changes, {asked.delay_ms:g} ms each way")
    for name, found in took.items():
        ratio = median(found) / median(took["one machine"])
        p99_ms = quantiles(found, n=100)[98]
        print(
            f"{name:12} median {median(found):5.1f} ms, {ratio:.2f} x (goal 3)   p99 {p99_ms:5.1f} (goal 250)"
        )


if __name__ == "__main__":
    main()
