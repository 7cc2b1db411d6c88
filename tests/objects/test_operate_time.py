"""Operators' routes about the past and the alarm of an object."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edgestead import StatefulObject
from edgestead.objects.errors import ObjectReset
from edgestead.server.objects.host import Host
from tests.objects.hosts import Client, serve
from tests.objects.test_operate import ask, error_of, tell

FAR_MS = 4_000_000_000_000


class Keys(StatefulObject):
    """Of the key-value backend: its own code cannot name a bookmark."""

    rung: ClassVar[list[str]] = []

    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def get(self, key: str) -> Any:
        return await self.ctx.storage.get(key)

    async def wait(self) -> None:
        await asyncio.sleep(60)

    async def roll_back(self) -> None:
        async with self.ctx.storage.transaction() as txn:
            await asyncio.sleep(0.2)
            txn.rollback()

    async def wake(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self) -> None:
        Keys.rung.append(self.ctx.id.name or "")
        if await self.ctx.storage.get("fails"):
            raise ValueError("on purpose")


class Table(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (value)")

    async def put(self, key: str, value: Any) -> None:
        self.ctx.storage.sql.exec("DELETE FROM t")
        self.ctx.storage.sql.exec("INSERT INTO t VALUES (?)", value)

    async def get(self, key: str) -> Any:
        rows = self.ctx.storage.sql.exec("SELECT value FROM t").to_list()
        return rows[0]["value"] if rows else None


class Alone(Table):
    durability = "sqlite"

    async def put(self, key: str, value: Any) -> None:
        await super().put(key, value)

    async def get(self, key: str) -> Any:
        return await super().get(key)


CLASSES = (Keys, Table, Alone)


@pytest.fixture(autouse=True)
def silent() -> None:
    Keys.rung = []


def run(folder: Path, script: Any, *classes: type[StatefulObject]) -> Any:
    return serve(folder, script, *(classes or CLASSES))


@pytest.mark.parametrize("name", ["Keys/a", "Table/a", "Alone/a"])
@pytest.mark.parametrize("loaded", [True, False])
def test_every_object_can_be_taken_back_and_forth(tmp_path: Path, name: str, loaded: bool) -> None:
    marks: list[str] = []

    async def before(client: Client, host: Host) -> None:
        for value in (1, 2, 3):
            await client.call(f"{name}/put", "key", value)
            marks.append((await ask(client, "GET", f"objects/{name}/bookmark"))["bookmark"])

    async def change(client: Client, host: Host) -> None:
        path = f"objects/{name}"
        undo = (await ask(client, "POST", f"{path}/restore", {"bookmark": marks[0]}))["undo"]
        marks.append(undo)

    async def look(client: Client, host: Host) -> None:
        path = f"objects/{name}"
        assert await client.call(f"{name}/get", "key") == 1
        moments = await ask(client, "GET", f"{path}/timeline")
        assert [moment["event"] for moment in moments].count("restore") == 1, moments
        assert set(marks[:3]) <= {moment["bookmark"] for moment in moments if moment["pinned"]}
        await ask(client, "POST", f"{path}/restore", {"bookmark": marks[3]})
        assert await client.call(f"{name}/get", "key") == 3
        await ask(client, "POST", f"{path}/undo")
        assert await client.call(f"{name}/get", "key") == 1
        assert (await ask(client, "POST", f"{path}/verify"))["problems"] == []

    assert marks == sorted(marks)
    run(tmp_path, before)
    other = next(kind for kind in CLASSES if not name.startswith(kind.__name__))
    run(tmp_path, change, *(CLASSES if loaded else (other,)))
    run(tmp_path, look)


def test_a_time_says_where_to_go_back_to(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Table/a/put", "key", 1)
        between_ms = int(time.time() * 1_000) + 1
        while time.time() * 1_000 <= between_ms + 1:  # noqa: ASYNC110 - the wall clock has no event
            await asyncio.sleep(0.001)
        await client.call("Table/a/put", "key", 2)
        text = datetime.fromtimestamp(between_ms / 1_000, UTC).isoformat()

        mark = (await ask(client, "GET", f"objects/Table/a/bookmark?time={between_ms}"))["bookmark"]
        moments = await ask(client, "GET", f"objects/Table/a/timeline?until={between_ms}&limit=1")
        assert [moment["bookmark"] for moment in moments] == [mark]
        assert await ask(client, "GET", f"objects/Table/a/timeline?since={FAR_MS}") == []
        undo = (await ask(client, "POST", "objects/Table/a/restore", {"time": text}))["undo"]
        assert await client.call("Table/a/get", "key") == 1
        await ask(client, "POST", "objects/Table/a/restore", {"bookmark": undo})
        assert await client.call("Table/a/get", "key") == 2
        await ask(client, "POST", "objects/Table/a/restore", {"time": between_ms})
        assert await client.call("Table/a/get", "key") == 1

    run(tmp_path, script)


def test_calls_that_run_end_with_a_reset(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "key", 1)
        mark = (await ask(client, "GET", "objects/Keys/a/bookmark"))["bookmark"]
        waiting = asyncio.get_running_loop().create_task(host.node.env.Keys["a"].wait())
        await asyncio.sleep(0)
        await ask(client, "POST", "objects/Keys/a/restore", {"bookmark": mark})
        with pytest.raises(ObjectReset, match="taken back") as caught:
            await waiting
        assert caught.value.reset

    run(tmp_path, script)


def test_an_alarm_that_was_set_is_not_part_of_a_transaction_that_runs(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "key", 1)
        running = asyncio.get_running_loop().create_task(host.node.env.Keys["a"].roll_back())
        await asyncio.sleep(0.05)
        await ask(client, "PUT", "objects/Keys/a/alarm", {"time": FAR_MS})
        await running
        assert (await ask(client, "GET", "objects/Keys/a/alarm"))["time"] == FAR_MS

    run(tmp_path, script)


def test_a_deletion_can_be_taken_back(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "key", "value")
        await client.call("Keys/a/wake", FAR_MS)
        mark = (await ask(client, "GET", "objects/Keys/a/bookmark"))["bookmark"]
        await ask(client, "DELETE", "objects/Keys/a")
        assert await client.call("Keys/a/get", "key") is None
        await ask(client, "POST", "objects/Keys/a/restore", {"bookmark": mark})
        assert await client.call("Keys/a/get", "key") == "value"
        assert (await ask(client, "GET", "objects/Keys/a/alarm"))["time"] == FAR_MS

    run(tmp_path, script)


OTHER = "00000001-00000000-0000000000000001-00000000"
REFUSED: list[tuple[str, str, Any, int]] = [
    ("POST", "restore", {}, 400),
    ("POST", "restore", {"bookmark": OTHER, "time": 1}, 400),
    ("POST", "restore", {"bookmark": 5}, 400),
    ("POST", "restore", {"to": OTHER}, 400),
    ("POST", "restore", {"bookmark": OTHER}, 422),
    ("POST", "restore", {"bookmark": "x"}, 422),
    ("POST", "restore", {"time": 1}, 422),
    ("POST", "restore", {"time": FAR_MS}, 422),
    ("POST", "restore", {"time": "yesterday"}, 400),
    ("POST", "restore", {"time": "2026-11-21T10:00:00"}, 400),
    ("POST", "restore", {"time": 10**17}, 400),
    ("POST", "undo", None, 422),
    ("GET", "bookmark?time=x", None, 400),
    ("GET", "bookmark?time=1", None, 422),
    ("GET", f"bookmark?time={FAR_MS}", None, 422),
    ("GET", "timeline?since=x", None, 400),
    ("GET", "timeline?limit=x", None, 400),
    ("PUT", "alarm", {}, 400),
    ("PUT", "alarm", {"time": None}, 400),
    ("PUT", "alarm", {"time": 10**17}, 400),
    ("DELETE", "timeline", None, 405),
]


def test_what_cannot_be_done_changes_nothing(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "key", 1)
        for method, path, body, status in REFUSED:
            answered, answer = await tell(client, method, f"objects/Keys/a/{path}", body)
            wrong = 9207 if method in ("POST", "PUT") else 1001
            code = {400: wrong, 405: 10473, 422: 10477}[status]
            assert (answered, error_of(answer)[0]) == (status, code), (method, path, body)
        for method, path in (("GET", "bookmark"), ("GET", "timeline"), ("GET", "alarm"), ("POST", "undo")):
            assert (await tell(client, method, f"objects/Keys/missing/{path}"))[0] == 404
        assert await client.call("Keys/a/get", "key") == 1
        assert (await ask(client, "GET", "objects/Keys/a/alarm"))["time"] is None

    run(tmp_path, script)


def test_an_alarm_of_a_class_without_a_handler_stays_as_it_is(tmp_path: Path) -> None:
    async def before(client: Client, host: Host) -> None:
        await client.call("Keys/a/wake", FAR_MS)

    async def after(client: Client, host: Host) -> None:
        status, answer = await tell(client, "POST", "objects/Keys/a/alarm")
        assert (status, "no class Keys" in error_of(answer)[1]) == (422, True)
        assert (await ask(client, "GET", "objects/Keys/a/alarm"))["time"] == FAR_MS

    run(tmp_path, before)
    run(tmp_path, after, Table)


def test_an_alarm_is_shown_set_run_and_deleted(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "key", 1)
        path = "objects/Keys/a/alarm"
        assert await ask(client, "GET", path) == {"time": None, "retries": 0, "running": False}
        assert await ask(client, "POST", path) == {"ran": False}
        assert (await ask(client, "PUT", path, {"time": FAR_MS}))["time"] == FAR_MS
        assert (await ask(client, "PUT", path, {"time": "2090-01-01T00:00:00Z"}))["time"] == 3_786_912_000_000
        assert (await ask(client, "DELETE", path))["time"] is None
        await ask(client, "PUT", path, {"time": FAR_MS})
        assert await ask(client, "POST", path) == {"ran": True}
        assert Keys.rung == ["a"]
        assert (await ask(client, "GET", path))["time"] is None

        await client.call("Keys/a/put", "fails", True)
        await ask(client, "PUT", path, {"time": FAR_MS})
        assert await ask(client, "POST", path) == {"ran": True}
        state = await ask(client, "GET", path)
        assert (state["retries"], state["time"] is not None) == (1, True)

    run(tmp_path, script)
