"""The vault and the list of nodes of a cluster: rows of its database.

Owns  their statements.
Not   what is sealed; who may be a node (`server.nodes.join`).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from edgestead.model import sealing
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.server.nodes.registry import NODES_MAX, NameTaken, Node, check_room
from edgestead.server.nodes.vault import Change

SELECT_SECRET = "SELECT sealed FROM secrets WHERE name = %s"
UPSERT_SECRET = (
    "INSERT INTO secrets (name, sealed) VALUES (%s, %b) "
    "ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed"
)
CHANGE_SECRET = "UPDATE secrets SET sealed = %b WHERE name = %s AND sealed = %b"
SELECT_NAMES = "SELECT name FROM secrets WHERE starts_with(name, %s)"
DELETE_SECRET = "DELETE FROM secrets WHERE name = %s"
SELECT_NODES = (
    "SELECT name, roles, fingerprint, region, address, release, wait, stale FROM nodes ORDER BY name LIMIT %b"
)
COUNT_NODES = "SELECT count(*) FROM nodes WHERE name <> %s"
# A row of the same name with another key stays, and none comes back.
UPSERT_NODE = (
    "INSERT INTO nodes (name, roles, fingerprint, region, address, release, wait, stale) "
    "VALUES (%s, %s, %s, %s, %s, %s, %b, %s) ON CONFLICT (name) DO UPDATE SET roles = excluded.roles, "
    "region = excluded.region, address = excluded.address, release = excluded.release, wait = excluded.wait, "
    "stale = excluded.stale WHERE nodes.fingerprint = excluded.fingerprint RETURNING name"
)
DELETE_NODE = "DELETE FROM nodes WHERE name = %s"


class _Rows:
    """One link, which callers take in turns. What the database cannot do is an OSError."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._door = threading.Lock()

    @contextmanager
    def _used(self) -> Iterator[Link]:
        with self._door:
            try:
                yield self._link
            except (Trouble, Misconfigured) as error:
                raise ConnectionError(f"the cluster's database: {error}") from error


class PostgresVault(_Rows):
    """`secret` is the content of `cluster.key`."""

    def __init__(self, link: Link, secret: bytes) -> None:
        super().__init__(link)
        self._secret = secret

    def read(self, name: str) -> bytes | None:
        with self._used() as link:
            row = link.row(SELECT_SECRET, (name,))
        return None if row is None else self._opened(name, row)

    def write(self, name: str, content: bytes) -> None:
        sealed = sealing.seal(self._secret, content, name.encode())
        with self._used() as link:
            link.run(UPSERT_SECRET, (name, sealed))

    def change(self, name: str, to: Change) -> bytes | None:
        with self._used() as link:
            while row := link.row(SELECT_SECRET, (name,)):
                before = self._opened(name, row)
                after = to(before)
                if after == before:
                    return after
                sealed = sealing.seal(self._secret, after, name.encode())
                if link.run(CHANGE_SECRET, (sealed, name, row[0])) == 1:
                    return after
        return None

    def names(self, beginning: str) -> list[str]:
        with self._used() as link:
            return [name for (name,) in link.rows(SELECT_NAMES, (beginning,))]

    def remove(self, name: str) -> None:
        with self._used() as link:
            link.run(DELETE_SECRET, (name,))

    def _opened(self, name: str, row: tuple[object, ...]) -> bytes:
        (sealed,) = row
        assert isinstance(sealed, bytes)
        return sealing.unseal(self._secret, sealed, name.encode())


class PostgresRegistry(_Rows):
    def nodes(self) -> dict[str, Node]:
        with self._used() as link:
            rows = link.rows(SELECT_NODES, (NODES_MAX,))
        return {name: _node(name, *columns) for name, *columns in rows}

    def add(self, node: Node) -> None:
        with self._used() as link:
            check_room(node, link.rows(COUNT_NODES, (node.name,))[0][0])
            columns = (",".join(node.roles), node.key, node.region, node.address, node.release, node.wait)
            if link.row(UPSERT_NODE, (node.name, *columns, node.stale)) is None:
                raise NameTaken(node.name)

    def remove(self, name: str) -> bool:
        with self._used() as link:
            return link.run(DELETE_NODE, (name,)) == 1


def _node(
    name: str, roles: str, key: str, region: str, address: str, release: str, wait: bool, stale: str
) -> Node:
    return Node(
        name=name,
        roles=tuple(roles.split(",")),
        key=key,
        region=region,
        address=address,
        release=release,
        wait=wait,
        stale="stop" if stale == "stop" else "serve",
    )
