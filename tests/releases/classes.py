"""The classes of the objects in the kept data folders: `--objects tests/releases/classes.py`."""

from edgestead import StatefulObject


class Ledger(StatefulObject):
    """Keys and rows, in the log."""

    storage = "sql"

    async def enter(self, text: str) -> int:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry (text TEXT)")
        self.ctx.storage.sql.exec("INSERT INTO entry VALUES (?)", text)
        count = await self.ctx.storage.get("count", default=0) + 1
        await self.ctx.storage.put("count", count)
        return count

    async def read(self) -> list[object]:
        rows = [row["text"] for row in self.ctx.storage.sql.exec("SELECT text FROM entry ORDER BY rowid")]
        return [await self.ctx.storage.get("count"), *rows]

    async def bookmark(self) -> str:
        return await self.ctx.storage.get_current_bookmark()

    async def wake(self, milliseconds: int) -> None:
        await self.ctx.storage.set_alarm(milliseconds)

    async def alarm(self) -> None:
        await self.ctx.storage.put("woken", True)

    async def when(self) -> int | None:
        return await self.ctx.storage.get_alarm()


class Journal(Ledger):
    """The same with a database that is durable by itself."""

    storage = "sql"
    durability = "sqlite"

    enter = Ledger.enter
    read = Ledger.read
    bookmark = Ledger.bookmark
    wake = Ledger.wake
    when = Ledger.when
