"""How many durable commits a second, in one process, beside what the disk can sync; and memory per object.

    python benchmarks/objects_commit.py [--seconds N] [--fresh] [--memory]

Workers put a new value into one of 1,000 objects and wait until it is durable; the raw figure is one
`fdatasync` after the other of 4 KiB in a preallocated file, in the same run. `--fresh` uses ever-new keys, so
that keys have to move to SQLite all the time: run it for minutes to see the steady state.
"""

import argparse
import asyncio
import ctypes
import gc
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from edgestead.objects.ids import from_name
from edgestead.objects.runtime.classes import StatefulObject, describe
from edgestead.objects.runtime.engine import Engine
from edgestead.objects.runtime.gates import InputGate
from edgestead.objects.runtime.storage import Storage, settle
from edgestead.server.objects.host import Host, configure_sqlite

OBJECTS = 1_000
CALLERS = (1, 32, 256)
RAW_BYTES = 4_096
GOALS = {"keys": 15.0, "pages": 4.0}


class Touched(StatefulObject):
    storage = "sql"

    async def touch(self) -> None:
        await self.ctx.storage.put("k", "v" * 100)
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")


def raw_syncs_per_second(folder: Path, seconds: float = 1.0) -> float:
    """One sync after the other."""
    fd = os.open(folder / "raw", os.O_RDWR | os.O_CREAT)
    data, count = os.urandom(RAW_BYTES), 0
    os.pwrite(fd, bytes(RAW_BYTES * 1_024), 0)
    os.fsync(fd)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        os.pwrite(fd, data, count % 1_024 * RAW_BYTES)
        os.fdatasync(fd)
        count += 1
    os.close(fd)
    return count / (time.perf_counter() - began)


def storages(host: Host) -> list[tuple[Engine, Storage]]:
    made = []
    for number in range(OBJECTS):
        engine = host.node._make_engine(host.log.lease(from_name("Bench", str(number))), lambda error: None)
        made.append(
            (engine, Storage(engine, InputGate(), sql_backend=True, has_alarm=True, now_ms=lambda: 0))
        )
    return made


async def touch(objects: list[Any]) -> None:
    """Write to each once: the databases of those that need one are made."""
    for engine, storage in objects:
        storage.put("k0", "")
        engine.commit(flush=True)
    await objects[-1][1].sync()


async def load(objects: list[Any], callers: int, seconds: float, fresh: bool) -> tuple[float, float, float]:
    """(commits per second, p50 µs, p99 µs)."""
    loop = asyncio.get_running_loop()
    late: list[float] = []
    until = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        chance = random.Random(number)
        while (began := time.perf_counter()) < until:
            engine, storage = objects[chance.randrange(OBJECTS)]
            key = f"{chance.random()}" if fresh else f"k{chance.randrange(64)}"
            storage.put(key, "v" * 80 + f"{began:020}")
            if not engine.is_confirmed:
                future = loop.create_future()
                engine.when_confirmed(settle(future))
                await future
            late.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    rate = len(late) / (time.perf_counter() - began)
    late.sort()
    return rate, late[len(late) // 2] * 1e6, late[int(len(late) * 0.99)] * 1e6


async def compare(folder: Path, seconds: float, fresh: bool) -> None:
    for logging in GOALS:
        host = Host(str(folder / logging), {}, logging=logging)  # type: ignore[arg-type]
        objects = storages(host)
        await touch(objects)
        for callers in CALLERS:
            raw = raw_syncs_per_second(folder)
            rate, p50, p99 = await load(objects, callers, seconds, fresh)
            print(
                f"{logging:6}{OBJECTS} objects, {callers:3} callers: {rate:9,.0f} durable puts/s, "
                f"p50 {p50:7.0f} µs, p99 {p99:7.0f} µs; one fdatasync at a time {raw:6,.0f}/s: "
                f"{rate / raw:5.1f}x (goal at 256: {GOALS[logging]:g}x), {host.log.sealed_segments} sealed",
                flush=True,
            )
        for engine, _ in objects:
            engine.checkpoint()
            engine.close()
        await host.close()


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


async def memory(folder: Path) -> None:
    host = Host(str(folder / "memory"), {"Touched": describe(Touched)})
    await host.node.env.Touched["warm"].touch()
    gc.collect()
    before = resident_kib()
    for number in range(OBJECTS):
        await host.node.env.Touched[str(number)].touch()
    gc.collect()
    busy = (resident_kib() - before) / OBJECTS
    for instance in host.node._live.values():
        instance.engine.relax()  # what upkeep does after a second without calls
    ctypes.CDLL(None).malloc_trim(0)
    idle = (resident_kib() - before) / OBJECTS
    print(f"{OBJECTS} open databases: {busy:.0f} KiB resident each, {idle:.0f} when idle (goal 100)")
    await host.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    configure_sqlite()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).resolve()
        if options.memory:
            uvloop.run(memory(folder))
        else:
            uvloop.run(compare(folder, options.seconds, options.fresh))


if __name__ == "__main__":
    main()
