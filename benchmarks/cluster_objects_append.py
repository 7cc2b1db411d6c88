"""How many fenced commits of 4 KB a second, at 512 objects, beside a compare-and-set over two tables.

    python benchmarks/cluster_objects_append.py [--seconds N] [--rounds N] [--sync] [--random]

It starts a PostgreSQL of its own; without `--sync` that flushes nothing, so that the statements are compared
and not the disk. Both write the same bodies in groups of 512 commits, one of each object, over one
connection, in turns within one run:

    fenced   one INSERT that holds the process's row of incarnations FOR KEY SHARE (what the object log does)
    two      UPDATE of each object's head where it is what was read and the owner is the same, then INSERT

The last line is the object log itself, with what Python does around the statement. `--random`: bodies that
cannot be compressed; otherwise pages as SQLite makes them.
"""

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from edgestead.cli.parent import interrupt_with_parent
from edgestead.objects.ids import from_name
from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.postgres.objectlog.log import PostgresObjectLog
from edgestead.postgres.objectlog.rows import LogRow, parameters, statement
from edgestead.server.own_postgres import OwnPostgres, find_binaries
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.store.objectlog import UNCHANGED, Commit, CommitKind, Lease
from edgestead.store.pages import PAGE_BYTES, frames_of
from edgestead.store.runner import ThreadRunner

OBJECTS = 512
GOAL_RATE, GOAL_RATIO = 15_000, 1.0
# The way not taken: the owner stands in each object's row, and its head moves with each commit.
TWO_TABLES = (
    "WITH given AS (SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::smallint[], %b::integer[], "
    "%b::integer[], %b::bigint[], %b::bigint[], %b::bytea[]) "
    "AS g(number, position, kind, session, generation, time_us, alarm_us, body)), "
    "moved AS (UPDATE heads h SET head = g.position FROM given g "
    "WHERE h.number = g.number AND h.head = g.position - 1 AND h.owner = %b RETURNING h.number), "
    "logged AS (INSERT INTO cas_log (number, position, incarnation, kind, session, generation, time_us, "
    "alarm_us, body) SELECT g.number, g.position, 1, g.kind, g.session, g.generation, g.time_us, g.alarm_us, "
    "g.body FROM given g JOIN moved USING (number)) SELECT count(*) FROM moved"
)
CAS_TABLES = f"""
CREATE TABLE heads (number bigint PRIMARY KEY, owner bigint NOT NULL, head bigint NOT NULL)
  WITH (fillfactor = 50);
INSERT INTO heads SELECT number, 1, 0 FROM generate_series(1, {OBJECTS}) AS number;
CREATE TABLE cas_log (LIKE object_log INCLUDING ALL) WITH (toast_tuple_target = 8160);
INSERT INTO incarnations (number, node, kind, address, renewed) VALUES (1, 'a', 'objects', '', 0);
"""


def page_body() -> bytes:
    """A page of a table with some rows, as a commit carries it."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n REAL)").fetchall()
    for number in range(60):
        row = (number, f"name {number * 7_919 % 1_000} of a row", number / 7)
        connection.execute("INSERT INTO t VALUES (?, ?, ?)", row).fetchall()
    image = bytes(connection.serialize("main"))
    connection.close()
    return frames_of(image, [2], len(image) // PAGE_BYTES)


def rows_at(position: int, body: bytes) -> list[LogRow]:
    return [
        LogRow(number, position, CommitKind.PAGES, 0, 0, position, UNCHANGED, body)
        for number in range(1, OBJECTS + 1)
    ]


class Ways:
    """Both ways over one connection; `used` is the time of each in its rounds."""

    def __init__(self, link: Link, body: bytes) -> None:
        self._link, self._body = link, body
        self._positions = {"fenced": 0, "two": 0}

    def group(self, way: str) -> None:
        position = self._positions[way] = self._positions[way] + 1
        values = parameters(1, rows_at(position, self._body), [], [], [])
        if way == "fenced":
            assert self._link.row(statement(named=False, changed=False, pinned=False), values) == (1,)
        else:
            assert self._link.row(TWO_TABLES, [*values[1:], values[0]]) == (OBJECTS,)


def compare(link: Link, body: bytes, seconds: float, rounds: int) -> None:
    ways = Ways(link, body)
    rates: dict[str, list[float]] = {"fenced": [], "two": []}
    used, counts = {"fenced": 0.0, "two": 0.0}, {"fenced": 0, "two": 0}
    ((pid,),) = link.rows("SELECT pg_backend_pid()")
    for number in range(rounds):
        for way in ("fenced", "two") if number % 2 else ("two", "fenced"):
            count, began, before = 0, time.perf_counter(), cpu_seconds(pid)
            while time.perf_counter() - began < seconds:
                ways.group(way)
                count += OBJECTS
            rates[way].append(count / (time.perf_counter() - began))
            used[way] += cpu_seconds(pid) - before
            counts[way] += count
    ratios = sorted(one / other for one, other in zip(rates["fenced"], rates["two"], strict=True))
    middle = ratios[len(ratios) // 2]
    each = {way: used[way] / counts[way] * 1e6 for way in used}
    print(
        f"groups of {OBJECTS}: fenced {max(rates['fenced']):,.0f}/s, two tables {max(rates['two']):,.0f}/s "
        f"(best of {rounds}); fenced against two in turns {ratios[0]:.2f}, {middle:.2f}, {ratios[-1]:.2f} "
        f"(least, middle, most; goal {GOAL_RATIO:g}; rate {GOAL_RATE:,}/s on a quiet machine)\n"
        f"processor time of the database's process: fenced {each['fenced']:.1f} µs a commit, two tables "
        f"{each['two']:.1f}: {each['two'] / each['fenced']:.2f} times"
    )


def cpu_seconds(pid: int) -> float:
    """What a process has used, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Owner:
    number = 1

    def owns(self, slot: int) -> bool:
        return True

    def may_answer(self) -> bool:
        return True


async def through_log(dsn: str, folder: str, body: bytes, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    runners = [ThreadRunner(loop.call_soon_threadsafe, name) for name in ("writer", "reader", "upkeep")]
    log = PostgresObjectLog(
        dsn,
        f"{folder}/cache",
        owner=Owner(),
        files=LocalFiles(),
        writer=runners[0],
        reader=runners[1],
        upkeep=runners[2],
        now_us=lambda: time.time_ns() // 1_000,
        fatal=lambda error: print(repr(error)),
        base_bytes=1 << 40,
    )
    leases: list[Lease] = []
    for number in range(OBJECTS):
        future: asyncio.Future[Any] = loop.create_future()
        log.acquire(from_name("Bench", str(number)), lambda lease, error, to=future: to.set_result(lease))
        leases.append(await future)
    commit, until, count = Commit(CommitKind.PAGES, body), time.perf_counter() + seconds, 0

    async def write(lease: Lease) -> None:
        nonlocal count
        while time.perf_counter() < until:
            done: asyncio.Future[None] = loop.create_future()
            group = lease.append([commit], UNCHANGED)
            group.on_done(lambda error, to=done: to.set_result(None))  # type: ignore[misc]
            loop.call_soon(log.flush)
            await done
            count += 1

    used, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(write(lease) for lease in leases))
    passed, used = time.perf_counter() - began, time.process_time() - used
    groups = max(1, log.progress[0])
    print(
        f"through the log: {count / passed:,.0f} commits/s, {count / groups:.0f} in a group, "
        f"{used / count * 1e6:.0f} µs of our processor time each"
    )
    log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--random", action="store_true")
    options = parser.parse_args()
    body = os.urandom(PAGE_BYTES + 24) if options.random else page_body()
    binaries = find_binaries()
    if binaries is None:
        parser.error("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="edgestead-pg-") as folder:
        Path(folder).chmod(0o755)
        server = OwnPostgres(
            binaries, Path(folder, "a"), synced=options.sync, before_exec=interrupt_with_parent
        )
        try:
            server.create()
            server.start()
            server.psql("CREATE DATABASE edge;", check=True)
            with closing(Link(server.dsn("edge"))) as link:
                schema.create(link, "bench")
                link.script(CAS_TABLES)
                compare(link, body, options.seconds, options.rounds)
                link.script("TRUNCATE object_log")
            asyncio.run(through_log(server.dsn("edge"), folder, body, options.seconds * 2))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
