"""What operators see of an object's storage: now, at a moment of its past, and between two."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from edgestead import StatefulObject
from edgestead.objects.operate import looking, operations
from edgestead.server.objects.host import Host
from tests.objects.hosts import Client, serve
from tests.objects.test_operate import ask, error_of, tell

FAR_MS = 4_000_000_000_000


class Keys(StatefulObject):
    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def delete(self, key: str) -> None:
        await self.ctx.storage.delete(key)

    async def wake(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self) -> None:
        pass


class Seats(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, name TEXT)")

    async def take(self, seat: str, name: str) -> None:
        self.ctx.storage.sql.exec("INSERT OR REPLACE INTO seats VALUES (?, ?)", seat, name)

    async def run(self, sql: str) -> None:
        self.ctx.storage.sql.exec(sql)

    async def put(self, key: str, value: Any) -> None:
        self.ctx.storage.put(key, value)


class Alone(Seats):
    durability = "sqlite"

    async def take(self, seat: str, name: str) -> None:
        await super().take(seat, name)


CLASSES = (Keys, Seats, Alone)


def run(folder: Path, script: Any) -> Any:
    return serve(folder, script, *CLASSES)


async def mark(client: Client, name: str) -> str:
    return str((await ask(client, "GET", f"objects/{name}/bookmark"))["bookmark"])


async def look(client: Client, name: str, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = await ask(client, "GET", f"objects/{name}/contents?{query}")
    return found


def values(found: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: one["value"] for one in found["keys"]}


def test_keys_are_shown_page_by_page_and_by_prefix(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for number in range(5):
            await client.call("Keys/a/put", f"n{number}", {"number": number})
        await client.call("Keys/a/put", "other é", "x" * 5_000)
        await client.call("Keys/a/wake", FAR_MS)

        first = await look(client, "Keys/a", "limit=2")
        assert (values(first), first["more"]) == ({"n0": "{'number': 0}", "n1": "{'number': 1}"}, True)
        assert (first["bookmark"], first["alarm"]) == (None, FAR_MS)
        rest = await look(client, "Keys/a", "after=n3")
        assert (list(values(rest)), rest["more"]) == (["n4", "other é"], False)
        (long,) = (await look(client, "Keys/a", f"prefix={quote('other ')}"))["keys"]
        assert long["length"] > 5_000
        assert len(long["value"]) == looking.VALUE_CHARACTERS_MAX + 1
        assert values(await look(client, "Keys/a", "prefix=n&after=n4")) == {}

    run(tmp_path, script)


@pytest.mark.parametrize("name", ["Seats/x", "Alone/x"])
def test_the_past_is_looked_at_and_nothing_changes(tmp_path: Path, name: str) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call(f"{name}/take", "1A", "ann")
        await client.call(f"{name}/take", "1B", "bob")
        before = await mark(client, name)
        await client.call(f"{name}/take", "1B", "eve")
        now = await mark(client, name)

        then = await look(client, name, f"at={before}")
        assert (then["bookmark"], then["tables"]) == (before, [{"name": "seats", "rows": 2}])
        query = {"query": "SELECT name FROM seats ORDER BY seat", "at": before}
        assert (await ask(client, "POST", f"objects/{name}/sql", query))["rows"] == [["ann"], ["bob"]]
        changes = await ask(client, "GET", f"objects/{name}/changes?since={before}")
        assert changes["keys"] == []
        (table,) = changes["tables"]
        assert (table["gone"], table["came"]) == ([["1B", "bob"]], [["1B", "eve"]])
        assert (table["columns"], table["rows_before"], table["rows_after"]) == (["seat", "name"], 2, 2)
        assert await mark(client, name) == now
        back = await ask(client, "GET", f"objects/{name}/changes?since={now}&until={before}")
        assert (back["since"], back["until"]) == (now, before)
        assert back["tables"][0]["came"] == [["1B", "bob"]]

    run(tmp_path, script)


def test_keys_that_differ_are_shown_with_both_values(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for key in ("gone", "kept", "other"):
            await client.call("Keys/a/put", key, 1)
        before = await mark(client, "Keys/a")
        await client.call("Keys/a/delete", "gone")
        await client.call("Keys/a/put", "other", [2])
        await client.call("Keys/a/put", "new", None)
        await client.call("Keys/a/wake", FAR_MS)

        changes = await ask(client, "GET", f"objects/Keys/a/changes?since={before}")

        assert [(one["key"], one["before"], one["after"]) for one in changes["keys"]] == [
            ("gone", "1", None),
            ("new", None, "None"),
            ("other", "1", "[2]"),
        ]
        assert (changes["alarm_before"], changes["alarm_after"], changes["more"]) == (None, FAR_MS, False)
        assert values(await look(client, "Keys/a", f"at={before}")) == {
            "gone": "1",
            "kept": "1",
            "other": "1",
        }
        assert values(await look(client, "Keys/a", f"at={before}&prefix=k")) == {"kept": "1"}

    run(tmp_path, script)


def test_a_table_that_came_or_changed_its_columns_is_named(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Seats/x/take", "1A", "ann")
        before = await mark(client, "Seats/x")
        await client.call("Seats/x/run", 'CREATE TABLE "odd "" name" (x)')
        await client.call("Seats/x/run", "ALTER TABLE seats ADD COLUMN paid")

        found = (await ask(client, "GET", f"objects/Seats/x/changes?since={before}"))["tables"]

        assert [(one["name"], one["rows_before"], one["rows_after"]) for one in found] == [
            ('odd " name', None, 0),
            ("seats", 1, 1),
        ]
        assert found[1]["columns"] == ["seat", "name", "paid"]

    run(tmp_path, script)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("DELETE FROM seats", "only allowed to read"),
        ("SELECT * FROM _edge_kv", "_edge_kv"),
        ("PRAGMA query_only = OFF", "not authorized"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
            "longer than",
        ),
    ],
)
def test_a_query_about_the_past_may_do_no_more_than_one_about_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, words: str
) -> None:
    monkeypatch.setattr("edgestead.objects.operate.sql.SECONDS_MAX", 0.2)

    async def script(client: Client, host: Host) -> None:
        await client.call("Seats/x/take", "1A", "ann")
        at = await mark(client, "Seats/x")
        for body in ({"query": query, "at": at}, {"query": query}):
            status, answer = await tell(client, "POST", "objects/Seats/x/sql", body)
            assert status == 422, answer
            assert words in error_of(answer)[1]

    run(tmp_path, script)


@pytest.mark.parametrize(
    ("at", "refused"),
    [("never", 400), ("1", 422), ("99999999999999", 422), (f"{1:08x}-{0:08x}-{1:016x}-{0:08x}", 422)],
)
def test_what_is_no_moment_of_the_object_is_refused(tmp_path: Path, at: str, refused: int) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "k", 1)
        for path in (f"contents?at={at}", f"changes?since={at}"):
            status, answer = await tell(client, "GET", f"objects/Keys/a/{path}")
            assert status == refused, answer
        status, answer = await tell(client, "POST", "objects/Keys/a/sql", {"query": "SELECT 1", "at": at})
        assert status == refused, answer

    run(tmp_path, script)


def test_a_past_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "LOOK_BYTES_MAX", 8_000)

    async def script(client: Client, host: Host) -> None:
        await client.call("Seats/x/take", "1A", "ann")
        at = await mark(client, "Seats/x")
        await client.call("Seats/x/put", "k", "x" * 9_000)
        status, answer = await tell(client, "GET", f"objects/Seats/x/contents?at={at}")
        assert status == 422, answer
        assert "8000" in error_of(answer)[1]
        assert (await look(client, "Seats/x"))["tables"] == [{"name": "seats", "rows": 1}]

    run(tmp_path, script)


def test_a_past_that_was_much_larger_is_not_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "RECALLED_BYTES_MAX", 8_000)

    async def script(client: Client, host: Host) -> None:
        await client.call("Seats/x/take", "1A", "ann")
        at = await mark(client, "Seats/x")
        await client.call("Seats/x/put", "k", "x")
        status, answer = await tell(client, "GET", f"objects/Seats/x/contents?at={at}")
        assert status == 422, answer
        assert "up to 8000 are read" in error_of(answer)[1]

    run(tmp_path, script)


def test_classes_are_listed_loaded_or_not(tmp_path: Path) -> None:
    async def fill(client: Client, host: Host) -> None:
        await client.call("Keys/a/put", "k", 1)
        await client.call("Seats/x/take", "1A", "ann")

    async def script(client: Client, host: Host) -> None:
        found = {one["name"]: one for one in await ask(client, "GET", "classes")}
        assert list(found) == ["Keys", "Seats"]
        assert (found["Keys"]["storage"], found["Keys"]["alarms"]) == ("kv", True)
        assert (found["Seats"]["storage"], found["Seats"]["durability"]) == (None, None)

    run(tmp_path, fill)
    serve(tmp_path, script, Keys)
