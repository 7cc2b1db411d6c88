"""Control nodes of a cluster on this machine, as servers of their own over one database.

Owns  making their folders (certificates, keys, settings) and the first base; starting and ending servers.
Not   PostgreSQL (`postgres`); `edgecli cluster`.
"""

import secrets
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from edgestead.postgres.connection import Link
from edgestead.postgres.controllog import begin
from edgestead.postgres.incarnations import Overview, overview
from edgestead.server import credentials, files
from edgestead.server.credentials import Credentials
from edgestead.server.founding.found import AUTHORITY, CERTIFICATE, KEY_FILE
from edgestead.server.nodes import identity, invites, join
from edgestead.server.nodes.identity import Authority
from edgestead.server.nodes.in_postgres import PostgresRegistry, PostgresVault
from edgestead.server.nodes.registry import Node
from edgestead.server.places import private_place
from edgestead.sqlite.control import SqliteControlStore
from edgestead.sqlite.replica import copy_parts
from edgestead.tables.schema import MIGRATIONS
from edgestead.testing.server import EdgeServer, wait_until
from tests.support.postgres import CLUSTER_ID

LEAD_SECONDS_MAX = 300
NO_REGIONS: Mapping[str, str] = MappingProxyType({})
ROLES = ("control", "edge", "objects")
INVITED_SECONDS = 3_600


class ClusterNodes:
    """`names` are nodes with the role control; `start` starts all of them. Close it at the end."""

    def __init__(
        self,
        folder: Path,
        dsn: str,
        names: tuple[str, ...] = ("a", "b", "c"),
        *flags: str,
        known: Credentials | None = None,
        settings: str = "",
        regions: Mapping[str, str] = NO_REGIONS,
        of: Path | None = None,
    ) -> None:
        """With the credentials `known`, or new ones. `settings` are lines of TOML below `[cluster]`;
        `regions` has those of nodes that are in one; `of` is a data folder whose control data moves in.
        """
        self._regions = regions
        self.folder, self.dsn, self._flags, self._settings = folder, dsn, flags, settings
        self.link = Link(dsn)
        self._authority = Authority.new(CLUSTER_ID, datetime.now(UTC))
        self._key = secrets.token_hex(32).encode()
        folder.mkdir(exist_ok=True)
        first = folder / "first"
        first.mkdir() if of is None else shutil.copytree(of, first)
        seal_key = first / "seal.key"
        self._seal_key = seal_key.read_bytes() if seal_key.exists() else secrets.token_hex(32).encode()
        if known is not None:
            credentials.write(first, known)
        self._credentials = credentials.load_or_make(first)
        SqliteControlStore(first / "control.db", MIGRATIONS).close()
        with copy_parts(first / "control.db") as (_, parts):
            begin(self.link, parts)
        self.vault = PostgresVault(self.link, bytes.fromhex(self._key.decode()))
        self.vault.write(AUTHORITY, self._authority.key_pem)
        self.vault.write(CERTIFICATE, self._authority.certificate_pem)
        self.addresses: dict[str, str] = {}
        self.servers = {name: self._make(name) for name in names}

    def _make(self, name: str) -> EdgeServer:
        folder = self.folder / name
        own = folder / "cluster"
        own.mkdir(parents=True, mode=0o700)
        files.replace_private(own / join.KEY, identity.new_key())
        self.certify(name, datetime.now(UTC))
        files.replace_private(own / join.AUTHORITY, self._authority.certificate_pem)
        files.replace_private(own / KEY_FILE, self._key)
        files.replace_private(folder / "seal.key", self._seal_key)
        credentials.write(folder, self._credentials)
        host, port = self.place_of(name)
        self.addresses[name] = f"{host}:{port}"
        files.replace_private(
            folder / "cluster.toml",
            f'[cluster]\ndatabase = "{self.dsn}"\nlisten = "{host}:{port}"\n{self._settings}'.encode(),
        )
        member = identity.member_of(own)
        node = Node(
            name=name,
            roles=ROLES,
            key=member.peer.key,
            address=self.addresses[name],
            region=self._regions.get(name, ""),
        )
        PostgresRegistry(self.link).add(node)
        return EdgeServer(folder, "--cluster", str(folder), *self._flags, prefix=self.prefix_of(name))

    def place_of(self, name: str) -> tuple[str, int]:
        """Where a new node is reached by the others."""
        return private_place()

    def prefix_of(self, name: str) -> tuple[str, ...]:
        """Behind what its server runs."""
        return ()

    def asking(self, name: str) -> AbstractContextManager[None]:
        """Inside of it this thread reaches the node's server."""
        return nullcontext()

    def certify(self, name: str, now: datetime) -> None:
        """Give a node the certificate that it would have got at this time."""
        own = self.folder / name / "cluster"
        public = identity.public_key((own / join.KEY).read_bytes())
        certificate = self._authority.certify(public, name, frozenset(ROLES), now)
        files.replace_private(own / join.CERTIFICATE, certificate)

    def add(self, name: str, *flags: str) -> EdgeServer:
        """One more node with control, started; with flags of its own, if there are some."""
        server = self.servers[name] = self._make(name)
        server.flags = (*server.flags, *flags)
        return server.start()

    def invite(self, name: str) -> str:
        """The text of a token for a node with the role edge."""
        until = int(datetime.now(UTC).timestamp()) + INVITED_SECONDS
        fingerprint = identity.fingerprint(self._authority.certificate_pem)
        asked = tuple(self.addresses.values())
        token = invites.make(
            self.vault, asked, fingerprint, name=name, roles=frozenset({"edge"}), until_s=until
        )
        return invites.text_of(token)

    def start(self, *, in_turn: bool = False) -> "ClusterNodes":
        """`in_turn` waits for each before the next one is launched: easier for a busy machine."""
        for server in self.servers.values():
            server.launch()
            if in_turn:
                server.wait_ready()
        for server in self.servers.values():
            server.wait_ready()
        wait_until(lambda: self.overview().leader is not None, LEAD_SECONDS_MAX)
        for name, server in self.servers.items():  # the first leader has written the credentials
            with self.asking(name):
                server.wait_until(
                    lambda one=server: one.call("GET", "/zones").status == 200, LEAD_SECONDS_MAX
                )
        return self

    def overview(self) -> Overview:
        return overview(self.link)

    @property
    def leader(self) -> str:
        """The name of the node that leads; waits until one does."""
        names: list[str] = []

        def leads() -> bool:
            found = self.overview()
            names.extend(row.node for number, row in found.rows.items() if number == found.leader)
            return bool(names)

        wait_until(leads, LEAD_SECONDS_MAX)
        return names[-1]

    @property
    def followers(self) -> list[str]:
        return [name for name in self.servers if name != self.leader]

    def close(self) -> None:
        for server in self.servers.values():
            server.close()
        self.link.close()
