"""Classes whose state shows after any crash what was lost or torn: `--objects tests/crash/objects_pairs.py`.

Each object keeps pairs of equal numbers, changed in two steps, and numbers only grow. A lost write is a
number smaller than the one that was acknowledged; a torn commit is an unequal pair; a message that left
before the write in front of it was durable is a follower ahead of its leader.
"""

import asyncio
from typing import Any

from edgestead import StatefulObject
from edgestead.objects.errors import ObjectReset

SLOTS = 3
BETWEEN_SECONDS = 0.02  # long enough that a kill often falls between the two steps


class Pairs(StatefulObject):
    """Pairs of keys."""

    async def write(self, slot: int, number: int, padding: int = 1) -> None:
        if number > await self.ctx.storage.get(f"a{slot}", default=0):
            self.ctx.storage.put(f"a{slot}", number)
            self.ctx.storage.put({f"b{slot}": number, f"padding{slot}": b"p" * padding})

    async def in_steps(self, slot: int, number: int) -> None:
        async with self.ctx.storage.transaction() as txn:
            await txn.put(f"a{slot}", number)
            await asyncio.sleep(BETWEEN_SECONDS)
            await txn.put(f"b{slot}", number)

    async def lead(self, slot: int, number: int) -> None:
        """Write here, then let the rows of the same name, perhaps in another process, follow."""
        await self.write(slot, number)
        while True:
            try:
                return await self.env.Rows[self.ctx.id.name].follow(slot, number)
            except ObjectReset:  # the rows aborted while this waited: who calls them calls again
                await asyncio.sleep(BETWEEN_SECONDS)

    async def abort(self) -> None:
        self.ctx.storage.put("a0", -1)
        self.ctx.abort()

    async def read(self) -> dict[str, Any]:
        keys = await self.ctx.storage.list()
        return {"pairs": [[keys.get(f"{side}{slot}", 0) for side in "ab"] for slot in range(SLOTS)]}


class Rows(StatefulObject):
    """Pairs of columns, changed by two statements, and keys beside them."""

    storage = "sql"

    async def on_start(self) -> None:
        self.sql = self.ctx.storage.sql
        self.sql.exec(
            "CREATE TABLE IF NOT EXISTS pair (slot INTEGER PRIMARY KEY, a, b, padding);"
            "CREATE INDEX IF NOT EXISTS pair_a ON pair (a)"
        )

    async def write(self, slot: int, number: int, padding: int = 1) -> None:
        self.sql.exec("INSERT OR REPLACE INTO pair VALUES (?, ?, 0, zeroblob(?))", slot, number, padding)
        self.sql.exec("UPDATE pair SET b = a WHERE slot = ?", slot)

    async def in_steps(self, slot: int, number: int) -> None:
        with self.ctx.storage.transaction_sync():
            await self.write(slot, number)

    async def follow(self, slot: int, number: int) -> None:
        if number > await self.ctx.storage.get(f"followed{slot}", default=0):
            await self.ctx.storage.put(f"followed{slot}", number)

    async def abort(self) -> None:
        self.sql.exec("UPDATE pair SET a = -1")
        self.ctx.abort()

    async def read(self) -> dict[str, Any]:
        rows = {row["slot"]: [row["a"], row["b"]] for row in self.sql.exec("SELECT slot, a, b FROM pair")}
        return {
            "pairs": [rows.get(slot, [0, 0]) for slot in range(SLOTS)],
            "followed": [await self.ctx.storage.get(f"followed{s}", default=0) for s in range(SLOTS)],
            "intact": self.sql.exec("PRAGMA quick_check").one()["quick_check"] == "ok",
        }


class OwnRows(StatefulObject):
    """The same with a database that is synced by itself."""

    storage = "sql"
    durability = "sqlite"

    on_start = Rows.on_start
    write = Rows.write
    in_steps = Rows.in_steps
    abort = Rows.abort
    read = Rows.read
