"""A cluster's authority and its nodes in a folder, for tests.

Owns  making them, and a control node's port on loopback.
Not   processes.
"""

import asyncio
import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from edgestead.server.nodes import identity, join, port
from edgestead.server.nodes.identity import Authority
from edgestead.server.nodes.registry import FileRegistry, Node, is_listed
from edgestead.server.nodes.vault import FileVault

CLUSTER = "c0ffee"


def pem(authority, folder, name, roles):
    """The folder of a node with a certificate of an authority."""
    folder.mkdir(parents=True, exist_ok=True)
    key = identity.new_key()
    (folder / join.KEY).write_bytes(key)
    (folder / join.AUTHORITY).write_bytes(authority.certificate_pem)
    certificate = authority.certify(identity.public_key(key), name, frozenset(roles), datetime.now(UTC))
    (folder / join.CERTIFICATE).write_bytes(certificate)
    return identity.member_of(folder)


class Cluster:
    """One control node `main`, its vault and its list."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority.new(CLUSTER, datetime.now(UTC))
        self.vault = FileVault(folder / "vault", bytes(32))
        self.registry = FileRegistry(folder / "nodes.json")
        self.main = self.node("main", "control", "edge")
        self.address = ""
        self.handed = {}

    def node(self, name, *roles):
        member = pem(self.authority, self.folder / name, name, roles)
        self.registry.add(Node(name=name, roles=roles, key=member.peer.key))
        return member

    def is_member(self, peer):
        return is_listed(self.registry.nodes(), peer)

    @asynccontextmanager
    async def listening(self, handlers):
        """The port of `main`, with these handlers and that for joining."""
        registrar = join.Registrar(
            self.authority,
            self.vault,
            self.registry,
            addresses=lambda: (self.address,),
            handed=lambda roles: self.handed if "control" in roles else {},
        )
        every = {port.JOIN_ALPN: port.streams(registrar.serve), **handlers}
        opened = port.Port(self.main, every, is_member=self.is_member)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        await opened.open(listener)
        try:
            yield opened
        finally:
            opened.close()
            await asyncio.sleep(0)
