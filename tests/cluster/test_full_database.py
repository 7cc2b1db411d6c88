"""A database whose disk is really full, under clients of objects, of the API and of key-values.

Two disks: one that has the tables alone, and one that has the write-ahead log as well, whose primary ends.
"""

import itertools
import shutil
import time
from collections import Counter
from contextlib import contextmanager

import pytest

from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.server.own_postgres import USER
from edgestead.testing.server import wait_until
from tests.cluster.objects_nodes import FAILED, FLAGS, SECONDS_MAX, Load, names_at
from tests.server.small_disk import fill, small_disk, why_not
from tests.support.beside import Beside
from tests.support.cluster_nodes import ClusterNodes
from tests.support.postgres import CLUSTER_ID, Owned, own_folder

NODES = ("a", "b")
ROUNDS = 60  # of each client while the disk is full
REFUSED = 20  # writes in a row: the disk has no page left
TEXT = "x" * 500  # of a record, so that pages are soon full
ALL = (("write", 200), ("put", 200), ("read", 200), ("get", 200))


@pytest.fixture(autouse=True)
def _root():
    if reason := why_not():
        pytest.skip(f"A FULL DATABASE IS NOT TESTED: {reason}")


@contextmanager
def small_tables(binaries):
    """A server whose tables of the cluster lie on a small disk, and all else on a large one."""
    with own_folder() as folder, small_disk(folder / "small", 48) as disk:
        server = Owned(binaries, folder / "pg", synced=False)
        shutil.chown(disk, USER, USER)
        server.create()
        server.start()
        try:
            server.psql(f"CREATE TABLESPACE small LOCATION '{disk}';", check=True)
            server.psql("CREATE DATABASE edge TABLESPACE small;", check=True)
            yield server, disk
        finally:
            server.kill()


@contextmanager
def small_server(binaries):
    """One that has all on a small disk."""
    with own_folder() as folder, small_disk(folder / "small", 160) as disk:
        disk.chmod(0o755)
        server = Owned(binaries, disk / "pg", synced=False)
        server.create()
        server.start()
        try:
            server.psql("CREATE DATABASE edge;", check=True)
            yield server, disk
        finally:
            server.kill()


class Writers(Beside):
    """A client of the API and one of values at each node; each notes what was acknowledged."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes, first = nodes, nodes.servers["a"]
        self.zone = first.make_zone("full.test")
        spaces = f"/accounts/{first.ready['account_id']}/storage/kv/namespaces"
        space = first.call("POST", spaces, {"title": "full"}).result["id"]
        self.values = f"{spaces}/{space}/values"
        self.records, self.kept = set(), {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self._refused: Counter[str] = Counter()  # in a row, by way
        self._numbers = itertools.count(1)
        works = (self._record, self._value, self._read)
        for name, work in itertools.product(NODES, works):
            self.run_beside(self._run, work, nodes.servers[name])

    def _run(self, work, server):
        while not self._ended.is_set():
            try:
                work(server)
            except FAILED as error:
                self.answers[work.__name__, repr(error)] += 1
            time.sleep(0.02)

    def _note(self, way, answer):
        self.answers[way, answer.status] += 1
        self._refused[way] = 0 if answer.status == 200 else self._refused[way] + 1
        assert answer.status == 200 or answer.body["errors"][0]["message"]
        return answer.status == 200

    def are_refused(self):
        """Whether each way of writing was refused many times, one behind the other."""
        return min(self._refused["write"], self._refused["put"]) >= REFUSED

    def _record(self, server):
        name = f"r{next(self._numbers)}.full.test"
        if self._note("write", server.make_record(self.zone, "TXT", name, "x" * 500)):
            self.records.add(name)

    def _value(self, server):
        number = next(self._numbers)
        key = f"{server.data_dir.name}-{number}"
        if self._note("put", server.call("PUT", f"{self.values}/{key}", f"{number}-{'v' * 4_000}")):
            self.kept[key] = number

    def _read(self, server):
        self._note("read", server.call("GET", f"/zones/{self.zone}/dns_records?per_page=5"))
        for key in list(self.kept)[-1:]:
            self._note("get", server.call("GET", f"{self.values}/{key}"))

    def wait_for(self, *what, more=20):
        before = Counter(self.answers)
        wait_until(lambda: all(self.answers[one] >= before[one] + more for one in what), SECONDS_MAX)

    def check(self):
        for server in self.nodes.servers.values():
            path = f"/zones/{self.zone}/dns_records?per_page=50000"
            names = {one["name"] for one in server.call("GET", path).result}
            assert self.records <= names
            for key, number in self.kept.items():
                assert server.call("GET", f"{self.values}/{key}").body.startswith(f"{number}-"), key


@contextmanager
def cluster_on(server, folder):
    dsn = server.dsn("edge")
    link = Link(dsn)
    schema.create(link, CLUSTER_ID)
    link.close()
    made = ClusterNodes(folder / "nodes", dsn, NODES, *FLAGS)
    try:
        yield made.start()
    finally:
        made.close()


@contextmanager
def under_clients(server, folder):
    """Nodes over the database, calls of their objects, and the other clients; all answered."""
    with cluster_on(server, folder) as nodes:
        names = [name for node in NODES for name in names_at(nodes, node, 2, "full")]
        with Load(nodes, names) as load, Writers(nodes) as writers:
            load.wait_for(60)
            writers.wait_for(*ALL)
            yield nodes, load, writers
            load.wait_for(60)
            writers.wait_for(*ALL)
        load.check()
        writers.check()


@pytest.mark.long
def test_full_tables_refuse_writes_in_words_and_go_on_when_there_is_room(postgres_binaries, tmp_path):
    """Reads of all kinds are answered meanwhile, and no process loses its place."""
    with (
        small_tables(postgres_binaries) as (server, disk),
        under_clients(server, tmp_path) as (nodes, load, writers),
    ):
        before = nodes.overview()
        filler = fill(disk)
        # Pages that have room for a few rows more take these.
        wait_until(lambda: writers.are_refused() and len(load.refused) >= ROUNDS, SECONDS_MAX)
        writers.answers.clear()
        reads, acked = sum(map(len, load.reads.values())), load.acked

        writers.wait_for(("read", 200), ("get", 200), ("write", 503), ("put", 503))
        wait_until(lambda: sum(map(len, load.reads.values())) >= reads + ROUNDS, SECONDS_MAX)

        assert writers.answers.keys() == {("read", 200), ("get", 200), ("write", 503), ("put", 503)}
        assert load.acked == acked
        assert all("10468" in one for one in load.refused), "in words of their own"
        after = nodes.overview()
        assert (after.leader, after.rows.keys()) == (before.leader, before.rows.keys())
        filler.unlink()


@pytest.mark.long
def test_a_full_log_ends_the_primary_and_all_goes_on_when_it_has_room_and_was_started(
    postgres_binaries, tmp_path
):
    """It is the database that is not reached: nobody answers what may be old, DNS goes on."""
    with (
        small_server(postgres_binaries) as (server, disk),
        under_clients(server, tmp_path) as (nodes, _, writers),
    ):
        one = nodes.servers["a"]
        (name, *_) = writers.records
        filler = fill(disk)
        # Segments that it has already would do for minutes.
        wait_until(
            lambda: server.psql("SELECT pg_switch_wal();").returncode and server.pid is None, SECONDS_MAX
        )
        writers.wait_for(("read", 503), ("write", 503), ("put", 503), more=3)

        assert one.call("GET", f"/zones/{writers.zone}/dns_records").status == 503
        assert one.dig(name, "TXT", tcp=True) == [f'"{TEXT[:255]}" "{TEXT[255:]}"']
        filler.unlink()
        server.start()
