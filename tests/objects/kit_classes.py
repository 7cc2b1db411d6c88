"""What the tests of the test kit run."""

import asyncio
import datetime as datetime_module
import time
from datetime import UTC, date, datetime, timedelta

from edgestead import Response, StatefulObject


class Own(Exception):
    """Nothing that the value codec carries."""


class Counter(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.calls = 0
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS added (amount INTEGER)")

    async def add(self, by: int = 1) -> int:
        self.calls += 1
        total: int = await self.ctx.storage.get("total", default=0) + by
        await self.ctx.storage.put("total", total)
        self.ctx.storage.sql.exec("INSERT INTO added VALUES (?)", by)
        return total

    async def add_elsewhere(self, name: str) -> int:
        return int(await self.env.Counter[name].add())

    async def wait(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    async def wait_for_ever(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def poll_for_ever(self) -> None:
        while True:  # noqa: ASYNC110 - what users write
            await asyncio.sleep(60)

    async def refuse_to_end(self) -> None:
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                self.ctx.storage.put("cancelled", True)

    async def fail(self, own: bool = False) -> None:
        raise Own("words") if own else ValueError("words")

    async def abort(self) -> None:
        self.ctx.abort("enough")

    async def ask(self, url: str) -> str:
        return await (await self.ctx.fetch(url)).text()

    async def fetch(self, request) -> Response:
        body = await request.text()

        async def parts():
            yield f"{request.method} {request.path}?{request.query_string} ".encode()
            yield body.encode()

        return Response(parts(), 201, {"x-seen": request.headers.get("x-sent", "")})


class Plain(StatefulObject):
    async def moments(self) -> list[datetime]:
        return [
            datetime.now(UTC),
            datetime_module.datetime.now(UTC),
            datetime.fromtimestamp(time.time(), UTC),
            datetime.fromtimestamp(time.time_ns() / 1e9, UTC),
        ]

    async def is_still_itself(self) -> bool:
        moment = datetime(2026, 5, 1, tzinfo=UTC)
        return (
            isinstance(moment, datetime)
            and isinstance(date(2026, 5, 1), date)
            and not isinstance("x", datetime)
            and type(moment + timedelta(days=1)) is type(moment)
            and date.today() == datetime.now(UTC).date()
            and datetime.strptime("2026", "%Y").year == 2026
        )

    async def elapsed(self) -> float:
        before = time.monotonic()
        await asyncio.sleep(90)
        return time.monotonic() - before


class Timer(StatefulObject):
    async def set(self, seconds: float, fails: int = 0) -> None:
        await self.ctx.storage.put("fails", fails)
        await self.ctx.storage.set_alarm(int((time.time() + seconds) * 1_000))

    async def alarm(self) -> None:
        left: int = await self.ctx.storage.get("fails")
        await self.ctx.storage.put("fails", left - 1)
        if left > 0:
            raise ValueError("not yet")
        await self.ctx.storage.put("rang", time.time())


class Table(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")

    async def add(self, inside: bool) -> None:
        query = "INSERT INTO t VALUES (cast(x'ff' AS text)) RETURNING a"
        if inside:
            with self.ctx.storage.transaction_sync():
                self.ctx.storage.sql.exec(query)
        else:
            self.ctx.storage.sql.exec(query)

    async def read(self) -> None:
        self.ctx.storage.sql.exec("SELECT cast(x'ff' AS text)").next()

    async def count(self) -> int:
        return int(self.ctx.storage.sql.exec("SELECT count(*) AS n FROM t").one()["n"])


class Cached(StatefulObject):
    async def remember(self, key: str, value: str, ttl: int | None = None) -> None:
        await self.env.CACHE.put(key, value, expiration_ttl=ttl, metadata={"by": self.ctx.id.name})

    async def recall(self, key: str) -> str | None:
        found: str | None = await self.env.CACHE.get(key)
        return found

    async def keys(self, limit: int) -> list[list[str]]:
        pages, cursor = [], ""
        while True:
            page = await self.env.CACHE.list(limit=limit, cursor=cursor)
            pages.append([key["name"] for key in page["keys"]])
            if page["list_complete"]:
                return pages
            cursor = page["cursor"]


CLASSES: list[type[StatefulObject]] = [Cached, Counter, Plain, Table, Timer]
