"""What the commands of a cluster share: the folder of a node, and how failures read.

Owns  the option --cluster.
Not   what is done there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.failure import Failed

if TYPE_CHECKING:
    from edgestead.server.founding.node import ControlNode
    from edgestead.server.nodes.control_part import OwnCluster


def _folder(help_: str) -> "Callable[[Any], Any]":
    return click.option(
        "folder",
        "--cluster",
        metavar="DIR",
        envvar="EDGE_CLUSTER",
        required=True,
        type=click.Path(path_type=Path),
        help=f"{help_}; EDGE_CLUSTER says it for all commands.",
    )


FOLDER = _folder("Folder of a control node")
ANY_FOLDER = _folder("Folder of a control node or a server with cluster.listen")
CONFIG = click.option(
    "config_file",
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The node's TOML file, where it names another database.",
)
NAME = click.argument("name", metavar="NODE")


def checked_roles(name: str, text: str) -> tuple[str, ...]:
    """The roles of a node that is to be. Raises UsageError: its name is none, or a role is."""
    from edgestead.server.nodes import identity

    roles = tuple(filter(None, text.split(",")))
    try:
        identity.check_name(name)
        identity.check_roles(frozenset(roles))
    except identity.NotANode as error:
        raise click.UsageError(f"{error}.") from None
    return roles


@contextmanager
def plainly() -> Iterator[None]:
    """What the server's part refuses, in one line."""
    import apsw

    from edgestead.model.refusals import EdgeError
    from edgestead.server.backup import BackupError
    from edgestead.server.errors import StartError

    try:
        yield
    except (BackupError, StartError, EdgeError) as error:
        raise Failed(f"{str(error).removesuffix('.')}.") from None
    except apsw.Error as error:
        raise Failed(f"A database cannot be read: {error}") from None


@contextmanager
def opened(folder: Path, config_file: Path | None, *, upgrades: bool = True) -> "Iterator[ControlNode]":
    from edgestead.server.founding import node
    from edgestead.server.nodes import control_part, identity

    if (folder / identity.FOLDER / control_part.NODES).exists():
        raise Failed(
            f"{folder} is of one server without a cluster's database, which leads by itself.",
            "To move it into a cluster: edgecli cluster init --from",
        )
    with plainly(), node.opened(folder, config_file, upgrades=upgrades) as found:
        yield found


@contextmanager
def listed(folder: Path, config_file: Path | None) -> "Iterator[ControlNode | OwnCluster]":
    """The same, and also a server without a database that lets other machines follow it."""
    from edgestead.server.nodes import control_part

    with plainly():
        own = control_part.own_cluster(folder / "cluster")
        if own is not None:
            yield own
            return
    with opened(folder, config_file) as node:
        yield node
