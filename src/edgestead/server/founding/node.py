"""A control node's folder as commands use it: the cluster's database, vault and list of nodes.

Owns  opening them from the folder.
Not   what is done with them.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from edgestead import config
from edgestead.config import ConfigError
from edgestead.postgres import schema
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.s3.bodies import Bucket
from edgestead.server.errors import StartError
from edgestead.server.founding.found import cluster_key
from edgestead.server.nodes import identity
from edgestead.server.nodes.identity import NotANode
from edgestead.server.nodes.in_postgres import PostgresRegistry, PostgresVault
from edgestead.server.stores import bucket_of
from edgestead.store.migrations import SchemaError


class ControlNode(NamedTuple):
    """`name` is this node's own."""

    folder: Path
    name: str
    link: Link
    cluster: schema.Cluster
    vault: PostgresVault
    registry: PostgresRegistry
    bucket: Bucket | None


@contextmanager
def opened(folder: Path, config_file: Path | None = None, *, upgrades: bool = True) -> Iterator[ControlNode]:
    """The database's tables become this program's, unless `upgrades` is False: then they may be older.

    Raises StartError: also for what the database cannot do inside of the block.
    """
    try:
        settings = config.load({"cluster": str(folder)}, config_file)
        dsn = settings.cluster_database
        if dsn is None:
            raise StartError(f"{folder} is no control node: its {config.CLUSTER_FILE} names no database")
        name = identity.member_of(folder / identity.FOLDER).peer.name
        with closing(Link(dsn, name="edgestead cluster")) as link:
            cluster = schema.settle(link, upgrades=upgrades)
            vault = PostgresVault(link, cluster_key(folder))
            registry, bucket = PostgresRegistry(link), bucket_of(settings)
            yield ControlNode(folder, name, link, cluster, vault, registry, bucket)
    except ConfigError as error:
        raise StartError(f"{error}. `edgecli cluster init` makes the folder of a first node") from error
    except (Trouble, Misconfigured, SchemaError) as error:
        words = str(error).rstrip(".")
        raise StartError(
            f"the cluster's database: {words}. `cluster.database` names all of its hosts"
        ) from error
    except NotANode as error:
        raise StartError(str(error)) from error
