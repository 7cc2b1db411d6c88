"""What a control process does for machines without control: lets them join, and has writes wait for them.

Owns  the list of nodes in memory, the handlers of the port, which nodes are away, and making its own
      node's next certificate.
Not   the port of a cluster of control nodes (`server.cluster`); rules of leases (`feed.promise`).
"""

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from edgestead.feed.promise import Node as Waited
from edgestead.feed.publisher import Publisher
from edgestead.server import files
from edgestead.server.errors import StartError
from edgestead.server.messages import ControlStart
from edgestead.server.nodes import identity, invites, join, port, standing
from edgestead.server.nodes.identity import Authority, Member, NotANode, Peer
from edgestead.server.nodes.registry import FileRegistry, Node, Registry, away, is_listed
from edgestead.server.nodes.vault import FileVault, Vault
from edgestead.server.rounds import Rounds

if TYPE_CHECKING:
    from edgestead.postgres.connection import Link

SECRET: Final = "cluster.key"  # opens the vault; on nodes with control alone
SECRET_OCTETS: Final = 32
NODES: Final = "nodes.json"  # the list of a server that is a cluster of its own
OWN_NAME: Final = "main"  # its name there
AUTHORITY_KEY, AUTHORITY_CERTIFICATE = "authority", "authority-cert"  # in the vault
LEASE_MS: Final = 5_000.0  # of a node without control
AGAIN_SECONDS: Final = 0.5  # between two attempts to reach the cluster's database at the start
LIST_SECONDS: Final = 1.0  # how late a removed node is a stranger
FORGET_SECONDS: Final = 3_600.0  # between two looks for invitations that are over

_log = logging.getLogger("edgestead.server")


class Nodes:
    """The nodes that control knows. Made where it may block; `open` and the rest on the loop."""

    def __init__(self, start: ControlStart) -> None:
        """Raises StartError, OSError: what a node has to have is not there."""
        self._start = start
        self._folder = Path(start.data_dir, identity.FOLDER)
        self._links: list[Link] = []
        self._vault, self._registry = self._places()
        self.member = _member(self._folder)
        self._authority = _authority(self.member, self._vault)
        self._nodes: dict[str, Node] = {}
        self._look()
        self._note_address()
        self._port: port.Port | None = None
        self._changed: Callable[[], object] = lambda: None  # after each look at the list
        # Without looks a node that was removed would be let in for good.
        self._looks = Rounds("a look at the list of nodes", LIST_SECONDS, self._look_again)
        self._forgets = Rounds("forgetting invitations", FORGET_SECONDS, self._forget, away=(OSError,))

    def _places(self) -> tuple[Vault, Registry]:
        if self._start.cluster_database is None:
            _found(self._folder)
            vault, registry = file_places(self._folder)
            return vault, registry
        from edgestead.postgres.connection import Link
        from edgestead.server.nodes.in_postgres import PostgresRegistry, PostgresVault

        # One each: a link is for one thread at a time, and the two are used on several.
        made = [Link(self._start.cluster_database, name=f"edgestead {part}") for part in ("vault", "nodes")]
        self._links += made
        return PostgresVault(made[0], _secret(self._folder)), PostgresRegistry(made[1])

    def _note_address(self) -> None:
        """Where this server is reached now, for invitations."""
        own = self._nodes.get(self.member.peer.name)
        address = self._start.cluster_advertise or ""
        if self._start.cluster_database is None and own is not None and own.address != address:
            self._registry.add(msgspec.structs.replace(own, address=address))
            self._look()

    @property
    def waited(self) -> list[Waited]:
        """The nodes that may have a lease from before this process began."""
        return [_terms(node) for node in self._apart() if node.wait]

    def away(self, live: Mapping[str, Mapping[str, int]]) -> tuple[Node, ...]:
        """As `registry.away`; `live` by group."""
        return away(self._nodes, {(group, name) for group, names in live.items() for name in names})

    def _apart(self) -> list[Node]:
        return [node for node in self._nodes.values() if "control" not in node.roles]

    @property
    def vault(self) -> Vault:
        return self._vault

    def is_member(self, peer: Peer) -> bool:
        return is_listed(self._nodes, peer)

    def handlers(self, publisher: Publisher) -> dict[str, port.Accept]:
        """For the port, by ALPN."""
        registrar = join.Registrar(
            self._authority,
            self._vault,
            self._registry,
            addresses=self.addresses,
            handed=self._handed,
            joined=lambda node: self._nodes.update({node.name: node}),
        )

        def follow(peer: Peer) -> asyncio.Protocol:
            node = self._nodes.get(peer.name)
            if node is None:
                raise NotANode(f"node {peer.name} is not in this process's list")
            if "control" in node.roles:
                raise NotANode(f"node {peer.name} has control: it follows the log")
            return publisher.admit_node(_terms(node))

        self._looks.open()
        self._forgets.open()
        return {
            port.JOIN_ALPN: port.streams(registrar.serve),
            port.FEED_ALPN: follow,
            standing.STANDING_ALPN: standing.answering(publisher.standings),
        }

    async def open(self, publisher: Publisher) -> None:
        """Of a server without a cluster's database: the port is its alone."""
        self._port = port.Port(self.member, self.handlers(publisher), is_member=self.is_member)
        await self._port.open(socket.socket(fileno=self._start.cluster_fd))
        self._changed = self._port.drop_strangers

    async def renew(self, now: datetime) -> None:
        """This node's next certificate, for `renewing`. Raises OSError, NotANode."""
        await asyncio.to_thread(self._renew, now)

    def _renew(self, now: datetime) -> None:
        self._look()
        name = self.member.peer.name
        if not self.is_member(self.member.peer):
            raise NotANode(f"node {name} was removed from the cluster: invite it again, with a new folder")
        public = identity.public_key(self.member.key_file.read_bytes())
        roles = frozenset(self._nodes[name].roles)
        made = self._authority.certify(public, name, roles, now)
        files.replace_private(self.member.certificate_file, made)

    def renewed(self) -> None:
        """The certificate's file is a new one. In a cluster the port is not here."""
        if self._port is not None:
            self._port.renewed()

    def close(self) -> None:
        self._looks.close()
        self._forgets.close()
        if self._port is not None:
            self._port.close()
        for link in self._links:
            link.close()

    def addresses(self) -> tuple[str, ...]:
        """Where nodes reach control."""
        own = self._start.cluster_advertise
        others = [node.address for node in self._nodes.values() if "control" in node.roles and node.address]
        return tuple(dict.fromkeys([*([own] if own else []), *others]))

    async def _look_again(self) -> None:
        with suppress(OSError):  # the list of before holds
            await asyncio.to_thread(self._look)
        self._changed()

    async def _forget(self) -> None:
        await asyncio.to_thread(invites.forget, self._vault, int(time.time()))

    def _look(self) -> None:
        self._nodes = self._registry.nodes()

    def _handed(self, roles: frozenset[str]) -> dict[str, bytes]:
        if "control" not in roles or self._start.cluster_database is None:
            return {}
        folder = Path(self._start.data_dir)
        found = {name: files.read_private(folder / name) for name in join.HANDED_FILES}
        dsn = self._start.cluster_database
        found[join.SETTINGS] = f"[cluster]\ndatabase = {toml_text(dsn)}\n".encode()
        return {name: content for name, content in found.items() if content is not None}


def nodes_of(start: ControlStart) -> Nodes | None:
    """Blocks, in a cluster until its database answers. None where no other machine reaches this one, and in a
    cluster whose authority this node cannot use. Raises StartError, OSError.
    """
    if start.cluster_fd < 0:
        return None
    if start.cluster_database is None:
        return Nodes(start)
    while True:
        try:
            return Nodes(start)
        except StartError as error:
            _log.warning("no machine can join by this node: %s", error)
            return None
        except OSError as error:
            _log.warning("waiting for the list of nodes: %s", error)
            time.sleep(AGAIN_SECONDS)


def toml_text(value: str) -> str:
    import tomlkit

    return tomlkit.string(value).as_string()


def file_places(folder: Path) -> tuple[FileVault, FileRegistry]:
    """The vault and the list of a server that is a cluster of its own. Raises StartError, OSError."""
    return FileVault(folder / "vault", _secret(folder)), FileRegistry(folder / NODES)


class OwnCluster(NamedTuple):
    """What commands need of a server that is a cluster of its own."""

    name: str
    vault: FileVault
    registry: FileRegistry


def own_cluster(folder: Path) -> OwnCluster | None:
    """None where the folder is none of such a server. Raises StartError, OSError."""
    if not (folder / NODES).exists():
        return None
    return OwnCluster(OWN_NAME, *file_places(folder))


def _found(folder: Path) -> None:
    """The first start with `cluster.listen`: this server becomes the one control node of its own cluster.

    The first one after a restore: it is the same cluster, with a new identity of this server.
    """
    if (folder / join.CERTIFICATE).exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (folder / SECRET).exists():
        if (folder / NODES).exists():
            raise StartError(
                f"{folder / SECRET} is missing: put it back, or move {folder} away for a new cluster,"
                " which every machine has to join again"
            )
        files.replace_private(folder / SECRET, secrets.token_hex(SECRET_OCTETS).encode() + b"\n")
    vault, registry = file_places(folder)
    now = datetime.now(UTC)
    made = _old_authority(vault)
    if made is None:
        made = Authority.new(secrets.token_hex(8), now)
        vault.write(AUTHORITY_KEY, made.key_pem)
        vault.write(AUTHORITY_CERTIFICATE, made.certificate_pem)
    registry.remove(OWN_NAME)
    key = identity.new_key()
    public, roles = identity.public_key(key), frozenset({"control", "edge"})
    files.replace_private(folder / join.KEY, key)
    files.replace_private(folder / join.AUTHORITY, made.certificate_pem)
    registry.add(Node(name=OWN_NAME, roles=tuple(sorted(roles)), key=identity.key_of(public)))
    files.replace_private(folder / join.CERTIFICATE, made.certify(public, OWN_NAME, roles, now))


def _old_authority(vault: Vault) -> Authority | None:
    """That of a restored folder."""
    try:
        key, certificate = vault.read(AUTHORITY_KEY), vault.read(AUTHORITY_CERTIFICATE)
    except ValueError as error:
        raise StartError(f"{SECRET} is not the one that sealed the cluster's vault: {error}") from None
    if key is None or certificate is None:
        return None
    return Authority.kept(key, certificate)


def _member(folder: Path) -> Member:
    try:
        return identity.member_of(folder)
    except (OSError, NotANode) as error:
        raise StartError(f"{folder} has no identity of a node: {error}") from None


def _authority(member: Member, vault: Vault) -> Authority:
    key, certificate = vault.read(AUTHORITY_KEY), vault.read(AUTHORITY_CERTIFICATE)
    if key is None or certificate is None:
        raise StartError("the cluster's vault has no authority")
    return Authority(member.peer.cluster, key, certificate)


def _secret(folder: Path) -> bytes:
    try:
        content = files.read_private(folder / SECRET)
        return bytes.fromhex((content or b"").decode().strip())
    except (OSError, ValueError) as error:
        raise StartError(f"{folder / SECRET} cannot be used: {error}") from None


def _terms(node: Node) -> Waited:
    return Waited(node.name, LEASE_MS, node.wait)
