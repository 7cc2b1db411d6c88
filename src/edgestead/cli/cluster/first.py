"""`edgecli cluster init`.

Owns  arguments and output.
Not   the steps (`server.founding.found`).
"""

from pathlib import Path

import click

from edgestead.cli.cluster.shared import checked_roles, plainly
from edgestead.cli.failure import Failed, warn
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

ROLES = "control,objects,edge"


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--database",
    metavar="DSN",
    envvar="EDGE_CLUSTER_DATABASE",
    required=True,
    help="An empty database of PostgreSQL 14 or newer. Name all of its hosts; the primary is found.",
)
@click.option("--name", metavar="NODE", required=True, help="What this node is called: a-z, 0-9 and -.")
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    required=True,
    help="Where other nodes reach this one; the port between nodes is 8790 unless you choose another.",
)
@click.option(
    "--listen", metavar="HOST:PORT", help="Where it listens for them. Default: 0.0.0.0, the same port."
)
@click.option("--role", "roles", default=ROLES, show_default=True, help="What the node does, with commas.")
@click.option("--region", default="", help="Where it is, in your words.")
@click.option(
    "--from",
    "source",
    metavar="OLD",
    type=click.Path(path_type=Path),
    help="A data folder to move in, whose server does not run. It is read, and then marked; its object logs"
    " become those of this release.",
)
@JSON
def init(
    folder: Path,
    database: str,
    name: str,
    advertise: str,
    listen: str | None,
    roles: str,
    region: str,
    source: Path | None,
    as_json: bool,
) -> None:
    """Make a cluster in an empty database, and in the new folder DIR its first node.

    The cluster has an authority of its own for connections between nodes; DIR/cluster/cluster.key opens what
    is secret in the database: keep a copy of it. Cut short, the command is run again and begins again.

    With --from everything that a server of one machine keeps moves in: zones, rules, tokens, history,
    key-values, and stateful objects with their alarms, bookmarks and past. Objects of a class with
    durability = "sqlite" do not: a folder that has some is refused.

    `createdb -E UTF8 -T template0 edge` makes the database.

    \b
      edgecli cluster init --database 'postgresql://db1,db2/edge' --name ams-1 --advertise 10.0.0.1:8790 DIR
      edgecli cluster init --database host=db1 --name a --advertise 10.0.0.1:8790 --from OLD DIR
    """
    from edgestead.config_values import Address, address, target
    from edgestead.server.founding.found import First, found

    try:
        reached = target(advertise)
        bound = address(listen) if listen else Address("0.0.0.0", reached.port)
    except ValueError as error:
        raise click.UsageError(f"--advertise and --listen: {error}") from None
    first = First(name, checked_roles(name, roles), bound, reached, region)
    if source is not None and source.absolute() == folder.absolute():
        raise Failed("DIR is the folder of the new node; --from names another one, which is moved in.")
    with plainly():
        made = found(
            database,
            folder.expanduser().absolute(),
            first,
            source=source,
            say=lambda words: click.echo(f"… {words}", err=True),
        )
    if not made.standby_names:
        warn(
            "the database has no synchronous standby: what is acknowledged is on one machine. Give it one"
            " (synchronous_standby_names), and see `edgecli cluster status`."
        )
    moved = made.values._asdict() if made.values is not None else None
    show_lines(
        {
            "cluster": made.cluster,
            "node": name,
            "folder": str(folder),
            "values": moved,
            "objects": made.objects,
        },
        f"The cluster {made.cluster} has its first node, {name}.",
        *([f"{source} is marked as moved, and does not start any more."] if source is not None else []),
        f"Start it with `edgecli serve --cluster {folder}`,",
        f"and add machines with `edgecli cluster invite NAME --role {ROLES} --cluster {folder}`.",
        as_json=as_json,
    )
