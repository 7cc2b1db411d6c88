"""What a cluster looks like: its nodes, who leads, what is behind, and what an upgrade would meet.

Owns  the facts of `cluster status` and `cluster upgrade-check`.
Not   printing them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from edgestead import __version__
from edgestead.cluster.forms import FORMS, Forms
from edgestead.cluster.placement import region_of
from edgestead.cluster.slots import View
from edgestead.postgres import schema, slots
from edgestead.postgres.incarnations import overview
from edgestead.server.errors import StartError
from edgestead.server.founding.node import ControlNode
from edgestead.server.nodes import identity, join, standing
from edgestead.server.nodes.control_part import OwnCluster
from edgestead.server.nodes.registry import Node

LOOKS_APART_SECONDS = 0.7  # a process that lives renews its row four times a second

SELECT_HEAD = "SELECT coalesce(max(sequence), 0), coalesce(sum(length(body)), 0)::bigint FROM control_log"
SELECT_BASE = "SELECT coalesce(max(sequence), 0) FROM control_bases"
SELECT_SIZE = "SELECT pg_database_size(current_database())"
SELECT_STANDBYS = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"


class NodeFacts(NamedTuple):
    """`state` is leads, follows or silent; of a node without control as `standing.state_of` says, and ""
    where no control node answered. `behind` is how many changes such a node lacks; None is not known.
    `objects` is None where no process runs any.
    """

    name: str
    state: str
    behind: int | None
    roles: str
    region: str
    address: str
    release: str
    wait: bool
    stale: str
    objects: "Share | None" = None


class Share(NamedTuple):
    """A node's part of the stateful objects: processes that live, those that do not, the slots of all."""

    processes: int
    silent: int
    drains: bool
    slots: int


class Facts(NamedTuple):
    """`copies` says where an acknowledged write is. Octets are those of the database and of the log in it.
    `regions` are those that classes of objects name, with the nodes that may run these; `free_slots` are not
    those of a region without any.
    """

    cluster: str
    generation: int
    schema: int
    copies: str
    leader: str
    log_sequence: int
    log_octets: int
    base_sequence: int
    database_octets: int
    free_slots: int
    nodes: tuple[NodeFacts, ...]
    regions: dict[str, str]

    @property
    def members(self) -> dict[str, Any]:
        """As JSON has them, with the troubles."""
        nodes = [{**one._asdict(), "objects": one.objects and one.objects._asdict()} for one in self.nodes]
        return {**self._asdict(), "nodes": nodes, "troubles": self.troubles}

    @property
    def troubles(self) -> list[str]:
        found = []
        if not self.leader:
            found.append("no node leads: writes are refused until one does")
        if self.copies.startswith("one"):
            found.append("an acknowledged write is on one machine: give the database a synchronous standby")
        found += _troubles_of(self.nodes)
        shares = [(node.name, node.objects) for node in self.nodes if node.objects is not None]
        found += [
            f"objects of {one.slots} slots at {name} wait: a process is silent"
            for name, one in shares
            if one.silent
        ]
        if self.free_slots and shares:
            found.append(f"{self.free_slots} slots of objects have no process: calls of theirs wait")
        found += [
            f"objects of the region {region} have no node: calls of theirs are refused"
            for region, names in self.regions.items()
            if not names
        ]
        return found


class OwnFacts(NamedTuple):
    """The same of a server that is a cluster of its own, without a database."""

    cluster: str
    nodes: tuple[NodeFacts, ...]

    @property
    def troubles(self) -> list[str]:
        return _troubles_of(self.nodes)

    @property
    def members(self) -> dict[str, Any]:
        """As JSON has them, with the troubles."""
        nodes = [one._asdict() for one in self.nodes]
        return {**self._asdict(), "nodes": nodes, "troubles": self.troubles}


def _troubles_of(nodes: Iterable[NodeFacts]) -> list[str]:
    words = {
        "silent": "is silent",
        "away": "is cut off, or not started",
        "joins": "catches up, or does not hear everything",
    }
    return [f"{node.name} {words[node.state]}" for node in nodes if node.state in words]


def look_at_own(folder: Path, own: OwnCluster) -> OwnFacts:
    """Of the server of that folder. Raises StartError, OSError."""
    try:
        member = identity.member_of(folder / identity.FOLDER)
    except identity.NotANode as error:
        raise StartError(str(error)) from None
    listed = own.registry.nodes()
    addresses = [join.host_of(one.address) for one in listed.values() if one.name == own.name and one.address]
    edges = asyncio.run(standing.ask(member, addresses))
    nodes = tuple(
        _facts_of(one, "silent" if edges is None else "leads")
        if "control" in one.roles
        else _facts_of_edge(one, edges)
        for one in listed.values()
    )
    return OwnFacts(member.peer.cluster, nodes)


def leader_of(node: ControlNode) -> str:
    """The node whose process holds the office; "" where none does. Raises as `Link.rows`."""
    found = overview(node.link)
    row = found.rows.get(found.leader) if found.leader is not None else None
    return "" if row is None else row.node


def look(node: ControlNode, sleep: Callable[[float], None] = time.sleep) -> Facts:
    """Takes LOOKS_APART_SECONDS. Raises OSError, as `Link.rows`."""
    link = node.link
    before, processes_before = overview(link), slots.look(link)
    sleep(LOOKS_APART_SECONDS)
    after = overview(link)
    states: dict[str, str] = {}
    for number, row in after.rows.items():
        lives = number not in before.rows or before.rows[number].renewed != row.renewed
        if not lives:
            states.setdefault(row.node, "silent")
        elif number == after.leader:
            states[row.node] = "leads"
        elif states.get(row.node) != "leads":
            states[row.node] = "follows"
    listed = node.registry.nodes()
    edges = _edges(node, listed.values())
    nodes = tuple(
        _facts_of(one, states.get(one.name, "silent"))
        if "control" in one.roles
        else _facts_of_edge(one, edges)
        for one in listed.values()
    )
    processes = slots.look(link)
    shares, free = shares_of(processes_before, processes)
    nodes = tuple(one._replace(objects=shares.get(one.name)) for one in nodes)
    ((sequence, octets),) = link.rows(SELECT_HEAD)
    ((base,),) = link.rows(SELECT_BASE)
    ((size,),) = link.rows(SELECT_SIZE)
    return Facts(
        cluster=node.cluster.id,
        generation=node.cluster.generation,
        schema=node.cluster.schema,
        copies=_copies(node),
        leader=next((one.name for one in nodes if one.state == "leads"), ""),
        log_sequence=sequence,
        log_octets=octets,
        base_sequence=base,
        database_octets=size,
        free_slots=free,
        nodes=nodes,
        regions={name: ", ".join(there) for name, there in regions_of(processes).items()},
    )


def shares_of(before: View, after: View) -> tuple[dict[str, Share], int]:
    """Who has how many slots, by node, and how many nobody has: of two looks at the whole map."""
    held = Counter(slot.holder for slot in after.slots.values())
    found: dict[str, Share] = {}
    for number, worker in after.workers.items():
        lives = number not in before.workers or before.workers[number].renewed != worker.renewed
        share = found.get(worker.node, Share(0, 0, True, 0))
        found[worker.node] = Share(
            share.processes + lives,
            share.silent + (not lives),
            share.drains and worker.is_draining,
            share.slots + held[number],
        )
    waits = {number for number, name in after.regions.items() if regions_of(after)[name]} | {0}
    free = sum(
        held.holder not in after.workers and region_of(slot) in waits for slot, held in after.slots.items()
    )
    return found, free


def regions_of(view: View) -> dict[str, list[str]]:
    """The regions that classes of objects name, with the nodes that run these now."""
    return {
        name: sorted({worker.node for worker in view.workers.values() if worker.region == name})
        for name in sorted(view.regions.values())
    }


def _edges(node: ControlNode, listed: Iterable[Node]) -> standing.Standings | None:
    """How nodes without control stand. None: no control node answered, or there is nothing to ask."""
    nodes = list(listed)
    if all("control" in one.roles for one in nodes):
        return None
    addresses = [join.host_of(one.address) for one in nodes if "control" in one.roles and one.address]
    return asyncio.run(standing.ask(identity.member_of(node.folder / identity.FOLDER), addresses))


def _facts_of(one: Node, state: str, behind: int | None = None, release: str = "") -> NodeFacts:
    roles = ",".join(one.roles)
    return NodeFacts(
        one.name, state, behind, roles, one.region, one.address, release or one.release, one.wait, one.stale
    )


def _facts_of_edge(one: Node, edges: standing.Standings | None) -> NodeFacts:
    if edges is None:
        return _facts_of(one, "")
    groups = edges.get(one.name, {})
    behind = max((group.behind for group in groups.values()), default=None)
    release = next((group.release for group in groups.values() if group.release), "")
    return _facts_of(one, standing.state_of(groups), behind, release)


def _copies(node: ControlNode) -> str:
    if node.link.copies.is_one:
        return "one copy: the primary alone"
    ((standbys,),) = node.link.rows(SELECT_STANDBYS)
    seen = f"{standbys} answering" if standbys else "none answering, or not shown to this user"
    return f"primary and synchronous standbys ({node.link.copies.standby_names}; {seen})"


class Obstacle(NamedTuple):
    """What an upgrade would meet. `blocks` when it has to be solved first."""

    words: str
    blocks: bool


def upgrade_obstacles(node: ControlNode, release: str = __version__) -> list[Obstacle]:
    """Before this program takes the place of others. Raises OSError, as `Link.rows`."""
    found = []
    if node.cluster.schema > schema.SCHEMA:
        words = f"the database has schema {node.cluster.schema}, and this program knows {schema.SCHEMA}"
        blocks = node.cluster.oldest > schema.SCHEMA
        found.append(Obstacle(f"{words}: it is older than the cluster", blocks=blocks))
    for name, one in node.registry.nodes().items():
        if one.release != release:
            words = f"{name} had {one.release or 'no release'} when it last said so, and this is {release}"
            found.append(Obstacle(words, blocks=False))
    if node.cluster.schema < schema.SCHEMA:
        words = (
            f"the first node with this release brings the database's tables from {node.cluster.schema} to"
            f" {schema.SCHEMA}, and the others go on; for the rest ask `edgecli cluster status` of the"
            " release that runs"
        )
        found.append(Obstacle(words, blocks=False))
        return found
    found += [Obstacle(words, blocks=True) for words in _forms(slots.look(node.link), FORMS)]
    facts = look(node)
    found += [Obstacle(words, blocks=True) for words in facts.troubles]
    return found


def _forms(view: View, own: Forms) -> list[str]:
    """Whose objects processes could not be called by those of this program, or the other way round."""
    found = []
    for node, form in sorted({(worker.node, worker.form) for worker in view.workers.values()}):
        words = (
            f"objects of {node} know calls up to form {form}, and this release {own.oldest} to {own.newest}"
        )
        if own.for_other(form) is None:
            found.append(f"{words}: upgrade that node to a release between first")
        elif form > own.newest:
            found.append(f"{words}: it is older than the cluster")
    return found
