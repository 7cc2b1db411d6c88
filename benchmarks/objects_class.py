"""The class that benchmarks/objects_workerd.py loads into the server: what the reference's worker does."""

from typing import Any

from edgestead import StatefulObject


def _value(number: int) -> dict[str, Any]:
    return {"a": number, "b": "hello world", "c": [1, 2, 3]}


class Bench(StatefulObject):
    """The same object."""

    storage = "sql"

    async def on_start(self) -> None:
        self.count = 0
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS slots(id INTEGER PRIMARY KEY, value TEXT)")

    async def put(self) -> None:
        self.count += 1
        await self.ctx.storage.put(f"k{self.count % 64}", "v" * 90 + f"{self.count:010}")

    async def row(self) -> None:
        self.count += 1
        self.ctx.storage.sql.exec(
            "INSERT OR REPLACE INTO slots VALUES(?,?)", self.count % 64, "v" * 90 + f"{self.count:010}"
        )

    async def inside(self, operation: str, count: int = 0) -> None:
        await getattr(self, f"_{operation}")(count)
        await self.ctx.storage.sync()

    async def _setup(self, count: int) -> None:
        storage = self.ctx.storage
        for number in range(128):
            await storage.put(f"key{number}", _value(number))
        storage.sql.exec("CREATE TABLE IF NOT EXISTS users(id INTEGER PRIMARY KEY, name TEXT, score REAL)")
        await self._insert(1_000)

    async def _get(self, count: int) -> None:
        storage = self.ctx.storage
        for _ in range(count):
            await storage.get("key5")

    async def _put(self, count: int) -> None:
        storage, start = self.ctx.storage, self.count
        for number in range(count):
            await storage.put("key5", {"a": start + number, "b": "hello world", "c": [1, 2, 3]})
        self.count += count

    async def _pk(self, count: int) -> None:
        sql = self.ctx.storage.sql
        for number in range(count):
            sql.exec("SELECT * FROM users WHERE id=?", number % 1_000).one()

    async def _insert(self, count: int) -> None:
        sql, start = self.ctx.storage.sql, self.count
        for number in range(count):
            sql.exec(
                "INSERT OR REPLACE INTO users VALUES(?,?,?)",
                number % 1_000,
                f"name{start + number}",
                number * 1.5,
            )
        self.count += count

    async def _rows(self, count: int) -> None:
        sql = self.ctx.storage.sql
        for _ in range(count):
            sql.exec("SELECT * FROM users").to_array()
