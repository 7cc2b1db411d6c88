"""Claim: 32 concurrent small writes commit faster than the disk can flush one by one.

Each write inserts a row and emits one change, and is awaited on an event loop; the peer is the raw rate of
`fdatasync` after 4 KiB writes into a file that is already allocated, in the same folder and the same run.

    python benchmarks/store_commit.py [FOLDER]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import uvloop

from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.migrations import Migration
from edgestead.store.writes import Writes

ROUNDS = 5
SECONDS = 0.7  # of each measurement
PAGE = b"x" * 4096
PAGES = 2_000

NOTES = (Migration(1, "notes", "CREATE TABLE notes (id text PRIMARY KEY, body text NOT NULL);"),)
INSERT = "INSERT INTO notes (id, body) VALUES (?, ?)"
SELECT = "SELECT body FROM notes WHERE id = ?"
numbers = count()


def small_write(tx):
    number = next(numbers)
    tx.run(INSERT, (f"note-{number}", "text"))
    tx.emit("zone", "name", f"{number % 1000:032x}", PAGE[:120])


def fdatasync_rate(folder: Path) -> float:
    with open(folder / "raw", "wb", buffering=0) as file:
        file.write(PAGE * PAGES)
        os.fsync(file.fileno())
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            os.pwrite(file.fileno(), PAGE, done % PAGES * len(PAGE))
            os.fdatasync(file.fileno())
            done += 1
        return done / (time.perf_counter() - start)


async def write_rate(store: SqliteControlStore, clients: int) -> float:
    writes = Writes(store)
    end = time.perf_counter() + SECONDS

    async def client() -> int:
        done = 0
        while time.perf_counter() < end:
            await writes.write(small_write)
            done += 1
        return done

    start = time.perf_counter()
    done = sum(await asyncio.gather(*[client() for _ in range(clients)]))
    return done / (time.perf_counter() - start)


def read_us(store: SqliteControlStore) -> float:
    reads = 20_000
    start = time.perf_counter()
    for _ in range(reads):
        store.read(lambda reader: reader.row(SELECT, ("note-0",)))
    return (time.perf_counter() - start) / reads * 1e6


def measure(folder: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for round_ in range(ROUNDS):
        raw = fdatasync_rate(folder)
        found.setdefault("fdatasync", []).append(raw)
        for clients in (1, 32):
            store = SqliteControlStore(folder / f"control-{round_}-{clients}.db", NOTES)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                rate = runner.run(write_rate(store, clients))
            found.setdefault(f"writes c={clients}", []).append(rate)
            found.setdefault(f"ratio c={clients}", []).append(rate / raw)
            found.setdefault("read µs", []).append(read_us(store))
            store.close()
    return found


def main() -> None:
    parent = sys.argv[1] if len(sys.argv) > 1 else "."
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        found = measure(Path(folder))
    median = {name: statistics.median(values) for name, values in found.items()}
    print(f"raw fdatasync        {median['fdatasync']:8.0f} /s")
    for clients in (1, 32):
        rate, ratio = median[f"writes c={clients}"], median[f"ratio c={clients}"]
        print(f"durable writes c={clients:<2}  {rate:8.0f} /s   {ratio:.2f}x fdatasync")
    print(f"read of one row      {median['read µs']:8.1f} µs")


if __name__ == "__main__":
    main()
