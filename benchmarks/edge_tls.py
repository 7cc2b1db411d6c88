"""How many TLS handshakes (P-256, TLS 1.3) does the edge take, against nginx and Caddy with its certificate?

    python benchmarks/edge_tls.py [--seconds 5] [--rounds 3]

h2load makes full handshakes, without resumption, with a GET on each connection, from another core than the
server's. Rounds of the sides alternate; medians are printed, with the server's processor time for each.
Caddy is as in edge_proxy.py.

Goal: >= 0.6 x nginx by processor time.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.edge_proxy import HOST, LOAD_CORE, Side, _cpu_seconds, _sides, print_ratios

AT_ONCE = 100


class Seen(NamedTuple):
    per_second: float
    cpu_us: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = stack.enter_context(_sides(folder))
        seen: dict[str, list[Seen]] = {side.name: [] for side in sides.proxies}
        for _ in range(arguments.rounds):
            for side in sides.proxies:
                seen[side.name].append(_handshakes(side, arguments.seconds))
    found = {name: Seen(*map(statistics.median, zip(*rows, strict=True))) for name, rows in seen.items()}
    for name, one in found.items():
        print(f"  {name:6}{one.per_second:>8,.0f} handshakes/s  {one.cpu_us:7.1f} µs of CPU each")
    print_ratios({name: (one.per_second, one.cpu_us) for name, one in found.items()})


def _handshakes(side: Side, seconds: int) -> Seen:
    """Connections of one request each, AT_ONCE at a time."""
    port = side.tls.rpartition(":")[2]
    command = ["taskset", "-c", str(LOAD_CORE), "h2load", "--h1", f"-n{AT_ONCE}", f"-c{AT_ONCE}", "-t1"]
    command += [f"--connect-to={side.tls}", f"https://{HOST}:{port}/index.html"]
    before, began, count = _cpu_seconds(side.pid), time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"{AT_ONCE} succeeded, 0 failed, 0 errored" in text, text
        count += AT_ONCE
    took = time.perf_counter() - began
    return Seen(count / took, (_cpu_seconds(side.pid) - before) / count * 1e6)


if __name__ == "__main__":
    sys.exit(main())
