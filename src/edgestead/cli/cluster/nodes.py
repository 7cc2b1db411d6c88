"""`edgecli cluster invite|status|move-leader|drain|remove|upgrade-check`.

Owns  arguments and output.
Not   the changes (`server.founding`).
"""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgestead.cli.cluster.shared import ANY_FOLDER, CONFIG, FOLDER, NAME, checked_roles, listed, opened
from edgestead.cli.failure import confirmed
from edgestead.cli.table import echo_members, echo_table, show, show_lines
from edgestead.cli.target import JSON, YES, Command

if TYPE_CHECKING:
    from edgestead.server.founding.look import Facts, NodeFacts, OwnFacts

_STILL_HAS = (
    "Its folder still has the database's password and the cluster's keys: delete it on {name}. Where it was"
    " lost, give the database another password (docs/how-to/cluster-lose.md)."
)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_HEADS = ("node", "state", "behind", "roles", "region", "address", "release", "wait", "stale", "slots")


class Ttl(click.ParamType[int]):
    """`90s`, `30m`, `1h`, `7d`: seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", str(value))
        seconds = int(found[1]) * _UNITS[found[2]] if found else 0
        if not 60 <= seconds <= 7 * 86_400:
            self.fail("expected a time like 30m, 1h or 7d, from a minute to a week", param, ctx)
        return seconds


@click.command(cls=Command)
@NAME
@ANY_FOLDER
@CONFIG
@click.option(
    "--role",
    "roles",
    required=True,
    help="control (all control data; may lead), objects (needs control), edge (DNS and proxy), with commas.",
)
@click.option("--region", default="", help="Where it is, in your words.")
@click.option("--ttl", type=Ttl(), default="1h", show_default=True, help="For how long the token is good.")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Whether writes wait until it has them, too; for a node with control they always do.",
)
@click.option(
    "--stale",
    type=click.Choice(["serve", "stop"]),
    default="serve",
    show_default=True,
    help="What it does when it is cut off from the cluster for longer than its lease.",
)
@JSON
def invite(
    name: str,
    folder: Path,
    config_file: Path | None,
    roles: str,
    region: str,
    ttl: int,
    wait: bool,
    stale: str,
    as_json: bool,
) -> None:
    """Print one token by which a machine becomes the node NODE.

    The token is good once, and only for a while: whoever has it becomes that node. It holds the addresses of
    the control nodes and the fingerprint of the cluster's authority, by which the new machine knows them.

    `edgecli serve --join TOKEN --data-dir DIR` on the other machine makes it that node.

    \b
      edgecli cluster invite ams-2 --role control,objects,edge --cluster /var/lib/edgestead-node
    """
    from edgestead.server.founding import act
    from edgestead.server.nodes.invites import Invitation

    wanted = Invitation(
        name=name,
        roles=checked_roles(name, roles),
        secret=b"",
        until_s=int(time.time()) + ttl,
        region=region,
        wait=wait,
        stale="stop" if stale == "stop" else "serve",
    )
    with listed(folder, config_file) as node:
        token = act.invite(node, wanted)
    show_lines({"token": token, "until": wanted.until_s}, token, as_json=as_json)
    click.echo("On that machine: edgecli serve --join TOKEN --data-dir DIR", err=True)


@click.command(cls=Command)
@ANY_FOLDER
@CONFIG
@JSON
def status(folder: Path, config_file: Path | None, as_json: bool) -> None:
    """Show the nodes, who leads, where acknowledged writes are, and what is not well.

    Of a server with cluster.listen and no database it shows the machines that follow it.
    slots is a node's share of the stateful objects, of 4,096 in all, and of 256 for each region that classes
    name. It looks at a cluster's database for a second.
    Ends with 1 when something is not well.

    \b
      edgecli cluster status --cluster /var/lib/edgestead-node
    """
    from edgestead.server.founding.look import look, look_at_own
    from edgestead.server.founding.node import ControlNode

    with listed(folder, config_file) as node:
        facts = look(node) if isinstance(node, ControlNode) else look_at_own(folder, node)
    show(facts.members, lambda: _echo_status(facts), as_json=as_json)
    if facts.troubles:
        raise SystemExit(1)


def _echo_status(facts: "Facts | OwnFacts") -> None:
    from edgestead.server.founding.look import Facts

    echo_table(_HEADS, [_row(one) for one in facts.nodes])
    click.echo()
    if isinstance(facts, Facts):
        members = [
            ("cluster", f"{facts.cluster}, generation {facts.generation}, schema {facts.schema}"),
            ("copies", facts.copies),
            ("log", f"entry {facts.log_sequence}, {facts.log_octets} bytes since base {facts.base_sequence}"),
            ("database", f"{facts.database_octets >> 20} MiB"),
            *[(f"objects of {region}", nodes or "no node") for region, nodes in facts.regions.items()],
        ]
    else:
        members = [("cluster", f"{facts.cluster}, one server and the machines that follow it")]
    echo_members(members)
    for trouble in facts.troubles:
        click.echo(f"! {trouble}")


def _row(one: "NodeFacts") -> tuple[object, ...]:
    """With what it has of the slots of objects, where it runs some."""
    share = one.objects
    slots = "" if share is None else f"{share.slots}, drains" if share.drains else share.slots
    return (*one[: len(_HEADS) - 1], slots)


@click.command("move-leader", cls=Command)
@NAME
@FOLDER
@CONFIG
@JSON
def move_leader(name: str, folder: Path, config_file: Path | None, as_json: bool) -> None:
    """Let the control node NODE lead. Writes wait meanwhile; none is refused.

    \b
      edgecli cluster move-leader ams-2 --cluster /var/lib/edgestead-node
    """
    from edgestead.server.founding import act

    with opened(folder, config_file) as node:
        moved = act.move_leader(node, name)
    words = f"{name} leads." if moved else f"{name} leads already."
    show_lines({"leader": name, "moved": moved}, words, as_json=as_json)


@click.command(cls=Command)
@NAME
@FOLDER
@CONFIG
@click.option("--undo", is_flag=True, help="Let its processes have objects again. A start does that, too.")
@JSON
def drain(name: str, folder: Path, config_file: Path | None, undo: bool, as_json: bool) -> None:
    """Make NODE one that can be stopped unnoticed: others lead and have its objects afterwards.

    Then stop it. Others serve what it served as far as clients know their addresses: take it out of DNS and
    load balancers first. Objects go by slots, of which each process gives away 32 a second: a third of all
    takes 43 s. Started again, it gets them back.

    \b
      edgecli cluster drain ams-1 --cluster /var/lib/edgestead-node
    """
    from edgestead.cli.progress import Progress
    from edgestead.server.founding import act

    with opened(folder, config_file) as node:
        if undo:
            ended = act.end_drain(node, name)
            words = f"{name} may have objects again." if ended else f"{name} does not drain."
            show_lines({"node": name, "ended": ended}, words, as_json=as_json)
            return
        with Progress("Objects", "slots", 0) as progress:
            drained = act.drain(node, name, lambda gone: progress.advance(0, gone))
    leader = drained.leader
    show_lines(
        {"node": name, **drained._asdict()},
        f"{name} can be stopped; {leader or 'nobody'} leads.",
        *([f"Others have the objects of its {drained.slots} slots."] if drained.slots else []),
        *([_alone(drained.alone)] if drained.alone else []),
        as_json=as_json,
    )


def _alone(region: str) -> str:
    return f"Objects of the region {region} are away while it is stopped: no other node there runs objects."


@click.command(cls=Command)
@NAME
@ANY_FOLDER
@CONFIG
@YES
@JSON
def remove(name: str, folder: Path, config_file: Path | None, yes: bool, as_json: bool) -> None:
    """Let NODE in no more: its certificate is worth nothing from now on, and its connections end.

    For a machine that is lost, or goes. A machine that comes back is invited again.

    \b
      edgecli cluster remove ams-3 --yes --cluster /var/lib/edgestead-node
    """
    from edgestead.server.founding import act

    if not confirmed(f"{name} cannot take part any more. Remove it?", yes=yes, verb="remove", quiet=as_json):
        return
    with listed(folder, config_file) as node:
        had_control = act.remove(node, name)
    show_lines(
        {"removed": name},
        f"{name} is removed. Stop its server if it still runs.",
        *([_STILL_HAS.format(name=name)] if had_control else []),
        as_json=as_json,
    )


@click.command("upgrade-check", cls=Command)
@FOLDER
@CONFIG
@JSON
def upgrade_check(folder: Path, config_file: Path | None, as_json: bool) -> None:
    """Say what this program would meet if it took the place of the one that runs.

    Run it with the new release. Ends with 1 when something has to be solved first.

    \b
      edgecli cluster upgrade-check --cluster /var/lib/edgestead-node
    """
    from edgestead.server.founding.look import upgrade_obstacles

    with opened(folder, config_file, upgrades=False) as node:
        found = upgrade_obstacles(node)
    lines = [f"{'first' if one.blocks else 'note'}: {one.words}" for one in found]
    lines = lines or ["Nothing is in the way: upgrade the followers, move the leader, upgrade the last."]
    show_lines([one._asdict() for one in found], *lines, as_json=as_json)
    if any(one.blocks for one in found):
        raise SystemExit(1)
