"""How fast do stateful objects of a cluster take durable writes, against the same program on one machine?

    python benchmarks/cluster_objects.py [--seconds 4] [--rounds 3]

Each request calls a method that puts a new value of 100 characters, and is durable when it is answered:

one machine     `edgecli serve`, its log synced to the disk
owner           three nodes over PostgreSQL with a synchronous standby, both synced: its own objects
another node    the same objects by way of a node that passes the calls on
all nodes       as many objects of all three nodes, asked at one of them

One object at 1 and at 64 in flight, then 1,000 objects at 256. Each server has one objects process.
Everything runs on this machine, load and databases too: what counts are the ratios. Rounds alternate; medians
are printed, with the processor time of the objects process that is asked for each request.

Goals: owner >= 0.3 x one machine for one object, >= 0.5 x for 1,000.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path

from cluster_post import Rate, Side, measure, own_pair, report

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgestead.cluster.placement import SLOTS, slot_of, wanted
from edgestead.objects import ids
from edgestead.postgres.slots import look
from edgestead.testing.server import EdgeServer, wait_until
from tests.support.cluster_nodes import ClusterNodes

CLASS, CLASS_NAME = Path(__file__).with_name("objects_class.py"), "Bench"
HURRY = "from edgestead.cluster import slots\nslots.GIVE_MS, slots.GIVING_MAX = 1, 64\n"  # before the load
SECONDS_MAX = 180
OBJECTS = 1_000
TOUCHING, TOUCH_SECONDS = 32, 10.0  # connections and seconds of a load before the rounds: all are in memory
LOADS = ((1, 1, 0.3), (1, 64, 0.3), (OBJECTS, 256, 0.5))  # objects, in flight, goal of the owner

PUT = """
local names = {%s}
local n = 0
request = function()
  n = n + 1
  local path = "/objects/" .. "%s/" .. names[n %%%% #names + 1] .. "/put"
  return wrk.format("POST", path, {["Authorization"]="Bearer %%(token)s"}, "")
end
"""


def side(name: str, server: EdgeServer, names: Sequence[str]) -> Side:
    script = PUT % (",".join(map(json.dumps, names)), CLASS_NAME)
    url = f"http://{server.ready['objects']}"
    return Side(name, url, server.ready["api_token"], script, server.children()["objects-0"])


def owned_names(nodes: ClusterNodes, node: str) -> list[str]:
    """Of objects that are at a node; the slots have come to rest."""
    view = look(nodes.link)
    (number,) = (worker.number for worker in view.workers.values() if worker.node == node)
    names = (f"o{one}" for one in count())
    held = (
        name for name in names if view.slots[slot_of(ids.from_name(CLASS_NAME, name).id)].holder == number
    )
    return list(islice(held, OBJECTS))


def sides_of(alone: EdgeServer, nodes: ClusterNodes, names: Sequence[str], objects: int) -> list[Side]:
    (owner, other, *_), everywhere = nodes.servers, [f"o{number}" for number in range(objects)]
    made = [
        side("one machine", alone, names[:objects]),
        side("owner", nodes.servers[owner], names[:objects]),
        side("another node", nodes.servers[other], names[:objects]),
    ]
    return [*made, side("all nodes", nodes.servers[owner], everywhere)] if objects > 1 else made


def settled(nodes: ClusterNodes) -> bool:
    """Whether each slot is where it is wanted, with every node there."""
    view = look(nodes.link)
    held = [view.slots[slot].holder for slot in range(SLOTS)]
    return len(view.workers) == len(nodes.servers) and held == wanted(view.workers.values())


def main(seconds: float, rounds: int) -> None:
    with own_pair() as (folder, pair, started):
        classes = folder / "classes.py"
        classes.write_text(HURRY + CLASS.read_text())
        flags = ("--objects", str(classes), "--objects-workers", "1")
        alone = EdgeServer(folder / "alone", *flags).start()
        started.callback(alone.close)
        nodes = ClusterNodes(folder / "nodes", pair.database(), ("a", "b", "c"), *flags)
        started.callback(nodes.close)
        nodes.start()
        wait_until(lambda: settled(nodes), SECONDS_MAX)
        names = owned_names(nodes, next(iter(nodes.servers)))
        for objects, connections, goal in LOADS:
            sides = sides_of(alone, nodes, names, objects)
            for one in sides:
                measure(one, folder, "", TOUCH_SECONDS, min(TOUCHING, connections))
            rates: dict[str, list[Rate]] = {one.name: [] for one in sides}
            for _ in range(rounds):
                for one in sides:
                    rates[one.name].append(measure(one, folder, "", seconds, connections))
            title = f"puts on {objects:,} objects at {connections} in flight; goal for the owner {goal} x"
            report(title, rates, "objects")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    main(**vars(parser.parse_args()))
