"""Classes that the nodes of a test's cluster run."""

import asyncio
import os

from edgestead import Response, StatefulObject
from edgestead.cluster import slots

if not __name__.startswith("tests."):  # in a server, and not where a test reads a number of this file
    slots.GIVE_MS, slots.GIVING_MAX = 1, 64  # type: ignore[misc]  # 32 a second is for large objects

CHUNK = b"edgestead" * 10_000
CHUNKS = 400  # more than what all sockets on the way hold


async def chunks():
    for _ in range(CHUNKS):
        yield CHUNK


class Numbers(StatefulObject):
    """A list of numbers, each appended once."""

    async def append(self, number):
        numbers = await self.ctx.storage.get("numbers", default=[])
        await self.ctx.storage.put("numbers", [*numbers, number])

    async def read(self):
        return await self.ctx.storage.get("numbers", default=[])

    async def where(self):
        return os.getpid()

    async def copy_from(self, name):
        """What another object has, which may live on another machine."""
        await self.ctx.storage.put("numbers", await self.env.Numbers[name].read())

    is_waiting = False

    async def wait(self):
        """For longer than any test."""
        self.is_waiting = True
        await asyncio.sleep(3_600)

    async def waits(self):
        return self.is_waiting

    async def fetch(self, request):
        if request.path.endswith("/large"):
            return Response(chunks())
        return Response(f"{self.ctx.id.name} heard {await request.text()}")


class Bell(StatefulObject):
    """Rings at a time, and counts how often."""

    async def ring_at(self, ms):
        if not await self.rung():
            await self.ctx.storage.set_alarm(ms)

    async def alarm(self):
        await self.ctx.storage.put("rung", await self.rung() + 1)

    async def rung(self):
        return await self.ctx.storage.get("rung", default=0)


LATER_MS = 4_000_000_000_000


class Till(StatefulObject):
    """Sales in a table, their sum as a key, and an alarm in the far future."""

    storage = "sql"

    async def on_start(self):
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS sales (amount INTEGER)")

    async def sell(self, amount):
        self.ctx.storage.sql.exec("INSERT INTO sales VALUES (?)", amount)
        await self.ctx.storage.put("sum", await self.ctx.storage.get("sum", default=0) + amount)
        if amount != 5:
            await self.ctx.storage.set_alarm(LATER_MS)
        else:
            await self.ctx.storage.delete_alarm()

    async def look(self):
        count = self.ctx.storage.sql.exec("SELECT count(*) AS count FROM sales").one()["count"]
        return await self.ctx.storage.get("sum", default=0), count, await self.ctx.storage.get_alarm()

    async def bookmark(self):
        return await self.ctx.storage.get_current_bookmark()

    async def go_back(self, bookmark):
        await self.ctx.storage.on_next_session_restore_bookmark(bookmark)
        self.ctx.abort()

    async def alarm(self): ...


class Pinned(StatefulObject):
    """A number that lives in one region, and an alarm."""

    region = "fra"

    async def put(self, number):
        await self.ctx.storage.put("number", number)
        await self.ctx.storage.set_alarm(0)
        return os.getpid()

    async def get(self):
        return await self.ctx.storage.get("number"), await self.ctx.storage.get("rung", default=False)

    async def alarm(self):
        await self.ctx.storage.put("rung", True)
