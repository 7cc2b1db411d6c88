"""A load on objects whose outcome can be judged after any crash, and the judge.

Each object keeps pairs of equal numbers: two keys, or two columns changed by two statements. A number only
grows. So a lost write is a number smaller than the one acknowledged, and a torn transaction is an unequal
pair. The load also makes objects grow, forget, abort and leave memory, and the log rotate.
"""

import asyncio
import random
from typing import Any

from edgestead.objects.errors import ObjectError
from edgestead.objects.runtime.classes import StatefulObject
from edgestead.objects.runtime.node import Node

OBJECTS = 6
SLOTS = 4


class Pairs(StatefulObject):
    """Pairs of keys."""

    async def write(self, slot: int, number: int, padding: int) -> None:
        await self.ctx.storage.put({f"a{slot}": number, f"b{slot}": number, f"p{slot}": b"p" * padding})

    async def in_steps(self, slot: int, number: int) -> None:
        async with self.ctx.storage.transaction() as txn:
            await txn.put(f"a{slot}", number)
            await asyncio.sleep(0.001)
            await txn.put(f"b{slot}", number)

    async def abort(self) -> None:
        await self.ctx.storage.put("a0", -1)
        self.ctx.abort()

    async def alarm(self) -> None:
        pass

    async def remind(self, number: int) -> None:
        await self.ctx.storage.set_alarm(10_000_000_000_000 + number)

    async def read(self) -> dict[str, Any]:
        pairs = await self.ctx.storage.list()
        found = {k: (pairs.get(f"a{k}"), pairs.get(f"b{k}")) for k in range(SLOTS)}
        return {"pairs": found, "alarm": await self.ctx.storage.get_alarm()}


class Rows(Pairs):
    """Pairs of columns, changed by two statements."""

    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec(
            "CREATE TABLE IF NOT EXISTS pair (slot INTEGER PRIMARY KEY, a, b, padding);"
            "CREATE INDEX IF NOT EXISTS pair_a ON pair (a)"
        )

    async def write(self, slot: int, number: int, padding: int) -> None:
        sql = self.ctx.storage.sql
        sql.exec("INSERT OR REPLACE INTO pair VALUES (?, ?, 0, zeroblob(?))", slot, number, padding)
        sql.exec("UPDATE pair SET b = ? WHERE slot = ?", number, slot)

    async def in_steps(self, slot: int, number: int) -> None:
        with self.ctx.storage.transaction_sync():
            await self.write(slot, number, 1)

    async def abort(self) -> None:
        self.ctx.storage.sql.exec("UPDATE pair SET a = -1")
        self.ctx.abort()

    async def remind(self, number: int) -> None:
        await self.ctx.storage.set_alarm(10_000_000_000_000 + number)

    async def read(self) -> dict[str, Any]:
        rows = self.ctx.storage.sql.exec("SELECT slot, a, b FROM pair")
        found = dict.fromkeys(range(SLOTS), (None, None)) | {
            row["slot"]: (row["a"], row["b"]) for row in rows
        }
        intact = self.ctx.storage.sql.exec("PRAGMA quick_check").to_list()
        return {"pairs": found, "alarm": await self.ctx.storage.get_alarm(), "check": intact}


CLASSES = (Pairs, Rows)


class Acknowledged:
    """What callers were told: the number of each slot, and of each alarm."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str, Any], int] = {}
        self.count = 0

    def note(self, class_name: str, name: str, slot: Any, number: int) -> None:
        key = (class_name, name, slot)
        self.numbers[key] = max(self.numbers.get(key, 0), number)
        self.count += 1


async def load(
    node: Node, acknowledged: Acknowledged, chance: random.Random, writes: int, first: int
) -> None:
    """Write with a few callers at once until all is written or nothing answers any more."""
    numbers = iter(range(first, first + writes))
    # Two callers never write one slot at once: "the largest acknowledged" would not be the last.
    owners = [
        (kind.__name__, str(n), slot) for kind in CLASSES for n in range(OBJECTS) for slot in range(SLOTS)
    ]

    async def caller(mine: list[tuple[str, str, int]]) -> None:
        for number in numbers:
            class_name, name, slot = chance.choice(mine)
            stub = node.env[class_name][name]
            action = chance.random()
            try:
                if action < 0.7:
                    await stub.write(slot, number, chance.choice((1, 50, 3_000)))
                    acknowledged.note(class_name, name, slot, number)
                elif action < 0.85:
                    await stub.in_steps(slot, number)
                    acknowledged.note(class_name, name, slot, number)
                elif action < 0.95 and slot == 0:
                    await stub.remind(number)
                    acknowledged.note(class_name, name, "alarm", number)
                else:
                    await stub.abort()
            except ObjectError:
                await asyncio.sleep(0.001)

    callers = 5
    await asyncio.gather(*(caller(owners[index::callers]) for index in range(callers)))


async def judge(node: Node, acknowledged: Acknowledged) -> list[str]:
    """What is wrong: lost writes, torn pairs, damaged databases."""
    wrong = []
    for kind in CLASSES:
        for name in map(str, range(OBJECTS)):
            state = await node.env[kind.__name__][name].read()
            if state.get("check", [{"quick_check": "ok"}]) != [{"quick_check": "ok"}]:
                wrong.append(f"{kind.__name__} {name}: {state['check']}")
            for slot, (a, b) in state["pairs"].items():
                told = acknowledged.numbers.get((kind.__name__, name, slot), 0)
                if a != b:
                    wrong.append(f"{kind.__name__} {name} {slot}: torn, {a} and {b}")
                elif (a or 0) < told:
                    wrong.append(f"{kind.__name__} {name} {slot}: {a}, but {told} was acknowledged")
            told = acknowledged.numbers.get((kind.__name__, name, "alarm"), 0)
            if (state["alarm"] or 10_000_000_000_000) - 10_000_000_000_000 < told:
                wrong.append(f"{kind.__name__} {name}: alarm {state['alarm']}, but {told} was acknowledged")
    return wrong
