"""The nodes of a cluster: a row for each.

Owns  `Node`, the interface of the list, and the list of an embedded server: one file.
Not   connections. The list of a cluster is a table of its database.

A node that is not in the list, or that shows another key, gets no connection: to remove it is to delete its
row.
"""

import fcntl
import os
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from edgestead.server import files
from edgestead.server.nodes.identity import NotANode, Peer
from edgestead.server.nodes.kinds import NODE_KINDS

NODES_MAX = 256  # each a connection for each of its groups to one control process
NODE_BYTES_MAX = 1 << 10  # as JSON: the longest names, and an address of 255 octets, are half of it
FILE_BYTES_MAX = (NODES_MAX + 1) * NODE_BYTES_MAX  # of the list as a file


class NameTaken(Exception):
    """There is a node of this name already, with another key."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """`key` as in `Peer`. `wait`: writes wait for this node. `stale`: what it does when it is cut off."""

    name: str
    roles: tuple[str, ...]
    key: str
    region: str = ""
    address: str = ""
    release: str = ""
    wait: bool = True
    stale: Literal["serve", "stop"] = "serve"


class Registry(Protocol):
    """Blocks. Raises OSError; ValueError: what is kept is no list."""

    def nodes(self) -> dict[str, Node]: ...

    def add(self, node: Node) -> None:
        """Add a node, or change one with the same key. Durable when it returns. Raises NameTaken; NotANode:
        there is no room for it.
        """
        ...

    def remove(self, name: str) -> bool:
        """Whether there was one. It may be invited again under this name."""
        ...


def away(nodes: Mapping[str, Node], live: Container[tuple[str, str]]) -> tuple[Node, ...]:
    """The machines without control that are cut off, or catch up. `live` are those that are neither, as
    (group of the feed, name).
    """
    apart = (node for node in nodes.values() if "control" not in node.roles)
    return tuple(node for node in apart if not all((group, node.name) in live for group in NODE_KINDS))


def check_room(node: Node, others: int) -> None:
    """Raises NotANode: there are as many other nodes already, or what it says of itself is too long."""
    if others >= NODES_MAX:
        raise NotANode(f"there are {NODES_MAX} nodes already")
    if len(msgspec.json.encode(node)) > NODE_BYTES_MAX:
        raise NotANode(f"what is known of node {node.name} has more than {NODE_BYTES_MAX} octets")


def is_listed(nodes: dict[str, Node], peer: Peer) -> bool:
    """Whether a list has a peer, with its key and no roles that were taken from it."""
    node = nodes.get(peer.name)
    return node is not None and node.key == peer.key and peer.roles <= set(node.roles)


class FileRegistry:
    """A file, which a server and commands change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Threads and processes change it one after the other."""
        lock = files.open_private(self._path.with_suffix(".lock"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def nodes(self) -> dict[str, Node]:
        content = files.read_private(self._path, FILE_BYTES_MAX)
        found = msgspec.json.decode(content, type=list[Node]) if content else []
        return {node.name: node for node in found}

    def add(self, node: Node) -> None:
        with self._alone():
            nodes = self.nodes()
            if node.name in nodes and nodes[node.name].key != node.key:
                raise NameTaken(node.name)
            check_room(node, len(nodes.keys() - {node.name}))
            self._write(nodes | {node.name: node})

    def remove(self, name: str) -> bool:
        with self._alone():
            nodes = self.nodes()
            was_there = nodes.pop(name, None) is not None
            if was_there:
                self._write(nodes)
            return was_there

    def _write(self, nodes: dict[str, Node]) -> None:
        """A line for each, so that the bound of one is the file's."""
        lines = b",\n".join(msgspec.json.encode(nodes[name]) for name in sorted(nodes))
        files.replace_private(self._path, b"[\n" + lines + b"\n]\n")
