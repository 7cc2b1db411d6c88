"""How long does an object of a cluster not answer while its slot goes to another node, by how many live?

    python benchmarks/cluster_hand_over.py [--rounds 3]

Two nodes over a PostgreSQL pair. As many objects of one slot as said are called, so that they are in memory;
then their node drains, and takes its slots back. A client calls one of them over the other node meanwhile,
one call after the other, and a second client an object of another slot, which moves at another moment.

slot       the longest time between two answers of an object of the slot: goal <= 0.2 s
next       the same of the other object
still      the same of both, in as long a time in which nothing moves: what the machine's other load costs
again      the first call of each object at its new node, four at a time: it is read from the log

Slots go six times as fast as usual, so that there is something to see.
"""

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from click.testing import CliRunner
from cluster_post import ClusterNodes, own_pair
from cluster_take_over import calls

from edgestead.cli.main import cli
from edgestead.cluster.placement import slot_of
from edgestead.objects import ids
from edgestead.testing.server import EdgeServer
from tests.cluster.objects_nodes import node_of

LIVE = (1, 100, 1_000)
AT, OVER = "b", "a"
CALLERS = 4
SECONDS_MAX = 120
STILL_SECONDS = 12.0
CLASSES = """
from edgestead import StatefulObject
from edgestead.cluster import slots
from edgestead.objects.runtime.node import Node

slots.GIVE_MS = 5
Node.evict_idle = lambda self, at_once: False  # all are in memory when their slot goes


class Numbers(StatefulObject):
    async def where(self):
        await self.ctx.storage.put("n", await self.ctx.storage.get("n", default=0) + 1)
"""


def names_of_one_slot(nodes: ClusterNodes, many: int) -> tuple[list[str], str]:
    """As many names of one slot that the node has, and one of another."""
    by_slot: dict[int, list[str]] = {}
    other = ""
    chosen = -1
    for number in count():
        name = str(number)
        slot = slot_of(ids.from_name("Numbers", name).id)
        if chosen < 0 and node_of(nodes, name) == AT:
            chosen = slot
        elif chosen >= 0 and not other and slot != chosen and node_of(nodes, name) == AT:
            other = name
        if slot == chosen:
            by_slot.setdefault(slot, []).append(name)
            if len(by_slot[slot]) == many and other:
                return by_slot[slot], other
    raise AssertionError


def call_all(server: EdgeServer, names: list[str]) -> list[float]:
    def timed(name: str) -> float:
        began = time.monotonic()
        assert server.call_object(f"Numbers/{name}/where").status == 200
        return time.monotonic() - began

    with ThreadPoolExecutor(CALLERS) as callers:
        return sorted(callers.map(timed, names))


def drain(nodes: ClusterNodes, *more: str) -> None:
    folder = str(nodes.servers[OVER].data_dir)
    done = CliRunner().invoke(cli, ["cluster", "drain", AT, "--cluster", folder, *more])
    assert done.exit_code == 0, done.output


def hand_over(nodes: ClusterNodes, names: list[str], other: str, to: str, *more: str) -> tuple[float, float]:
    server = nodes.servers[OVER]
    with calls(server, names[0]) as inside, calls(server, other) as outside:
        time.sleep(1.0)
        drain(nodes, *more)
        server.wait_until(lambda: node_of(nodes, names[0]) == to, SECONDS_MAX)
        time.sleep(0.5)
    assert not inside.refused, f"{inside.refused} calls were refused"
    return inside.longest, outside.longest


def at_rest(nodes: ClusterNodes, names: list[str], other: str) -> float:
    server = nodes.servers[OVER]
    with calls(server, names[0]) as inside, calls(server, other) as outside:
        time.sleep(STILL_SECONDS)
    return max(inside.longest, outside.longest)


def main(rounds: int) -> None:
    with own_pair() as (folder, pair, started):
        (folder / "classes.py").write_text(CLASSES)
        flags = ("--objects", str(folder / "classes.py"), "--objects-workers", "1")
        nodes = ClusterNodes(folder / "nodes", pair.database(), (OVER, AT), *flags)
        started.callback(nodes.close)
        nodes.start()
        nodes.servers[OVER].wait_until(lambda: node_of(nodes, "0") is not None, SECONDS_MAX)
        time.sleep(20)  # until slots have gone to whom they are wanted for
        names, other = names_of_one_slot(nodes, max(LIVE))
        for live in LIVE:
            slot, next_to, again, still = [], [], [], []
            for _ in range(rounds):
                still.append(at_rest(nodes, names, other))
                for to, more in ((OVER, ()), (AT, ("--undo",))):
                    call_all(nodes.servers[OVER], names[:live])
                    gap, beside = hand_over(nodes, names[:live], other, to, *more)
                    slot.append(gap)
                    next_to.append(beside)
                    again += call_all(nodes.servers[OVER], names[:live])
            print(
                f"{live:5} live: slot p50 {statistics.median(slot):.3f} s, longest {max(slot):.3f} of "
                f"{len(slot)};  next {max(next_to):.3f};  still {max(still):.3f};  again p50 "
                f"{statistics.median(again) * 1000:.1f} ms, longest {max(again) * 1000:.0f};  "
                f"load {os.getloadavg()[0]:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    main(**vars(parser.parse_args()))
