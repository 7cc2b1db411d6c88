"""How fast does a control node that follows answer reads, against the same program on one machine?

    python benchmarks/cluster_get.py [--seconds 4] [--rounds 3] [--connections 32]

GET of one record, and of a list of 100, at a server of its own and at a follower of three nodes over
PostgreSQL. Rounds alternate; medians are printed, with the processor time of control for each request.

Goal: follower >= 0.95 x one machine.
"""

import argparse
import re
import statistics
import subprocess

from cluster_post import ClusterNodes, EdgeServer, own_pair
from processes import processor_seconds

RECORDS = 200


def fill(server: EdgeServer) -> dict[str, str]:
    """A zone with records; the paths that are read."""
    zone = server.make_zone("example.com")
    for number in range(RECORDS):
        made = server.make_record(zone, "A", f"host-{number}.example.com", "192.0.2.1")
    records = f"/zones/{zone}/dns_records"
    return {"one": f"{records}/{made.result['id']}", "list": records}


def measure(server: EdgeServer, path: str, seconds: float, connections: int) -> tuple[float, float]:
    pid = server.children()["control"]
    before = processor_seconds(pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s"]
    command += ["-H", f"Authorization: Bearer {server.ready['api_token']}", server.ready["api_base"] + path]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    count = int(re.search(r"(\d+) requests in", said)[1])
    per_second = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
    return per_second, (processor_seconds(pid) - before) * 1e6 / count


def main(seconds: float, rounds: int, connections: int) -> None:
    with own_pair() as (folder, pair, started):
        alone = EdgeServer(folder / "alone").start()
        started.callback(alone.close)
        nodes = ClusterNodes(folder / "nodes", pair.database())
        started.callback(nodes.close)
        nodes.start()
        own, theirs = fill(alone), fill(nodes.servers[nodes.leader])
        follower = nodes.servers[nodes.followers[0]]
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for _ in range(rounds):
            for what in ("one", "list"):
                for name, server, paths in (("one machine", alone, own), ("follower", follower, theirs)):
                    rate = measure(server, paths[what], seconds, connections)
                    found.setdefault((what, name), []).append(rate)
        for what in ("one", "list"):
            rates = {}
            for name in ("one machine", "follower"):
                rates[name], cpu_us = (
                    statistics.median(column) for column in zip(*found[what, name], strict=True)
                )
                print(f"GET {what:4} {name:12} {rates[name]:9,.0f}/s {cpu_us:6.0f} us of control")
            print(f"GET {what:4} follower / one machine {rates['follower'] / rates['one machine']:.2f} x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    main(**vars(parser.parse_args()))
