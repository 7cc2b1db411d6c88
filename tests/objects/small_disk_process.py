"""A node on a file system that fills up: `python -m tests.objects.small_disk_process FOLDER`.

Puts large values until the disk is full, reads, deletes what fills it besides, writes again. Prints what was
acknowledged and what is there at the end, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgestead.objects.errors import StorageBroken
from edgestead.objects.runtime.classes import StatefulObject, describe
from edgestead.server.objects.host import Host

SEGMENT_BYTES = 4 * 1024 * 1024
VALUE_BYTES = 1_500_000
ROUNDS = 8


class Store(StatefulObject):
    storage = "sql"

    async def put(self, key: str) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (k PRIMARY KEY, v)")
        for part in range(3):  # more pages than wait for a checkpoint
            self.ctx.storage.sql.exec("INSERT INTO t VALUES (?, zeroblob(?))", f"{key}-{part}", VALUE_BYTES)

    async def keys(self) -> list[str]:
        return [row["k"] for row in self.ctx.storage.sql.exec("SELECT k FROM t ORDER BY k")]


async def fill(host: Host, make_room: Callable[[], None]) -> dict[str, Any]:
    stub, told, refused = host.node.env.Store["one"], [], 0
    await stub.put("first")
    told.append("first")
    for number in range(ROUNDS):
        try:
            await stub.put(f"k{number}")
            told.append(f"k{number}")
        except StorageBroken:
            refused += 1
        assert len(await stub.keys()) == 3 * len(told), "readable while the disk is full"
        await asyncio.sleep(0.05)
    make_room()
    async with asyncio.timeout(300):
        while not host.is_ready:  # noqa: ASYNC110 -- a level that is looked at, as readiness does
            await asyncio.sleep(0.05)
    await stub.put("last")
    told.append("last")
    return {"refused": refused, "told": sorted(told), "found": await stub.keys()}


async def main(folder: str, make_room: Callable[[], None]) -> None:
    for life in range(2):
        host = Host(f"{folder}/objects", {"Store": describe(Store)}, segment_bytes=SEGMENT_BYTES)
        host.start()
        found = (
            await fill(host, make_room) if not life else {"again": await host.node.env.Store["one"].keys()}
        )
        await host.close()
        print(json.dumps(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    ballast = Path(sys.argv[1], "ballast")
    ballast.write_bytes(bytes(int(sys.argv[2])))
    asyncio.run(main(sys.argv[1], ballast.unlink))
