"""What a relay costs: changes for many processes, and loading everything again.

    PYTHONPATH=src:. python benchmarks/cluster_relay.py [--children 100] [--rate 1000] [--seconds 10]
        [--names 100000]

A server with control, and a machine that follows it; beside its own processes so many more follow its relay
here, each applying nothing. Records are written by the API in batches at the given rate, and the relay's
processor time is counted meanwhile. Then these go, the names are imported, the machine's files are deleted,
and the clock runs from the start of its relay until it has all names again and its processes answer from
them.

Goals: 100 children and 1,000 changes a second within one core; 100,000 names in 3 s.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.processes import processor_seconds
from benchmarks.zone_import import import_file
from edgestead.feed.follower import Follower
from edgestead.feed.follower_loop import LoopFollower
from edgestead.server.folder import read_state
from edgestead.server.nodes.kinds import NODE_KINDS
from edgestead.server.supervisor.listeners import feed_socket
from edgestead.testing.server import EdgeServer
from tests.support.edge_nodes import EdgeNodes

BATCH = 100
PART = 5_000  # names of one imported zone


class Idle:
    """A consumer that keeps nothing."""

    def begin(self) -> None: ...
    def load(self, changes: object) -> None: ...
    def swap(self) -> None: ...
    def apply(self, changes: object) -> None: ...


async def follow(path: str, children: int) -> None:
    """For ever."""
    kinds = sorted(NODE_KINDS["dns"])
    made = [Follower(Idle(), group="dns", name=f"child-{n}", kinds=kinds) for n in range(children)]
    await asyncio.gather(*(LoopFollower(path, one).run() for one in made))


@contextmanager
def following(path: str, children: int) -> Iterator[None]:
    """In a process of their own, which ends with the block: each of a hundred that read on through an import
    of 100,000 names would decode all of them.
    """
    process = multiprocessing.get_context("spawn").Process(target=_follow, args=(path, children), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _follow(path: str, children: int) -> None:
    asyncio.run(follow(path, children))


def write(server: EdgeServer, zone_id: str, rate: int, seconds: float) -> tuple[int, float]:
    """Changes that were written, and how long that took."""
    base = urlsplit(server.ready["api_base"])
    connection = http.client.HTTPConnection(base.netloc, timeout=60)
    headers = {"Authorization": f"Bearer {server.ready['api_token']}", "Content-Type": "application/json"}
    began, written = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        posts = [
            {"type": "A", "name": f"c{written + n}.rate.test", "content": "192.0.2.1", "ttl": 300}
            for n in range(BATCH)
        ]
        path = f"{base.path}/zones/{zone_id}/dns_records/batch"
        connection.request("POST", path, json.dumps({"posts": posts}), headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        written += BATCH
        time.sleep(max(0.0, began + written / rate - time.monotonic()))
    return written, time.monotonic() - began


def resync(nodes: EdgeNodes, names: int) -> float:
    """Seconds from the start of a relay without files until it is live."""
    for number in range(0, names, PART):
        zone_id = nodes.main.make_zone(f"z{number}.test")
        lines = (f"n{n} 300 IN A 192.0.2.1" for n in range(min(PART, names - number)))
        import_file(nodes.main, zone_id, f"$ORIGIN z{number}.test.\n" + "\n".join(lines) + "\n")
    node = nodes.nodes["node"]
    node.stop()
    for left in (*node.data_dir.glob("relay-*"), *(node.data_dir / "dns").iterdir()):
        left.unlink()
    node.flags = ("--cluster", str(node.data_dir), *node.flags[2:])
    node.launch()
    node.wait_for_life("relay")
    began = time.monotonic()
    node.wait_until(lambda: all(group["live"] for group in nodes.standing("node").values()), 600)
    took = time.monotonic() - began
    node.wait_until(node.ready_file.exists, 600)
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("children", 100), ("rate", 1_000), ("seconds", 10), ("names", 100_000)):
        options.add_argument(f"--{name}", type=int, default=default)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as place, closing(EdgeNodes(Path(place))) as nodes:
        nodes.main.start()
        node = nodes.join("node")
        state = read_state(node.data_dir)
        assert state is not None
        pid, zone_id = node.children()["relay"], nodes.main.make_zone("rate.test")
        with following(str(feed_socket(Path(state.runtime_dir), "dns")), asked.children):
            time.sleep(4)  # until they have started
            before = processor_seconds(pid)
            written, took = write(nodes.main, zone_id, asked.rate, asked.seconds)
            used = processor_seconds(pid) - before
        assert node.children()["relay"] == pid, "the relay was restarted"
        print(f"{asked.children} children, {written / took:,.0f} changes/s: {used / took:.2f} cores (goal 1)")
        print(f"{asked.names:,} names again: {resync(nodes, asked.names):.2f} s, from exec (goal 3)")
        os.kill(node.pid, signal.SIGTERM)


if __name__ == "__main__":
    main()
