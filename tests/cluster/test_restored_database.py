"""A database as a provider has it, and back to a moment by PostgreSQL's own means: docs/how-to, word by word.

The user is a plain one with a password, over TLS whose certificate is verified; its archive of write-ahead
log is a folder.
"""

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer, wait_until
from tests.cluster.test_control_nodes import zone_made
from tests.support.pairs import CA, issued
from tests.support.postgres import Owned, own_folder

SECONDS_MAX = 300
PASSWORD = "a-password of/words"
HBA = """
host    all          postgres  127.0.0.1/32  trust
host    replication  postgres  127.0.0.1/32  trust
hostssl edge         edgestead 127.0.0.1/32  scram-sha-256
"""


class Managed:
    """The provider's side."""

    def __init__(self, binaries, folder):
        self.server = Owned(binaries, folder / "a", tcp=True)
        self._folder, self._data = folder, folder / "a" / "data"
        self._archive, self._base = folder / "a" / "archive", folder / "a" / "base"
        self.authority = folder / "authority.pem"

    def start(self):
        self.server.create()
        pair = issued("localhost", now=datetime.now(UTC))
        self.authority.write_bytes(CA.certificate_pem)
        for name, content in (("server.crt", pair.chain), ("server.key", pair.key), ("pg_hba.conf", HBA)):
            self._put(self._data / name, content)
        self._make(self._archive)
        self._say(f"ssl = on\narchive_mode = on\narchive_command = 'cp %p {self._archive}/%f'\n")
        self.server.start()
        self.server.psql(f"CREATE ROLE edgestead LOGIN PASSWORD '{PASSWORD}';", check=True)
        self.server.psql(
            "CREATE DATABASE edge OWNER edgestead ENCODING 'UTF8' TEMPLATE template0;", check=True
        )

    @property
    def dsn(self):
        quoted = PASSWORD.replace(" ", "%20").replace("/", "%2F")
        return (
            f"postgresql://edgestead:{quoted}@localhost:{self.server.port}/edge"
            f"?sslmode=verify-full&sslrootcert={self.authority}"
        )

    def back_up(self):
        source = f"host=127.0.0.1 port={self.server.port} user=postgres"
        self.server._run("pg_basebackup", "-D", str(self._base), "-d", source, "-X", "none", "-c", "fast")

    def moment(self):
        """Now, as the database says, when everything up to it is in the archive."""
        said = self.server.psql("SELECT clock_timestamp();", "-At").stdout.decode().strip()
        self.archive()
        return said

    def archive(self):
        self.server.psql("SELECT pg_switch_wal();", check=True)

    def restore(self, moment):
        self.archive()
        wait_until(self._is_archived, SECONDS_MAX)
        self.server.stop()
        shutil.rmtree(self._data)
        self._base.rename(self._data)
        self._say(
            f"restore_command = 'cp {self._archive}/%f %p'\nrecovery_target_time = '{moment}'\n"
            "recovery_target_action = 'promote'\n"
        )
        self._put(self._data / "recovery.signal", "")
        self.server.start()
        wait_until(lambda: self._says("SELECT pg_is_in_recovery();") == "f", SECONDS_MAX)

    def _is_archived(self):
        waiting = self._says("SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready';")
        return waiting == "0"

    def _says(self, sql):
        return self.server.psql(sql, "-At").stdout.decode().strip()

    def _say(self, settings):
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(settings)

    def _put(self, path, content):
        path.write_text(content)
        path.chmod(0o600)
        self._own(path)

    def _make(self, path):
        path.mkdir(mode=0o700)
        self._own(path)

    def _own(self, path):
        if self.server._account:
            shutil.chown(path, "postgres", "postgres")


@pytest.fixture
def managed(postgres_binaries):
    with own_folder() as folder:
        made = Managed(postgres_binaries, folder)
        try:
            made.start()
            yield made
        finally:
            made.server.kill()


def edgecli(*words, code=0):
    command = [sys.executable, "-P", "-m", "edgestead", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == code, done
    return done.stdout


def write(server, zone, name, address):
    """Again where its answer was that it may have been written."""

    def is_written():
        return server.make_record(zone, "A", name, address).status == 200 or server.dig(name) == [address]

    wait_until(is_written, SECONDS_MAX)


@contextmanager
def started(*servers):
    """As `systemctl start`, on each machine."""
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.wait_until(server.ready_file.exists, SECONDS_MAX)
            server.wait_ready()
        yield
    finally:
        for server in servers:
            server.close()


@pytest.mark.long
def test_a_managed_database_and_back_to_a_moment(managed, tmp_path):
    between = "{}:{}".format(*private_place())
    folder, edge_folder = tmp_path / "ams-1", tmp_path / "fra-1"
    words = ("--name", "ams-1", "--advertise", between, "--listen", between)
    edgecli("cluster", "init", "--database", managed.dsn, *words, folder)
    server = EdgeServer(folder, "--cluster", str(folder))
    edge = None
    with started(server):
        token = edgecli("cluster", "invite", "fra-1", "--role", "edge", "--cluster", folder).strip()
        edge = EdgeServer(edge_folder, "--join", token)
        with started(edge):
            status = json.loads(edgecli("cluster", "status", "--json", "--cluster", folder, code=1))
            assert status["copies"].startswith("one copy")
            assert PASSWORD not in json.dumps(status)
            zone = zone_made(server, "example.com")
            write(server, zone, "before.example.com", "192.0.2.1")
            managed.back_up()
            write(server, zone, "kept.example.com", "192.0.2.2")
            moment = managed.moment()
            write(server, zone, "lost.example.com", "192.0.2.3")
            assert edge.dig("lost.example.com") == ["192.0.2.3"]

    managed.restore(moment)
    managed.server.psql("UPDATE cluster SET generation = generation + 1", database="edge", check=True)
    for copy in folder.glob("control.db*"):
        copy.unlink()

    edge.flags = ("--cluster", str(edge_folder))
    with started(server, edge):
        edge.wait_until(lambda: edge.dig("lost.example.com") == ["NXDOMAIN"], SECONDS_MAX)
        for one in (server, edge):
            assert one.dig("before.example.com") == ["192.0.2.1"]
            assert one.dig("kept.example.com") == ["192.0.2.2"]
            assert one.dig("lost.example.com") == ["NXDOMAIN"]
        write(server, zone, "after.example.com", "192.0.2.4")
        assert edge.dig("after.example.com") == ["192.0.2.4"]
        after = json.loads(edgecli("cluster", "status", "--json", "--cluster", folder, code=1))
        assert after["generation"] == status["generation"] + 1
        assert after["leader"] == "ams-1"
        assert [one["state"] for one in after["nodes"] if one["name"] == "fra-1"] == ["live"]
