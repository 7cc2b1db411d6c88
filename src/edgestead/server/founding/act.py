"""What operators change of a running cluster: who is invited, who leads, who goes.

Owns  the changes, each decided by one statement.
Not   what nodes then do by themselves.
"""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from edgestead.cluster.placement import region_of
from edgestead.cluster.slots import View
from edgestead.postgres import slots
from edgestead.postgres.incarnations import Incarnation, overview, want
from edgestead.server.errors import StartError
from edgestead.server.founding.found import CERTIFICATE
from edgestead.server.founding.node import ControlNode
from edgestead.server.nodes import identity, invites
from edgestead.server.nodes.identity import NotANode
from edgestead.server.nodes.invites import Invitation
from edgestead.server.nodes.registry import Registry
from edgestead.server.nodes.vault import Vault

MOVE_SECONDS_MAX = 20.0  # of the wait for another leader
LOOK_SECONDS = 0.2
STILL_SECONDS_MAX = 30.0  # that a drain may make no progress: above what an object may block


class Listed(Protocol):
    """What has a list of nodes and a vault: a node with control, or a server that is its own cluster."""

    @property
    def name(self) -> str: ...
    @property
    def vault(self) -> Vault: ...
    @property
    def registry(self) -> Registry: ...


def invite(node: Listed, wanted: Invitation) -> str:
    """The token. Of `wanted` the secret is not used. Raises StartError, OSError."""
    if wanted.name in node.registry.nodes():
        raise StartError(
            f"there is a node {wanted.name} already; after `edgecli cluster remove` it can be invited again"
        )
    if "objects" in wanted.roles and "control" not in wanted.roles:
        raise StartError("the role objects needs control on the same machine: --role control,objects")
    if "control" in wanted.roles and not wanted.wait:
        raise StartError(
            "writes wait for every node with control, so that none lets ended tokens in: leave --no-wait out,"
            " or invite it without control"
        )
    certificate = node.vault.read(CERTIFICATE)
    if certificate is None:
        raise StartError("the cluster's authority is missing in its database: restore the table secrets")
    addresses = tuple(
        one.address for one in node.registry.nodes().values() if "control" in one.roles and one.address
    )
    if not addresses:
        raise StartError("no control node has an address for others: set cluster.advertise, and start it")
    try:
        token = invites.make(
            node.vault,
            addresses,
            identity.fingerprint(certificate),
            name=wanted.name,
            roles=frozenset(wanted.roles),
            until_s=wanted.until_s,
            region=wanted.region,
            wait=wanted.wait,
            stale=wanted.stale,
        )
    except NotANode as error:
        raise StartError(str(error)) from None
    return invites.text_of(token)


def remove(node: Listed, name: str) -> bool:
    """Its connections end and no new ones are let in; its objects go to others when its leases have ended.
    Whether it had control, and so has the database's password in its folder. Raises StartError, OSError.
    """
    if name == node.name:
        raise StartError(f"{name} is this node: remove it from another one")
    listed = node.registry.nodes().get(name)
    if not node.registry.remove(name):
        raise StartError(f"there is no node {name}; `edgecli cluster status` lists them")
    return listed is not None and "control" in listed.roles


def move_leader(
    node: ControlNode,
    name: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether `name` leads afterwards; False when it led before. Raises StartError, as `Link.rows`."""
    found = overview(node.link)
    own = [n for n, row in found.rows.items() if row.node == name and row.kind == "control"]
    number = max(own, default=None)
    if number is None:
        raise StartError(f"no control process of {name} takes part; `edgecli cluster status` shows who does")
    if found.leader == number:
        return False

    def took_over(row: Incarnation) -> bool:
        return row.node == name and row.number >= number  # it may have begun anew meanwhile

    leader = _moved(node, name, took_over, clock, sleep)
    if leader is None or not took_over(leader):
        now = "nobody" if leader is None else leader.node
        raise StartError(f"{name} did not take over within {MOVE_SECONDS_MAX:g} s; {now} leads")
    return True


def _moved(
    node: ControlNode,
    name: str,
    is_right: Callable[[Incarnation], bool],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Incarnation | None:
    """Who leads when that is right, or when it took too long. `name` is who should."""
    want(node.link, name)
    ends_s = clock() + MOVE_SECONDS_MAX
    while True:
        found = overview(node.link)
        leader = None if found.leader is None else found.rows.get(found.leader)
        if (leader is not None and is_right(leader)) or clock() >= ends_s:
            return leader
        sleep(LOOK_SECONDS)


class Drained(NamedTuple):
    """`leader` is who leads now, "" for nobody; `slots` of objects have other processes now. Objects of the
    region `alone` stay, because no other node there could run them; "" where that is none.
    """

    leader: str
    slots: int
    alone: str = ""


def drain(
    node: ControlNode,
    name: str,
    say: Callable[[int], None] = lambda gone: None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Drained:
    """Make a node one that can be stopped unnoticed. `say` is told how many more slots of objects have gone.

    Raises StartError, OSError.
    """
    _check_listed(node, name)
    view = slots.look(node.link)
    return Drained(
        _drain_office(node, name, sleep), _drain_objects(node, name, say, sleep), _alone(view, name) or ""
    )


def end_drain(node: ControlNode, name: str) -> bool:
    """Let a node's processes have slots again; False when they may. Raises StartError, OSError."""
    _check_listed(node, name)
    return slots.drain(node.link, name, ends=True) > 0


def _check_listed(node: ControlNode, name: str) -> None:
    if name not in node.registry.nodes():
        raise StartError(f"there is no node {name}; `edgecli cluster status` lists them")


def _drain_objects(
    node: ControlNode, name: str, say: Callable[[int], None], sleep: Callable[[float], None]
) -> int:
    """How many slots it gave away."""
    had = left = _slots_of(node, name)
    still = 0
    while slots.drain(node.link, name) or left:  # a process that begins meanwhile does not drain yet
        sleep(LOOK_SECONDS)
        before, left = left, _slots_of(node, name)
        say(before - left)
        still = still + 1 if left >= before else 0
        if still * LOOK_SECONDS > STILL_SECONDS_MAX:
            raise StartError(
                f"{name} has {left} slots of objects and gives none away: their objects are busy, or no other"
                " node that lives runs objects. It drains on; `edgecli cluster drain --undo` ends that"
            )
    return had


def _slots_of(node: ControlNode, name: str) -> int:
    """How many it has that others could have. Raises StartError when it has all that there are, and nobody
    else could have them.
    """
    view = slots.look(node.link)
    own = {number for number, worker in view.workers.items() if worker.node == name}
    is_alone = _alone(view, name) is not None
    count = sum(
        held.holder in own and not (is_alone and region_of(slot)) for slot, held in view.slots.items()
    )
    if count and len(own) == len(view.workers):
        raise StartError(f"{name} runs objects, and no other node does: start one with --objects first")
    return count


def _alone(view: View, name: str) -> str | None:
    """The node's region, when classes belong to it and no other node there runs objects."""
    there = {worker.region for worker in view.workers.values() if worker.node == name}
    others = {worker.region for worker in view.workers.values() if worker.node != name}
    return next(iter((there & set(view.regions.values())) - others), None)


def _drain_office(node: ControlNode, name: str, sleep: Callable[[float], None]) -> str:
    """Who leads now: the process that was asked to, or another one that was quicker."""
    found = overview(node.link)
    leader = found.rows.get(found.leader) if found.leader is not None else None
    if leader is None or leader.node != name:
        return "" if leader is None else leader.node
    others = {row.node for row in found.rows.values() if row.kind == "control" and row.node != name}
    if not others:
        raise StartError(f"{name} leads, and no other control node could: start one first")
    leader = _moved(node, min(others), lambda row: row.node != name, time.monotonic, sleep)
    if leader is not None and leader.node == name:
        raise StartError(f"{name} still leads after {MOVE_SECONDS_MAX:g} s: nobody else took over")
    return "" if leader is None else leader.node
