"""What the past costs, in bytes and in time: `python benchmarks/objects_past.py [SECONDS]`.

Three objects are written to side by side for so many seconds at a steady rate: keys that are overwritten,
rows that are changed at random in a table of 10,000, rows that are inserted. Bytes a commit are those of the
history, snapshots included, beside those of the log; what remains is printed again as it is a day later,
thinned out. Then an object of 10 MB is taken back over 2,000 commits. The peer, in the same run, is a synced
copy of its file.
"""

import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from typing import Any

import uvloop

from edgestead import StatefulObject
from edgestead.objects.operate.operations import Operations
from edgestead.objects.runtime.classes import describe
from edgestead.server.objects.host import Host, configure_sqlite
from edgestead.server.process import rest_collector
from edgestead.sqlite.objectlog.paths import data_path
from edgestead.store.history.thinning import Keeping
from edgestead.store.objectlog import ObjectRef

RATE = 200  # commits a second
ROWS = 10_000


class Load(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.sql = self.ctx.storage.sql
        self.sql.exec("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, n INTEGER, text TEXT)")

    async def fill(self, first: int, count: int, size: int) -> None:
        for number in range(first, first + count):
            text = random.randbytes(size // 2).hex()
            self.sql.exec("INSERT INTO row VALUES (?, 0, ?)", number, text)

    async def keys(self, number: int) -> None:
        await self.ctx.storage.put(f"user-{number % 500}", {"n": number, "seen": time.time(), "name": "ann"})

    async def updates(self, number: int) -> None:
        self.sql.exec("UPDATE row SET n = ? WHERE id = ?", number, random.randrange(ROWS))

    async def inserts(self, number: int) -> None:
        self.sql.exec("INSERT INTO row (n, text) VALUES (?, ?)", number, random.randbytes(40).hex())


async def steady(stub: Any, method: str, seconds: float) -> int:
    """Commits made at the rate."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        await getattr(stub, method)(count)
        count += 1
        await asyncio.sleep(max(0.0, begin + count / RATE - time.perf_counter()))
    return count


async def bytes_a_commit(folder: str, method: str, seconds: float) -> None:
    host = Host(folder, {"Load": describe(Load)}, keeping=Keeping(recent_us=3_600 * 10**6))
    stub = host.node.env.Load["one"]
    await stub.fill(0, ROWS if method == "updates" else 1, 100)
    (entry,) = host.log.entries()
    await Operations(host.node).timeline(entry.ref)
    before = host.log.history_bytes
    count = await steady(stub, method, seconds)
    await Operations(host.node).timeline(entry.ref)
    kept = host.log.history_bytes - before
    await host.close()
    host = Host(folder, {"Load": describe(Load)}, keeping=Keeping(recent_us=0))
    await thin_out(host)
    thinned = max(0, host.log.history_bytes - before)
    print(
        f"{method:8} {count:7} commits   {kept / count:7.1f} bytes each   "
        f"thinned {thinned / count:7.1f}   ({kept / count * RATE * 86_400 / 2**20:.0f} MiB a day at {RATE}/s)"
    )
    await host.close()


async def thin_out(host: Host) -> None:
    """Until nothing more is taken out for ten seconds: a pass over an hour takes some."""
    seen, still = host.log.history_bytes, 0
    while still < 1_000:
        host.log.tend()
        await asyncio.sleep(0.01)
        still = still + 1 if host.log.history_bytes == seen else 0
        seen = host.log.history_bytes


async def side_by_side(seconds: float) -> None:
    with contextlib.ExitStack() as folders:
        await asyncio.gather(
            *(
                bytes_a_commit(folders.enter_context(tempfile.TemporaryDirectory()), method, seconds)
                for method in ("keys", "updates", "inserts")
            )
        )


async def restore(folder: str) -> None:
    host = Host(folder, {"Load": describe(Load)})
    stub = host.node.env.Load["big"]
    for first in range(0, ROWS, 500):
        await stub.fill(first, 500, 1_000)
    (entry,) = host.log.entries()
    mark = await Operations(host.node).bookmark(entry.ref)
    for number in range(2_000):
        await stub.updates(number)
    size = await host.node.with_storage(entry.ref, lambda engine: engine.size_bytes())
    await Operations(host.node).timeline(entry.ref)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        undo = await Operations(host.node).restore(entry.ref, mark)
        times.append(time.perf_counter() - begin)
        mark = undo
    copied = copy(folder, entry.ref)
    median = sorted(times)[len(times) // 2]
    print(
        f"restore of {size / 1e6:.1f} MB over 2,000 commits: {median * 1_000:.0f} ms "
        f"(a synced copy of the file: {copied * 1_000:.0f} ms, x {median / copied:.1f}); goal 1,000 ms"
    )
    await host.close()


def copy(folder: str, ref: ObjectRef) -> float:
    begin = time.perf_counter()
    path = shutil.copyfile(data_path(folder, ref), f"{folder}/copy")
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    return time.perf_counter() - begin


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    configure_sqlite()
    rest_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(side_by_side(seconds))
        with tempfile.TemporaryDirectory() as folder:
            runner.run(restore(folder))


main()
