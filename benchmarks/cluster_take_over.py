"""How long do objects of a cluster not answer when their process, or its machine, dies?

    python benchmarks/cluster_take_over.py [--rounds 20]

Three nodes over a PostgreSQL pair. A client calls one object of a node, over another node, one call after the
other, and repeats what is refused. Printed is the longest time between two answers around each death:

process    SIGKILL to the objects process; its supervisor has a spare one
machine    SIGKILL to the whole node, whose addresses are unreachable from then on; it starts again afterwards
stopped    SIGSTOP to the whole node for 5 s: nobody hangs up

Goals: p99 <= 0.3 s (process), <= 3 s (machine, stopped). The load of the machine that all of it runs on is
printed beside: the figures are of that, too.
"""

import argparse
import os
import signal
import statistics
import time
from collections.abc import Callable

from cluster_post import ClusterNodes, EdgeServer, own_pair
from repeating import Repeating

from tests.cluster.objects_nodes import FLAGS, names_at, node_of

BEFORE_SECONDS, AFTER_SECONDS, STOP_SECONDS = 1.0, 7.0, 5.0
SPARE_SECONDS = 3.0  # a spare process is listed as soon as it runs, and imports the classes first
AT, OVER = "b", "a"  # the node that dies, and the one that is asked


def calls(server: EdgeServer, name: str) -> Repeating:
    """Of one object, over this server."""
    return Repeating(lambda: server.call_object(f"Numbers/{name}/where").status == 200)


def kill_process(server: EdgeServer) -> None:
    os.kill(server.children()["objects-0"], signal.SIGKILL)


def stop(server: EdgeServer) -> None:
    pids = [server.pid, *server.children().values()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_SECONDS)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


DEATHS: dict[str, Callable[[EdgeServer], None]] = {
    "process": kill_process,
    "machine": lambda server: server.kill(),
    "stopped": stop,
}


def measure(nodes: ClusterNodes, name: str, die: Callable[[EdgeServer], None]) -> tuple[float, int]:
    server = nodes.servers[AT]
    server.wait_until(lambda: "objects-spare" in server.children() and node_of(nodes, name) == AT, 120)
    time.sleep(SPARE_SECONDS)
    with calls(nodes.servers[OVER], name) as client:
        time.sleep(BEFORE_SECONDS)
        die(server)
        time.sleep(AFTER_SECONDS)
    if not server.is_started:
        server.start()
    return client.longest, client.refused


def main(rounds: int) -> None:
    with own_pair() as (folder, pair, started):
        nodes = ClusterNodes(folder / "nodes", pair.database(), ("a", "b", "c"), *FLAGS)
        started.callback(nodes.close)
        nodes.start()
        (name,) = names_at(nodes, AT, 1)
        for what, die in DEATHS.items():
            measured = [measure(nodes, name, die) for _ in range(rounds)]
            gaps = sorted(gap for gap, _ in measured)
            refused = sum(more for _, more in measured)
            print(
                f"{what:8} without answers: p50 {statistics.median(gaps):5.2f} s  longest {gaps[-1]:5.2f} s "
                f"of {rounds};  {refused} refused;  load {os.getloadavg()[0]:.0f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    main(**vars(parser.parse_args()))
