"""Operators' routes: what they show and do to an object, and what they never do."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import pytest

from edgestead import StatefulObject
from edgestead.http1 import messages
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.access import InvalidAccessToken
from edgestead.objects import ids
from edgestead.objects.operate import checks, copies, verifying
from edgestead.objects.operate import sql as operate_sql
from edgestead.rest.routing import OBJECTS, Router, rows_of
from edgestead.server.objects.host import Host
from edgestead.sqlite.objectlog.local import LocalLease
from edgestead.store.objectlog import NoSpace
from tests.objects.hosts import Client, serve
from tests.objects.logs import entries


class Ledger(StatefulObject):
    storage = "sql"

    async def on_start(self) -> None:
        sql = self.ctx.storage.sql
        sql.exec("CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY, text TEXT UNIQUE, data)")
        sql.exec("CREATE INDEX IF NOT EXISTS by_data ON lines (data)")
        self.calls = 0

    async def add(self, text: str) -> int:
        self.calls += 1
        self.ctx.storage.put(f"key-{text}", {"text": text})
        return int(
            self.ctx.storage.sql.exec("INSERT INTO lines (text) VALUES (?) RETURNING id", text).one()["id"]
        )

    async def set_pragma(self) -> int:
        self.ctx.storage.sql.exec("PRAGMA foreign_keys = OFF")
        self.ctx.storage.sql.exec("INSERT INTO lines (text) VALUES ('cached')")
        return int(self.ctx.storage.sql.exec("PRAGMA foreign_keys").one()["foreign_keys"])

    async def foreign_keys(self) -> int:
        return int(self.ctx.storage.sql.exec("PRAGMA foreign_keys").one()["foreign_keys"])

    async def count(self) -> int:
        return int(self.ctx.storage.sql.exec("SELECT count(*) AS n FROM lines").one()["n"])

    async def made(self) -> int:
        return self.calls

    async def wake(self, time_ms: int) -> None:
        await self.ctx.storage.set_alarm(time_ms)

    async def alarm(self) -> None:
        pass


class Plain(StatefulObject):
    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def get(self, key: str) -> Any:
        return await self.ctx.storage.get(key)


class Alone(StatefulObject):
    durability = "sqlite"

    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)


class Failing(StatefulObject):
    async def on_start(self) -> None:
        if await self.ctx.storage.get("broken"):
            raise ValueError("a new version cannot read this")

    async def put(self, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)


CLASSES = (Ledger, Plain, Alone, Failing)
FAR_MS = 4_000_000_000_000
Script = Callable[[Client, Host], Coroutine[Any, Any, Any]]


def run(folder: Path, script: Script, *classes: type[StatefulObject], **options: Any) -> Any:
    return serve(folder, script, *(classes or CLASSES), **options)


async def ask(client: Client, method: str, path: str, body: Any = None) -> Any:
    """The result of a request that succeeds."""
    status, answer = await tell(client, method, path, body)
    assert status == 200, answer
    return answer["result"]


async def tell(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return await client.ask(method, f"/operate/{path}", raw)


def error_of(answer: Any) -> tuple[int, str]:
    return answer["errors"][0]["code"], answer["errors"][0]["message"]


# what there is


def test_objects_are_listed_page_by_page_in_order(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for name in ("a", "b", "c/d é"):
            await client.call(f"Plain/{quote(name, safe='')}/put", "k", 1)
        await client.call("Ledger/x/add", "one")
        await client.call("Ledger/x/wake", FAR_MS)

        found, cursor = [], ""
        while True:
            status, answer = await tell(client, "GET", f"objects?limit=3&cursor={cursor}")
            assert status == 200
            assert answer["result_info"]["count"] == len(answer["result"])
            found += answer["result"]
            if not (cursor := answer["result_info"]["cursor"]):
                break

        assert [(item["class"], item["name"]) for item in found[:1]] == [("Ledger", "x")]
        assert {item["name"] for item in found[1:]} == {"a", "b", "c/d é"}
        assert [item["id"] for item in found[1:]] == sorted(item["id"] for item in found[1:])
        assert (found[0]["alarm"], found[0]["in_memory"], found[1]["alarm"]) == (FAR_MS, True, None)
        plain = await ask(client, "GET", "objects?class=Plain&limit=2")
        assert [item["class"] for item in plain] == ["Plain", "Plain"]
        assert await ask(client, "GET", "objects?class=Missing") == []

    run(tmp_path, script)


def test_facts_of_an_object_by_name_and_by_id(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        await client.call("Plain/p/put", "k", 1)
        await client.call("Alone/o/put", "k", 1)

        facts = await ask(client, "GET", "objects/Ledger/x")
        assert facts == await ask(client, "GET", f"ids/Ledger/{facts['id']}")
        assert facts["id"] == ids.from_name("Ledger", "x").id
        assert (facts["storage"], facts["durability"], facts["tables"]) == ("sql", "log", ["lines"])
        assert (facts["position"] > 0, facts["database_bytes"] >= 4_096, facts["calls"]) == (True, True, 0)
        plain = await ask(client, "GET", "objects/Plain/p")
        assert (plain["storage"], plain["database_bytes"], plain["unmoved"]) == ("kv", 0, plain["position"])
        assert (await ask(client, "GET", "objects/Alone/o"))["durability"] == "sqlite"

    run(tmp_path, script)


def test_objects_of_a_class_that_is_not_loaded_are_there_too(tmp_path: Path) -> None:
    async def before(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        await client.call("Alone/o/put", "k", 1)

    async def after(client: Client, host: Host) -> None:
        facts = await ask(client, "GET", "objects/Ledger/x")
        assert (facts["storage"], facts["durability"]) == (None, "log")
        assert (await ask(client, "GET", "objects/Alone/o"))["durability"] == "sqlite"
        rows = await ask(client, "POST", "objects/Ledger/x/sql", {"query": "SELECT text FROM lines"})
        assert rows["rows"] == [["one"]]
        assert (await ask(client, "POST", "objects/Alone/o/verify"))["problems"] == []

    run(tmp_path, before)
    run(tmp_path, after, Plain)


WRONG = [
    ("GET", "objects/Plain/missing", 404, 10470),
    ("DELETE", "objects/Missing/missing", 404, 10470),
    ("GET", "nothing", 404, 10460),
    ("GET", "objects/Plain", 404, 10460),
    ("GET", "objects/Plain/p/missing", 404, 10460),
    ("GET", "objects/Plain/p/export/more", 404, 10460),
    ("GET", "objects//p", 404, 10460),
    ("POST", "objects", 405, 10473),
    ("PUT", "objects/Plain/p", 405, 10473),
    ("GET", "objects/Plain/p/sql", 405, 10473),
    ("GET", "objects?page=2", 400, 1001),
    ("GET", "objects?limit=many", 400, 1001),
    ("GET", "objects?cursor=x", 400, 1001),
    ("GET", "objects/Plain/p?limit=1", 400, 1001),
    ("GET", "objects/Plain/%FF", 400, 7002),
    ("GET", f"objects/Plain/{'n' * 1_025}", 400, 10471),
    ("GET", "ids/Plain/p", 400, 10471),
    ("GET", f"ids/Plain/{ids.from_name('Ledger', 'p').id}", 400, 10471),
]


def test_what_is_asked_wrongly_is_refused_with_words(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Plain/p/put", "k", 1)
        for method, path, status, code in WRONG:
            answered, answer = await tell(client, method, path)
            assert (answered, error_of(answer)[0]) == (status, code), path

    run(tmp_path, script)


def test_asking_for_an_object_does_not_make_it(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/sql"), ("GET", "/export")):
            assert (await tell(client, method, f"objects/Plain/p{path}", {"query": "SELECT 1"}))[0] == 404
        assert await ask(client, "GET", "objects") == []

    run(tmp_path, script)


# SQL


READS: list[tuple[str, list[Any], list[Any] | None]] = [
    ("SELECT text, id FROM lines ORDER BY id", [], [["one", 1], ["two", 2]]),
    ("SELECT text FROM lines WHERE id > ?", [5], []),
    ("SELECT ?, ?, ?, ?", [None, True, 1.5, "é"], [[None, 1, 1.5, "é"]]),
    (
        "SELECT ?, x'00ff', 9e999",
        [{"base64": "AP8="}],
        [[*[{"base64": "AP8="}] * 2, {"real": "Infinity"}]],
    ),
    ("SELECT 1; SELECT 2", [], [[2]]),
    ("WITH n(i) AS (VALUES (1), (2)) SELECT sum(i) FROM n", [], [[3]]),
    ("PRAGMA table_info(lines)", [], None),
    ("EXPLAIN QUERY PLAN SELECT * FROM lines", [], None),
]


def test_a_query_reads(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for text in ("one", "two"):
            await client.call("Ledger/x/add", text)
        for query, bindings, rows in READS:
            body = {"query": query, "bindings": bindings}
            answer = await ask(client, "POST", "objects/Ledger/x/sql", body)
            assert rows is None or answer["rows"] == rows, query
            assert (answer["rows_written"], answer["truncated"]) == (0, False)
            assert answer["columns"]

    run(tmp_path, script)


REFUSED_READS = [
    ("INSERT INTO lines (text) VALUES ('x')", "only allowed to read: SQLITE_READONLY"),
    ("INSERT INTO lines (text) VALUES ('cached')", "only allowed to read"),  # the object has prepared it
    ("WITH n AS (SELECT 1) DELETE FROM lines", "only allowed to read"),
    ("SELECT 1; DROP TABLE lines", "only allowed to read"),
    ("CREATE TABLE t (a)", "only allowed to read"),
    ("PRAGMA foreign_keys = OFF", "not authorized: SQLITE_AUTH"),
    ("PRAGMA query_only = OFF", "not authorized"),
    ("PRAGMA journal_mode = DELETE", "not authorized"),
    ("SELECT * FROM _edge_kv", "access to _edge_kv.key is prohibited"),
    ("ATTACH '/etc/passwd' AS a", "not authorized"),
    ("BEGIN", "storage.transaction"),
    ("SELECT missing FROM lines", "no such column"),
    ("SELECT ?", "Wrong number of parameter bindings"),
    ("", "did not contain a statement"),
    ("SELECT cast(x'ff' AS text)", "not UTF-8"),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", "ran longer"),
]


def test_a_query_that_may_only_read_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operate_sql, "SECONDS_MAX", 0.2)

    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        assert await client.call("Ledger/x/set_pragma") in (0, 1)
        keys = await client.call("Ledger/x/foreign_keys")
        position = (await ask(client, "GET", "objects/Ledger/x"))["position"]
        for query, words in REFUSED_READS:
            status, answer = await tell(client, "POST", "objects/Ledger/x/sql", {"query": query})
            assert (status, error_of(answer)[0]) == (422, 10472), query
            assert words in error_of(answer)[1], query
        assert await client.call("Ledger/x/foreign_keys") == keys
        assert await client.call("Ledger/x/count") == 2
        assert (await ask(client, "GET", "objects/Ledger/x"))["position"] == position
        assert await client.call("Ledger/x/add", "it still writes") == 3

    run(tmp_path, script)


def test_a_query_that_writes_is_all_or_nothing(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        path = "objects/Ledger/x/sql-write"
        body = {"query": "UPDATE lines SET text = ? WHERE id = 1 RETURNING text", "bindings": ["uno"]}
        assert await ask(client, "POST", path, body) == {
            "columns": ["text"],
            "rows": [["uno"]],
            "rows_written": 1,
            "truncated": False,
        }
        for query in (
            "DELETE FROM lines; INSERT INTO lines (text) VALUES ('a'), ('a')",
            "DELETE FROM lines; PRAGMA foreign_keys = OFF",
            "DELETE FROM lines; DELETE FROM _edge_kv",
            "UPDATE lines SET text = cast(x'ff' AS text) RETURNING text",
        ):
            assert (await tell(client, "POST", path, {"query": query}))[0] == 422
        assert await client.call("Ledger/x/count") == 1
        assert await client.call("Ledger/x/made") == 1

    run(tmp_path, script)
    run(tmp_path, still_there)


async def still_there(client: Client, host: Host) -> None:
    rows = await ask(client, "POST", "objects/Ledger/x/sql", {"query": "SELECT text FROM lines"})
    assert rows["rows"] == [["uno"]]


def test_a_long_answer_says_that_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operate_sql, "ROWS_MAX", 10)
    monkeypatch.setattr(operate_sql, "ROWS_BYTES_MAX", 1_000)

    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 11) SELECT i"
        for query, count in ((f"{numbers} FROM n", 10), (f"{numbers}, hex(zeroblob(150)) FROM n", 3)):
            answer = await ask(client, "POST", "objects/Ledger/x/sql", {"query": query})
            assert (len(answer["rows"]), answer["truncated"]) == (count, True)

    run(tmp_path, script)


NO_QUERIES = [
    b"",
    b"[]",
    b"{}",
    b'{"query": 5}',
    b'{"query": "SELECT 1", "write": true}',
    b'{"query": "SELECT 1", "bindings": {}}',
    b'{"query": "SELECT 1", "query": "DELETE FROM ledger"}',
    b'{"query": "SELECT 1", "bindings": [{"a": 1, "b": 2, "a": 3}]}',
]


def test_a_body_that_is_no_query_is_refused(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        for body in NO_QUERIES:
            status, answer = await tell(client, "POST", "objects/Ledger/x/sql", body)
            code = 9207 if body else 1198
            assert (status, error_of(answer)[0]) == (400, code), body

    run(tmp_path, script)


# copies and checks


async def export(client: Client, path: str, to: Path) -> sqlite3.Connection:
    status, raw = await client.ask("GET", f"/operate/{path}/export")
    assert status == 200, raw
    to.write_bytes(raw)  # noqa: ASYNC240
    return sqlite3.connect(to)


@pytest.mark.parametrize("live", [True, False])
def test_an_export_is_a_plain_file_with_everything_that_is_committed(tmp_path: Path, live: bool) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        await client.call("Alone/o/put", "k", 1)
        if not live:
            host.node.evict(("Ledger", ids.from_name("Ledger", "x").id))
        database = await export(client, "objects/Ledger/x", tmp_path / "copy.sqlite")
        assert database.execute("SELECT text FROM lines").fetchall() == [("one",)]
        assert database.execute("SELECT key FROM _edge_kv").fetchall() == [("key-one",)]
        assert database.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
        database.close()
        assert list((tmp_path / "spool").iterdir()) == []
        (await export(client, "objects/Alone/o", tmp_path / "alone.sqlite")).close()
        assert await client.call("Ledger/x/add", "two") == 2

    run(tmp_path, script)


def test_an_export_is_one_moment_while_the_object_goes_on_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES_AT_ONCE", 1)
    query = (
        "INSERT INTO lines (text, data) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200)"
        " SELECT 'row ' || i, zeroblob(3000) FROM n"
    )

    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        await ask(client, "POST", "objects/Ledger/x/sql-write", {"query": query})
        stop = asyncio.Event()

        async def go_on() -> int:
            stub, number = host.node.env.Ledger["x"], 0
            while not stop.is_set():
                number += 1
                await stub.add(f"more {number}")
            return number

        writing = asyncio.get_running_loop().create_task(go_on())
        database = await export(client, "objects/Ledger/x", tmp_path / "copy.sqlite")
        stop.set()
        written = await writing
        lines = database.execute("SELECT count(*) FROM lines WHERE text LIKE 'more%'").fetchone()[0]
        keys = database.execute("SELECT count(*) FROM _edge_kv WHERE key LIKE 'key-more%'").fetchone()[0]
        assert lines == keys
        assert 0 < lines <= written
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        database.close()

    run(tmp_path, script)


def test_a_copy_is_made_on_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Plain/p/put", "k", 1)
        append = LocalLease.append

        def full(*arguments: Any, upkeep: bool = False) -> Any:
            if not upkeep:
                raise NoSpace("no space left for the object log")
            return append(*arguments, upkeep=True)

        monkeypatch.setattr(LocalLease, "append", full)
        (await export(client, "objects/Plain/p", tmp_path / "copy.sqlite")).close()
        assert (await ask(client, "POST", "objects/Plain/p/verify"))["keys"] == 1
        monkeypatch.undo()
        assert await client.call("Plain/p/get", "k") == 1

    run(tmp_path, script)


@pytest.mark.parametrize(("method", "operation"), [("GET", "export"), ("POST", "verify")])
def test_without_room_for_a_copy_none_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, operation: str
) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        size = (await ask(client, "GET", "objects/Ledger/x"))["database_bytes"]
        free = shutil.disk_usage(tmp_path)
        for room, status in ((size - 1, 422), (size, 200)):
            left = free._replace(free=copies.ROOM_LEFT_BYTES + room)
            with monkeypatch.context() as patch:
                patch.setattr(shutil, "disk_usage", lambda folder, left=left: left)
                answered, raw = await client.ask(method, f"/operate/objects/Ledger/x/{operation}")
            assert answered == status
            assert status == 200 or "no room for a copy" in raw["errors"][0]["message"]
        assert list((tmp_path / "spool").iterdir()) == []
        assert await client.call("Ledger/x/add", "two") == 2

    run(tmp_path, script)


def test_a_backup_that_nobody_takes_away_goes_with_the_next_one(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        for _ in range(3):
            status, answer = await client.ask("POST", "/operate/backup")
            assert status == 200
            assert list(map(str, (tmp_path / "spool").iterdir())) == answer["result"]

    run(tmp_path, script)


def test_a_copy_that_meets_a_full_disk_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    async def script(client: Client, host: Host) -> None:
        await client.call("Ledger/x/add", "one")
        monkeypatch.setattr(copies, "_copy_pages", full)
        status, answer = await tell(client, "GET", "objects/Ledger/x/export")
        assert (status, error_of(answer)[0]) == (422, 10472)
        assert "no room left" in error_of(answer)[1]
        assert list((tmp_path / "spool").iterdir()) == []
        assert await client.call("Ledger/x/add", "two") == 2

    run(tmp_path, script)


def test_a_sound_object_is_found_sound(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for number in range(20):
            await client.call("Ledger/x/add", f"{number}")
        verdict = await ask(client, "POST", "objects/Ledger/x/verify")
        assert verdict["problems"] == []
        assert (verdict["keys"], verdict["pages"] > 2) == (20, True)

    run(tmp_path, script)


def test_a_value_that_its_table_does_not_take_is_found_in_a_copy_and_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    database = apsw.Connection(str(path))
    database.execute("PRAGMA ignore_check_constraints = ON; CREATE TABLE t (a CHECK (a > 0))")
    database.execute("INSERT INTO t VALUES (-1)").fetchall()
    database.close()
    found = ["CHECK constraint failed in t"]

    assert checks.check_database(str(path)).problems == found
    assert checks.check_image(checks.Image(path.read_bytes(), {})).problems == found


def test_all_are_looked_at_in_pages_without_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_copy(*_: Any) -> None:
        raise AssertionError("a small object is copied")

    async def script(client: Client, host: Host) -> None:
        for number in range(7):
            await client.call(f"Ledger/x{number}/add", "one")
            await client.call(f"Plain/p{number}/put", "k", number)
        for ref in host.node.live()[::2]:  # some are in memory, some are not
            host.node.evict((ref.class_name, ref.id))
        for number in range(200):
            await client.call("Ledger/x0/add", f"{number:0500}")
        monkeypatch.setattr(verifying, "IMAGES_BYTES_MAX", 20_000)
        with monkeypatch.context() as patch:
            patch.setattr(copies, "copy", no_copy)
            found, cursor = [], ""
            while page := (await tell(client, "POST", f"verify?limit=5&class=Plain&cursor={cursor}"))[1]:
                assert page["result_info"]["log_problems"] == []
                found += page["result"]
                if not (cursor := quote(page["result_info"]["cursor"], safe="")):
                    break
        assert [one["name"] for one in found] == [one.name for one in by_id(host, "Plain")]
        assert all((one["keys"], one["problems"]) == (1, []) for one in found)
        copied: list[str] = []
        monkeypatch.setattr(verifying, "IMAGE_BYTES_MAX", 100_000)
        whole = copies.finish
        monkeypatch.setattr(copies, "finish", lambda path: (copied.append(path), whole(path)))
        everything = await ask(client, "POST", "verify?limit=1000")
        assert [one["problems"] for one in everything] == [[]] * 14
        assert len(copied) == 1, "a large one is copied"

    run(tmp_path, script)


def by_id(host: Host, class_name: str) -> list[Any]:
    return [entry.ref for entry in entries(host.log) if entry.ref.class_name == class_name]


def test_in_one_pass_damage_is_found_where_it_is(tmp_path: Path) -> None:
    async def before(client: Client, host: Host) -> None:
        for number in range(200):
            await client.call("Ledger/x/add", f"{number:050}")
        await client.call("Ledger/sound/add", "one")

    async def after(client: Client, host: Host) -> None:
        found = {one["name"]: one["problems"] for one in await ask(client, "POST", "verify")}
        assert found["sound"] == []
        assert any("by_data" in problem for problem in found["x"]), found
        assert any("'key-bad' cannot be read" in problem for problem in found["x"]), found

    run(tmp_path, before)
    damage(max(tmp_path.glob("data/Ledger/*/*.sqlite"), key=lambda path: path.stat().st_size))
    run(tmp_path, after)


def test_a_log_that_loses_its_end_while_it_runs_is_told_by_verify(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        for number in range(20):
            await client.call("Plain/p/put", f"k{number}", number)
        assert (await tell(client, "POST", "verify"))[1]["result_info"]["log_problems"] == []
        active = host.log._upkeep.active
        assert active is not None
        path = tmp_path / "log" / active.row.slot
        whole = path.read_bytes()
        path.write_bytes(whole[: active.offset // 2].ljust(len(whole), b"\0"))

        (problem,) = (await tell(client, "POST", "verify"))[1]["result_info"]["log_problems"]

        assert f"is written to {active.offset}" in problem
        path.write_bytes(whole)

    run(tmp_path, script)


def test_damage_is_found_and_named(tmp_path: Path) -> None:
    async def before(client: Client, host: Host) -> None:
        for number in range(200):
            await client.call("Ledger/x/add", f"{number:050}")

    async def after(client: Client, host: Host) -> None:
        verdict = await ask(client, "POST", "objects/Ledger/x/verify")
        assert any("by_data" in problem for problem in verdict["problems"]), verdict
        assert any("'key-bad' cannot be read" in problem for problem in verdict["problems"]), verdict

    run(tmp_path, before)
    (path,) = tmp_path.glob("data/Ledger/*/*.sqlite")
    damage(path)
    run(tmp_path, after)


def damage(path: Path) -> None:
    """A row that its index does not know, and a value that is none."""
    database = sqlite3.connect(path)
    database.execute("INSERT INTO _edge_kv VALUES ('key-bad', x'c1ff')")
    database.execute("PRAGMA writable_schema = ON")
    (index,) = database.execute("SELECT * FROM sqlite_schema WHERE name = 'by_data'").fetchall()
    database.execute("DELETE FROM sqlite_schema WHERE name = 'by_data'")
    database.commit()
    database.close()
    database = sqlite3.connect(path)
    database.execute("INSERT INTO lines (text) VALUES ('unseen')")
    database.execute("PRAGMA writable_schema = ON")
    database.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", index)
    database.commit()
    database.close()


# deletion


@pytest.mark.parametrize("name", ["Ledger/x", "Alone/o", "Plain/p", "Failing/f"])
def test_a_deleted_object_begins_anew(tmp_path: Path, name: str) -> None:
    async def script(client: Client, host: Host) -> None:
        class_name = name.partition("/")[0]
        if class_name == "Ledger":
            await client.call("Ledger/x/add", "one")
            await client.call("Ledger/x/wake", FAR_MS)
        else:
            await client.call(f"{name}/put", "broken", True)
        assert await ask(client, "DELETE", f"objects/{name}") == {"id": ids.from_name(*name.split("/")).id}
        facts = await ask(client, "GET", f"objects/{name}")
        assert (facts["alarm"], facts["tables"], facts["in_memory"]) == (None, [], False)
        if class_name == "Ledger":
            assert await client.call("Ledger/x/add", "one") == 1
            assert await client.call("Ledger/x/made") == 1
        if class_name == "Plain":
            assert await client.call("Plain/p/get", "broken") is None

    run(tmp_path, script)


def test_an_object_that_cannot_start_any_more_can_be_looked_at_and_mended(tmp_path: Path) -> None:
    async def script(client: Client, host: Host) -> None:
        await client.call("Failing/f/put", "broken", True)
        host.node.evict(("Failing", ids.from_name("Failing", "f").id))
        status, _ = await client.ask("POST", "/objects/Failing/f/put", b'{"args": ["k", 1]}')
        assert status == 503
        assert (await ask(client, "POST", "objects/Failing/f/verify"))["keys"] == 1
        await ask(client, "DELETE", "objects/Failing/f")
        await client.call("Failing/f/put", "k", 1)

    run(tmp_path, script)


# permissions


OF_ONE = "/operate/objects/Plain/p"
PERMISSIONS = {
    ("POST", "/operate/verify"): "Objects Read",
    ("GET", "/operate/objects"): "Objects Read",
    ("GET", "/operate/classes"): "Objects Read",
    ("POST", "/operate/backup"): "Objects Write",
    ("GET", "/operate/apart"): "Objects Read",
    ("DELETE", "/operate/apart/Notes"): "Objects Write",
    ("GET", "/operate/quarantine"): "Objects Read",
    ("DELETE", "/operate/quarantine/Notes"): "Objects Write",
    ("GET", OF_ONE): "Objects Read",
    ("POST", f"{OF_ONE}/sql"): "Objects Read",
    ("GET", f"{OF_ONE}/export"): "Objects Read",
    ("POST", f"{OF_ONE}/verify"): "Objects Read",
    ("GET", f"{OF_ONE}/where"): "Objects Read",
    ("GET", f"{OF_ONE}/bookmark"): "Objects Read",
    ("GET", f"{OF_ONE}/timeline"): "Objects Read",
    ("GET", f"{OF_ONE}/contents"): "Objects Read",
    ("GET", f"{OF_ONE}/changes"): "Objects Read",
    ("GET", f"{OF_ONE}/alarm"): "Objects Read",
    ("POST", f"{OF_ONE}/sql-write"): "Objects Write",
    ("POST", f"{OF_ONE}/restore"): "Objects Write",
    ("POST", f"{OF_ONE}/undo"): "Objects Write",
    ("PUT", f"{OF_ONE}/alarm"): "Objects Write",
    ("DELETE", f"{OF_ONE}/alarm"): "Objects Write",
    ("POST", f"{OF_ONE}/alarm"): "Objects Write",
    ("DELETE", f"{OF_ONE}/quarantine"): "Objects Write",
    ("DELETE", OF_ONE): "Objects Write",
    ("POST", f"{OF_ONE}/call"): "Objects Invoke",
    ("POST", "/objects/Plain/p/get"): "Objects Invoke",
    ("PUT", "/objects/Plain/p/fetch"): "Objects Invoke",
    ("PUT", "/objects/Plain/p/fetch/a/b"): "Objects Invoke",
}
BY_ID = {
    (method, path.replace(OF_ONE, f"/operate/ids/Plain/{ids.from_name('Plain', 'p').id}")): permission
    for (method, path), permission in PERMISSIONS.items()
}


def test_each_route_asks_for_its_permission(tmp_path: Path) -> None:
    asked: list[str] = []

    def authorise(request: messages.Request, group: str) -> EdgeError | None:
        asked.append(group)
        return InvalidAccessToken()

    async def script(client: Client, host: Host) -> None:
        for (method, path), permission in (PERMISSIONS | BY_ID).items():
            assert (await client.ask(method, path))[0] == 403
            assert asked.pop() == permission, (method, path)

    run(tmp_path, script, authorise=authorise)


def test_no_route_of_objects_is_forgotten_here() -> None:
    rows = rows_of(OBJECTS)
    router = Router(rows)
    found = [router.find(method, path)[0] for method, path in PERMISSIONS | BY_ID]

    assert {(row.method, row.path) for row in found} == {(row.method, row.path) for row in rows}
