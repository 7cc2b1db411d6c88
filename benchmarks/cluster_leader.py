"""How long does a cluster take no writes when its leader changes?

    python benchmarks/cluster_leader.py [--rounds 10]

Three control nodes over a PostgreSQL pair. A client writes records one after the other at a node that does
not lead, and repeats what is refused. Printed is the longest time between two acknowledged writes around each
change:

killed     SIGKILL to the leader's control process; its supervisor lives
ended      SIGKILL to the whole node, which starts again afterwards
stopped    SIGSTOP to the whole node for 5 s
moved      as `edgecli cluster move-leader` does

Goals: p99 <= 3 s; killed <= 0.5 s.
"""

import argparse
import os
import signal
import statistics
import time
from collections.abc import Callable

from cluster_post import ClusterNodes, EdgeServer, own_pair
from repeating import Repeating

from edgestead.postgres.incarnations import want
from edgestead.testing.server import wait_until

SETTLE_SECONDS = 2.0  # before each change, when every node follows
SETTLE_SECONDS_MAX = 120
STOP_SECONDS = 5.0
AFTER_SECONDS = 6.0


def writes(server: EdgeServer, zone: str) -> Repeating:
    """Of one new record after the other."""

    def write() -> bool:
        name = f"n{time.monotonic_ns()}.example.com"
        return server.make_record(zone, "A", name, "192.0.2.1").status == 200

    return Repeating(write)


def kill(server: EdgeServer) -> None:
    os.kill(server.children()["control"], signal.SIGKILL)


def stop(server: EdgeServer) -> None:
    pids = [server.pid, *server.children().values()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_SECONDS)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def all_follow(nodes: ClusterNodes) -> bool:
    found = nodes.overview()
    admitted = sorted(row.node for row in found.rows.values() if row.kind == "control")
    return found.leader in found.rows and admitted == sorted(nodes.servers)


def measure(nodes: ClusterNodes, zone: str, change: Callable[[str], None]) -> tuple[float, int]:
    wait_until(lambda: all_follow(nodes), SETTLE_SECONDS_MAX)
    time.sleep(SETTLE_SECONDS)
    leader = nodes.leader
    with writes(nodes.servers[nodes.followers[0]], zone) as client:
        time.sleep(1)
        change(leader)
        time.sleep(AFTER_SECONDS)
    return client.longest, client.refused


def main(rounds: int) -> None:
    with own_pair() as (folder, pair, started):
        nodes = ClusterNodes(folder / "nodes", pair.database())
        started.callback(nodes.close)
        nodes.start()
        zone = nodes.servers["a"].make_zone("example.com")
        changes: dict[str, Callable[[str], None]] = {
            "killed": lambda leader: kill(nodes.servers[leader]),
            "ended": lambda leader: nodes.servers[leader].kill(),
            "stopped": lambda leader: stop(nodes.servers[leader]),
            "moved": lambda leader: assert_(want(nodes.link, nodes.followers[-1])),
        }
        for name, change in changes.items():
            found, refused = [], 0
            for _ in range(rounds):
                gap, more = measure(nodes, zone, change)
                found.append(gap)
                refused += more
                for server in nodes.servers.values():
                    if not server.is_started:
                        server.start()
            found.sort()
            print(
                f"{name:8} without writes: p50 {statistics.median(found):5.2f} s  "
                f"longest {found[-1]:5.2f} s of {rounds};  {refused} refused"
            )


def assert_(is_so: bool) -> None:
    assert is_so, "no node follows"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    main(**vars(parser.parse_args()))
