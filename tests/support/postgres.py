"""PostgreSQL for tests: one server for each worker of pytest, a database for each test, a pair for failovers.

Owns  fixtures, the wording of a skip, and that a server ends with who started it.
Not   starting a server (`server.own_postgres`).

A database is a copy of a template that has the schema. The server flushes nothing: tests end processes, and
no machines.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from edgestead.cli.parent import if_it_lasts, interrupt_with_parent
from edgestead.cluster.placement import SLOTS
from edgestead.postgres import connection, schema
from edgestead.postgres.connection import Link
from edgestead.server.own_postgres import OwnPostgres, dsn_of, find_binaries

__all__ = [
    "Cluster",
    "Owned",
    "Pair",
    "Postgres",
    "cluster",
    "find_binaries",
    "pair",
    "postgres",
    "postgres_binaries",
]
CLUSTER_ID = "test-cluster"
TEMPLATE = "edge_template"
PATIENCE_SECONDS = 300.0


class Owned(OwnPostgres):
    """One that ends with this process, also when that is killed."""

    def start(self) -> None:
        self._before_exec = if_it_lasts(interrupt_with_parent)
        super().start()


class Cluster(Owned):
    """One that also runs scripts and sorts their errors."""

    def errors(self, statements: Sequence[str]) -> list[str]:
        """Run each statement, all in one session; one entry each: its error, or an empty text."""
        script = "".join(f"\\warn @@{number}\n{text};\n" for number, text in enumerate(statements))
        output = self.psql(script).stderr.decode()
        parts = re.split(r"@@\d+\n", output)[1:]
        return [part.strip() for part in parts]


@contextmanager
def own_folder() -> Iterator[Path]:
    """For servers: any user may look into it."""
    folder = Path(tempfile.mkdtemp(prefix="edgestead-pg-"))  # short: a socket's path has 107 bytes
    folder.chmod(0o755)  # what is in it has owners of its own
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cluster(binaries: Path) -> Iterator[Cluster]:
    """A running, empty cluster with C collation. Raises CalledProcessError, TimeoutError."""
    with own_folder() as folder:
        made = Cluster(binaries, folder / "a", synced=False)
        try:
            made.create()
            made.start()
            yield made
        finally:
            made.stop()


class Postgres:
    """The server of a worker."""

    def __init__(self, server: OwnPostgres) -> None:
        self.server = server
        self._numbers = count(1)
        self._shared: Link | None = None
        server.psql(f"CREATE DATABASE {TEMPLATE};", check=True)
        with closing(Link(server.dsn(TEMPLATE))) as link:
            schema.create(link, CLUSTER_ID)

    def emptied(self) -> str:
        """The DSN of one database with the schema, whose rows each call deletes; quicker than another.

        What an earlier test has opened there must be closed.
        """
        if self._shared is None:
            self._shared = Link(self.database())
            tables = self._shared.rows(
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' "
                "AND table_name NOT IN ('cluster', 'slots')"
            )
            self._emptying = "".join(f"DELETE FROM {name};" for (name,) in tables)
            self._emptying += f"DELETE FROM slots WHERE slot >= {SLOTS};"  # of regions
            self._emptying += "UPDATE slots SET incarnation = NULL WHERE incarnation IS NOT NULL;"
            self._emptying += "UPDATE slots SET wanted = NULL WHERE wanted IS NOT NULL;"
        self._shared.script(self._emptying)
        return self._shared.dsn

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()

    def database(self) -> str:
        """The DSN of a new database with the schema, and a cluster of which nothing runs."""
        return self._create(TEMPLATE)

    def empty(self) -> str:
        """The DSN of a new database without anything."""
        return self._create("template0")

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        self.server.psql(f"CREATE DATABASE {name} TEMPLATE {template};", check=True)
        return self.server.dsn(name)


class Pair:
    """A primary and its synchronous standby. Paths: `primary` and `standby` change places by `fail_over`."""

    def __init__(self, primary: OwnPostgres, standby: OwnPostgres) -> None:
        self.primary, self.standby = primary, standby

    def dsn(self, database: str) -> str:
        """Names both; they stay the same after a failover."""
        return dsn_of(sorted((self.primary, self.standby), key=lambda one: one.name), database)

    def database(self, name: str = "edge") -> str:
        """The DSN of a new database with the schema."""
        self.primary.psql(f"CREATE DATABASE {name};", check=True)
        with closing(Link(self.dsn(name))) as link:
            schema.create(link, CLUSTER_ID)
        return self.dsn(name)

    def promote(self) -> None:
        """Make the standby the primary, which then commits alone. The former primary has to have ended."""
        self.primary, self.standby = self.standby, self.primary
        self.primary.promote()
        self.primary.require_standby(False)

    def rejoin(self) -> None:
        """The former primary follows, and commits wait for it."""
        self.standby.follow(self.primary)
        self.standby.start()
        self.primary.require_standby(True)


@contextmanager
def pair(binaries: Path, **options: Any) -> Iterator[Pair]:
    """A running primary with a synchronous standby. Raises CalledProcessError, TimeoutError."""
    with own_folder() as folder:
        one, other = (Owned(binaries, folder / name, name=name, synced=False, **options) for name in "ab")
        try:
            one.create()
            one.start()
            other.follow(one)
            other.start()
            one.require_standby(True)
            yield Pair(one, other)
        finally:
            for server in (one, other):
                server.resume()
                server.kill()


@pytest.fixture(scope="session")
def postgres_binaries() -> Iterator[Path]:
    """From here on this process waits for a connection also while the machine stands still."""
    found = find_binaries()
    if found is None:
        pytest.skip("THE CLUSTER IS NOT TESTED: PostgreSQL is not installed (apt install postgresql)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "CONNECT_SECONDS_MAX", 60)
        yield found


@pytest.fixture(scope="session")
def postgres(postgres_binaries: Path) -> Iterator[Postgres]:
    with cluster(postgres_binaries) as server, closing(Postgres(server)) as made:
        yield made


@pytest.fixture
def patient_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement and no transaction of clerks ends because the machine stood still for a moment."""
    from edgestead.postgres import controllog, incarnations, regions, slots

    for module in (incarnations, slots):
        monkeypatch.setattr(module, "DEADLINE_SECONDS", PATIENCE_SECONDS)
    for module in (controllog, incarnations, regions, slots):
        monkeypatch.setattr(module, "IDLE_MS_MAX", int(1_000 * PATIENCE_SECONDS))
