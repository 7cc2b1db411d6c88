"""`ctx.storage.sql`: statements, cursors, what is refused, and what a reset keeps."""

import asyncio
import contextlib
from typing import Any

import pytest

from edgestead import StatefulObject
from edgestead.objects import limits
from edgestead.objects.errors import BackendError, SqlError
from edgestead.objects.ids import from_name
from edgestead.objects.runtime.node import Node
from edgestead.objects.runtime.statements import split
from edgestead.objects.runtime.storage import Storage
from tests.objects.logs import Logs
from tests.objects.nodes import Body, run, with_storage

SPLITS: list[tuple[str, list[str]]] = [
    ("SELECT 1", ["SELECT"]),
    ("SELECT 1;", ["SELECT"]),
    ("SELECT 1; -- a comment; really", ["SELECT"]),
    ("SELECT 1;;; SELECT 2", ["SELECT", "SELECT"]),
    ("/* ; */ INSERT INTO t VALUES (';', \";\", `;`, [;]); DELETE FROM t", ["INSERT", "DELETE"]),
    (
        "CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t; SELECT 1; END; SELECT 2",
        ["CREATE", "SELECT"],
    ),
    ("CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", ["CREATE"]),
    ("SELECT 'unfinished; text", ["SELECT"]),
    ("SELECT 1 /* unfinished; comment", ["SELECT"]),
]
NO_STATEMENT = ["", " ", ";", " ; ;; ", "-- only this", "/* only this */", "/* open"]

REFUSED: list[tuple[str, str]] = [
    ("BEGIN", "transaction()"),
    ("BEGIN IMMEDIATE", "transaction()"),
    ("COMMIT", "transaction()"),
    ("ROLLBACK", "transaction()"),
    ("SAVEPOINT s", "transaction()"),
    ("RELEASE s", "transaction()"),
    ("SELECT 1; COMMIT", "transaction()"),
    ("ATTACH ':memory:' AS other", "SQLITE_AUTH"),
    ("ATTACH '/etc/passwd' AS other", "SQLITE_AUTH"),
    ("DETACH main", "SQLITE_AUTH"),
    ("VACUUM INTO '/tmp/copy'", "SQLITE_"),
    ("CREATE TEMP TABLE x (a)", "SQLITE_AUTH"),
    ("CREATE TEMP VIEW x AS SELECT 1", "SQLITE_AUTH"),
    ("CREATE TABLE temp.x (a)", "SQLITE_AUTH"),
    ("CREATE VIEW temp.x AS SELECT 1", "SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE temp.x USING fts5(a)", "SQLITE_AUTH"),
    ("SELECT * FROM _edge_kv", "access to _edge_kv.key is prohibited: SQLITE_AUTH"),
    ("SELECT * FROM _EDGE_KV", "prohibited"),
    ('SELECT * FROM "_edge_kv"', "prohibited"),
    ("WITH x AS (SELECT * FROM _edge_kv) SELECT 1 FROM x", "prohibited"),
    ("SELECT (SELECT count(*) FROM _edge_kv)", "prohibited"),
    ("INSERT INTO _edge_kv VALUES ('a', x'00')", "prohibited"),
    ("UPDATE _edge_kv SET value = x'00'", "prohibited"),
    ("DELETE FROM _edge_kv", "prohibited"),
    ("DROP TABLE _edge_kv", "prohibited"),
    ("CREATE TABLE _edge_x (a)", "prohibited"),
    ("CREATE TABLE _Edge_x AS SELECT 1", "prohibited"),
    ("CREATE VIEW _edge_v AS SELECT 1", "prohibited"),
    ("CREATE INDEX _edge_i ON t (a)", "prohibited"),
    ("CREATE INDEX i ON _edge_kv (value)", "access to _edge_kv is prohibited"),
    ("CREATE TRIGGER _edge_t AFTER INSERT ON t BEGIN SELECT 1; END", "prohibited"),
    ("CREATE TRIGGER x AFTER INSERT ON _edge_kv BEGIN SELECT 1; END", "prohibited"),
    ("CREATE VIRTUAL TABLE _edge_f USING fts5(a)", "SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE f USING fts3(a)", "SQLITE_AUTH"),
    ("CREATE VIRTUAL TABLE f USING dbstat", "SQLITE_AUTH"),
    ("ALTER TABLE t RENAME TO _edge_t", "prohibited"),
    ("ALTER TABLE t RENAME TO _EDGE_t", "prohibited"),
    ("ALTER TABLE _edge_kv RENAME TO mine", "prohibited"),
    ("ALTER TABLE _edge_kv ADD COLUMN x", "prohibited"),
    ("SELECT * FROM pragma_table_info('_edge_kv')", "SQLITE_"),
    ("SELECT * FROM pragma_table_xinfo('_edge_' || 'kv')", "SQLITE_"),
    ("PRAGMA table_info(_edge_kv)", "SQLITE_AUTH"),
    ("PRAGMA index_info(sqlite_autoindex__EDGE_kv_1)", "SQLITE_AUTH"),
    ("SELECT * FROM pragma_index_xinfo('sqlite_autoindex__edge_kv_1')", "SQLITE_AUTH"),
    ("PRAGMA quick_check(_edge_kv)", "SQLITE_AUTH"),
    ("CREATE VIEW w AS SELECT * FROM _edge_kv", "access to _edge_kv is prohibited: SQLITE_AUTH"),
    ("CREATE VIEW w AS SELECT * FROM [_EDGE_kv]", "prohibited"),
    ("CREATE VIEW w AS SELECT 1; SELECT 1; CREATE VIEW u AS SELECT * FROM '_edge_kv'", "prohibited"),
    ("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; DELETE FROM _edge_kv; END", "prohibited"),
    ("CREATE TABLE u (a REFERENCES _edge_kv)", "prohibited"),
    ("CREATE TABLE u (a, `_edge_b`)", "prohibited"),
    ("ALTER TABLE t RENAME COLUMN a TO _edge_a", "prohibited"),
    ("ALTER TABLE t ADD COLUMN _edge_b", "prohibited"),
    ("SELECT * FROM v", "access to _edge_kv.key is prohibited"),
    ("SELECT * FROM dbstat", "SQLITE_AUTH"),
    ("SELECT * FROM sqlite_dbpage", "SQLITE_"),
    ("PRAGMA journal_mode = DELETE", "SQLITE_AUTH"),
    ("PRAGMA synchronous = FULL", "SQLITE_AUTH"),
    ("PRAGMA wal_checkpoint", "SQLITE_AUTH"),
    ("PRAGMA locking_mode = NORMAL", "SQLITE_AUTH"),
    ("PRAGMA writable_schema = ON", "SQLITE_AUTH"),
    ("PRAGMA page_size = 512", "SQLITE_AUTH"),
    ("PRAGMA data_version = 1", "SQLITE_AUTH"),
    ("PRAGMA database_list", "SQLITE_AUTH"),
    ("PRAGMA compile_options", "SQLITE_AUTH"),
    ("PRAGMA max_page_count = 1", "SQLITE_AUTH"),
    ("SELECT * FROM pragma_database_list", "SQLITE_"),
    ("SELECT sqlite_version()", "SQLITE_"),
    ("SELECT load_extension('x')", "SQLITE_"),
    ("UPDATE sqlite_schema SET sql = ''", "SQLITE_"),
    ("DELETE FROM sqlite_schema", "SQLITE_"),
    ("SELECT * FROM missing", "no such table: missing: SQLITE_ERROR"),
    ("SELEC 1", "SQLITE_ERROR"),
    ("INSERT INTO u VALUES (1), (1)", "UNIQUE constraint failed: u.a: SQLITE_CONSTRAINT"),
    ("SELECT " + "1," * 100 + "1", "SQLITE_ERROR"),
    ("SELECT 1" + " UNION SELECT 1" * 6, "SQLITE_ERROR"),
    ("SELECT zeroblob(5000000)", "SQLITE_TOOBIG"),
    ("SELECT 1" + " + 1" * 101, "Expression tree is too large"),
    ("SELECT max(" + "1, " * 127 + "1)", "too many arguments"),
    ("SELECT 'a' LIKE '" + "%" * 51 + "'", "pattern too complex"),
    ("SELECT ?101", "?1 and ?100"),
    ("SELECT 1 IN (" + "1, " * 30_000 + "1)", "SQLITE_NOMEM"),
    ("SELECT '" + "x" * 100_000 + "'", "SQLITE_TOOBIG"),
    *((text, "did not contain a statement") for text in NO_STATEMENT),
]
ALLOWED = [
    "CREATE TABLE _x (a)",
    "CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES ('hello'); SELECT * FROM f('hello')",
    "CREATE VIRTUAL TABLE r USING rtree(id, a, b); SELECT * FROM r",
    "SELECT json_extract('{\"a\": 1}', '$.a'), sqrt(4), strftime('%s', 0)",
    "SELECT value FROM json_each('[1, 2]')",
    "PRAGMA table_info(t)",
    "SELECT * FROM pragma_table_info('t')",
    "PRAGMA table_list",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA optimize",
    "PRAGMA quick_check",
    "ANALYZE",
    "ALTER TABLE t RENAME TO s; SELECT * FROM s",
    "ALTER TABLE t ADD COLUMN b; SELECT b FROM t",
    "CREATE INDEX i ON t (a); REINDEX",
    "CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM u; END; INSERT INTO t VALUES (1)",
    "EXPLAIN SELECT 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT * FROM n",
]


def test_the_hidden_table_is_seen_from_the_first_write_on_and_not_by_chance(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        def names() -> list[Any]:
            found = storage.sql.exec("SELECT name FROM sqlite_master ORDER BY name").raw().to_list()
            return [name for (name,) in found if name != "_edge_own"]

        await storage.put("key", 1)
        await storage.sync()
        with storage.transaction_sync():
            storage.sql.exec("CREATE TABLE t (a)")
        assert names() == ["_edge_kv", "t"]
        storage._engine.checkpoint()
        assert names() == ["_edge_kv", "t"]
        await storage.delete_all()
        with contextlib.suppress(ZeroDivisionError), storage.transaction_sync():
            storage.sql.exec("CREATE TABLE u (a)")
            raise ZeroDivisionError
        await storage.put("key", 2)
        storage._engine.checkpoint()
        assert await storage.get("key") == 2

    with_storage(logs, body)


def in_tables(body: Body) -> Body:
    """The body, with tables t (three rows) and u, and a key."""

    async def with_tables(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3); CREATE TABLE u (a UNIQUE)")
        # as an earlier version let users make one
        storage._engine.begin_sql()._run_once("CREATE VIEW v AS SELECT * FROM _edge_kv")
        await storage.put("key", "value")
        await storage.sync()
        storage._engine.checkpoint()
        await body(storage)

    return with_tables


@pytest.mark.parametrize(("text", "words"), SPLITS)
def test_text_is_cut_into_its_statements(text: str, words: list[str]) -> None:
    assert [statement.word for statement in split(text)] == words


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=lambda value: value[:50])
def test_a_refused_statement_changes_nothing(logs: Logs, text: str, words: str) -> None:
    async def body(storage: Storage) -> None:
        before = storage.sql.exec("SELECT name, sql FROM sqlite_schema").to_list()

        with pytest.raises(SqlError) as caught:
            storage.sql.exec(text).to_list()

        assert words in str(caught.value)
        assert storage.sql.exec("SELECT name, sql FROM sqlite_schema").to_list() == before
        assert storage.sql.exec("SELECT count(*) AS n FROM t").one() == {"n": 3}
        assert await storage.list() == {"key": "value"}
        await storage.put("still", "works")
        await storage.sync()

    with_storage(logs, in_tables(body))


@pytest.mark.parametrize("text", ALLOWED)
def test_an_allowed_statement_runs(logs: Logs, text: str) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec(text).to_list()
        await storage.sync()

    with_storage(logs, in_tables(body))


def test_our_own_statements_cannot_be_found_in_the_statement_cache(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        await storage.get("nothing at all")

        with pytest.raises(SqlError, match="prohibited"):
            storage.sql.exec("SELECT value FROM _edge_kv WHERE key = ?", "key")

    with_storage(logs, in_tables(body))


def test_bindings_belong_to_the_last_statement(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec("INSERT INTO t VALUES (4); SELECT a FROM t WHERE a > ? ORDER BY a", 2)

        assert cursor.to_list() == [{"a": 3}, {"a": 4}]
        for query, values in (
            ("SELECT ?", ()),
            ("SELECT 1", (1,)),
            ("INSERT INTO t VALUES (?); SELECT 1", (1,)),
        ):
            with pytest.raises(SqlError, match="Wrong number of parameter bindings"):
                storage.sql.exec(query, *values)

    with_storage(logs, in_tables(body))


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (None, None),
        (True, 1),
        (False, 0),
        (5, 5),
        (-(2**63), -(2**63)),
        (1.5, 1.5),
        ("é", "é"),
        (b"\0", b"\0"),
    ],
)
def test_a_binding_comes_back(logs: Logs, value: Any, back: Any) -> None:
    async def body(storage: Storage) -> None:
        found = storage.sql.exec("SELECT ? AS v", value).one()["v"]

        assert (found, type(found)) == (back, type(back))

    with_storage(logs, body)


@pytest.mark.parametrize("value", [2**63, [1], {"a": 1}, object(), "\ud800"], ids=lambda v: type(v).__name__)
def test_a_binding_of_another_kind_is_refused(logs: Logs, value: Any) -> None:
    async def body(storage: Storage) -> None:
        with pytest.raises((SqlError, TypeError)):
            storage.sql.exec("SELECT ?", value)

    with_storage(logs, body)


def test_a_cursor_and_its_raw_iterator_share_one_position(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec("SELECT a, a * 2 AS b FROM t ORDER BY a")
        raw = cursor.raw()

        assert cursor.column_names == raw.column_names == cursor.columnNames == ["a", "b"]
        assert cursor.next() == {"done": False, "value": {"a": 1, "b": 2}}
        assert raw.next() == {"done": False, "value": [2, 4]}
        assert (cursor.rows_read, cursor.rowsRead) == (2, 2)
        assert raw.to_list() == [[3, 6]]
        assert cursor.next() == {"done": True}
        assert cursor.to_list() == []
        assert cursor.rows_read == 3
        assert cursor.column_names == ["a", "b"]

    with_storage(logs, in_tables(body))


def test_a_cursor_is_iterable(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        assert [row["a"] for row in storage.sql.exec("SELECT a FROM t ORDER BY a")] == [1, 2, 3]
        assert list(storage.sql.exec("SELECT a FROM t ORDER BY a").raw()) == [[1], [2], [3]]

    with_storage(logs, in_tables(body))


@pytest.mark.parametrize(("query", "words"), [("SELECT a FROM t", "multiple"), ("SELECT a FROM u", "no")])
def test_one_needs_exactly_one_row(logs: Logs, query: str, words: str) -> None:
    async def body(storage: Storage) -> None:
        for cursor in (storage.sql.exec(query), storage.sql.exec(query).raw()):
            with pytest.raises(SqlError, match=f"Expected exactly one result .* got {words} results"):
                cursor.one()
        assert storage.sql.exec("SELECT max(a) AS m FROM t").one() == {"m": 3}
        assert storage.sql.exec("SELECT max(a) FROM t").raw().one() == [3]

    with_storage(logs, in_tables(body))


def test_columns_of_one_name(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec("SELECT 1 AS a, 2 AS a")

        assert cursor.column_names == ["a", "a"]
        assert cursor.raw().one() == [1, 2]
        assert storage.sql.exec("SELECT 1 AS a, 2 AS a").one() == {"a": 2}

    with_storage(logs, body)


@pytest.mark.parametrize("name", ["a b", "it's", '"', "a\nb", "{x}", "\\", "row[0]", "0", "é😀", "', 1: '"])
def test_a_column_may_be_called_anything(logs: Logs, name: str) -> None:
    quoted = '"{}"'.format(name.replace('"', '""'))

    async def body(storage: Storage) -> None:
        query = f"SELECT 1 AS {quoted}, 2 AS b"
        assert storage.sql.exec(query).one() == {name: 1, "b": 2}
        assert storage.sql.exec(query).next()["value"] == {name: 1, "b": 2}
        assert [*storage.sql.exec(query)] == storage.sql.exec(query).to_list() == [{name: 1, "b": 2}]
        assert storage.sql.exec(query).column_names == [name, "b"]

    with_storage(logs, body)


def test_names_are_known_without_rows(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        assert storage.sql.exec("SELECT a, 1 AS b FROM u WHERE a = ?", 1).column_names == ["a", "b"]
        assert storage.sql.exec("INSERT INTO u VALUES (?)", 1).column_names == []
        assert storage.sql.exec("SELECT count(*) AS n FROM u").one() == {"n": 1}, (
            "asking does not run it again"
        )

    with_storage(logs, in_tables(body))


def test_a_statement_runs_even_if_nobody_reads_it(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec("INSERT INTO t VALUES (4), (5) RETURNING a")

        assert cursor.rows_written == cursor.rowsWritten == 2
        assert storage.sql.exec("SELECT count(*) AS n FROM t").one() == {"n": 5}
        assert cursor.to_list() == [{"a": 4}, {"a": 5}]
        assert storage.sql.exec("UPDATE t SET a = a").rows_written == 5
        assert storage.sql.exec("SELECT 1").rows_written == 0

    with_storage(logs, in_tables(body))


def test_cursors_are_interleaved_and_survive_commits_and_checkpoints(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        first = storage.sql.exec("SELECT a FROM t ORDER BY a")
        second = storage.sql.exec("SELECT a FROM t ORDER BY a")
        assert (first.next()["value"], second.next()["value"]) == ({"a": 1}, {"a": 1})

        storage.sql.exec("INSERT INTO u VALUES (1)")
        await storage.sync()
        assert storage._engine.checkpoint()

        assert (first.next()["value"], second.to_list()) == ({"a": 2}, [{"a": 2}, {"a": 3}])
        assert first.to_list() == [{"a": 3}]

    with_storage(logs, in_tables(body))


BROKEN_ROW = "SELECT CAST(a AS TEXT) FROM (SELECT 'good' AS a UNION ALL SELECT x'ff')"


def test_a_cursor_whose_rows_cannot_be_read_ends_no_process_at_a_checkpoint(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_FRAMES", 1)

    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec(BROKEN_ROW).raw()
        assert cursor.next()["value"] == ["good"]

        storage.sql.exec("INSERT INTO u VALUES (1)")
        await storage.sync()

        assert logs.fatal == []
        assert storage._engine.database is not None
        assert storage._engine.database.frames == 0
        for use in (cursor.next, cursor.to_list):
            with pytest.raises(SqlError, match="not UTF-8"):
                use()
        assert storage.sql.exec("SELECT a FROM u").one() == {"a": 1}

    with_storage(logs, in_tables(body))


def test_a_cursor_whose_rows_cannot_be_read_is_left_behind_with_its_object(logs: Logs) -> None:
    class Reader(StatefulObject):
        storage = "sql"

        async def begin(self) -> None:
            self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")
            self.cursor = self.ctx.storage.sql.exec(BROKEN_ROW)

    async def script(node: Node) -> None:
        reader = from_name("Reader", "a")
        for _ in range(2):
            await node.env.Reader["a"].begin()
            assert node.evict(("Reader", reader.id))
            assert not node._opened
            assert not node.log._directory.find(reader).leased  # type: ignore[attr-defined]

    run(logs, script, Reader)


def test_delete_all_ends_open_cursors(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        cursor = storage.sql.exec("SELECT a FROM t ORDER BY a")
        assert cursor.next()["value"] == {"a": 1}

        await storage.delete_all()

        for use in (cursor.next, cursor.to_list, cursor.one, cursor.raw().next, cursor.raw().to_list):
            with pytest.raises(SqlError, match="delete_all"):
                use()

    with_storage(logs, in_tables(body))


def test_foreign_keys_are_on_until_they_are_turned_off(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE c (a REFERENCES u (a))")
        with pytest.raises(SqlError, match="FOREIGN KEY constraint failed: SQLITE_CONSTRAINT"):
            storage.sql.exec("INSERT INTO c VALUES (9)")
        await storage.sync()
        storage.sql.exec("PRAGMA foreign_keys = OFF")
        storage.sql.exec("INSERT INTO c VALUES (9)")

    with_storage(logs, in_tables(body))


def test_database_size_grows_and_shrinks(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        empty = storage.sql.database_size
        storage.sql.exec("CREATE TABLE big (a); INSERT INTO big VALUES (zeroblob(1000000))")
        full = storage.sql.databaseSize
        storage.sql.exec("DELETE FROM big")

        assert full > empty + 1_000_000
        assert storage.sql.database_size < empty + 100_000
        await storage.put("k", b"x" * 100_000)
        assert storage.sql.database_size > empty + 100_000

    with_storage(logs, body, segment_bytes=1 << 23)


def test_sql_survives_a_restart(logs: Logs) -> None:
    async def write(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (?)", "kept")

    async def read(storage: Storage) -> None:
        assert storage.sql.exec("SELECT a FROM t").to_list() == [{"a": "kept"}]

    with_storage(logs, write)
    with_storage(logs, read)


def test_a_statement_that_runs_away_is_interrupted(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STATEMENT_SECONDS_MAX", 0.01)

    async def body(storage: Storage) -> None:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        with pytest.raises(SqlError, match="SQLITE_INTERRUPT"):
            storage.sql.exec(endless)
        assert storage.sql.exec("SELECT count(*) AS n FROM t").one() == {"n": 3}

    with_storage(logs, in_tables(body))


def test_triggers_nest_ten_deep(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec(
            "PRAGMA recursive_triggers = ON; CREATE TRIGGER r AFTER INSERT ON t WHEN new.a < 100 "
            "BEGIN INSERT INTO t VALUES (new.a + 1); END"
        )
        storage.sql.exec("INSERT INTO t VALUES (91)")
        assert storage.sql.exec("SELECT max(a) AS m FROM t").one() == {"m": 100}
        with pytest.raises(SqlError, match="triggers nested too deep"):
            storage.sql.exec("INSERT INTO t VALUES (80)")

    with_storage(logs, in_tables(body))


def test_a_violated_deferred_constraint_resets_the_object(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        storage.sql.exec("CREATE TABLE p (id INTEGER PRIMARY KEY)")
        storage.sql.exec("CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        await storage.put("kept", 1)
        await storage.sync()

        storage.sql.exec("INSERT INTO c VALUES (99)")
        await storage.put("lost", 2)
        await asyncio.sleep(0.01)

        with pytest.raises(Exception, match="constraints were violated"):
            await storage.get("kept")

    async def after(storage: Storage) -> None:
        assert await storage.list() == {"key": "value", "kept": 1}
        assert storage.sql.exec("SELECT count(*) AS n FROM c").one() == {"n": 0}

    with_storage(logs, in_tables(body))
    with_storage(logs, after)


def test_the_key_value_backend_says_which_backend_has_sql(logs: Logs) -> None:
    async def body(storage: Storage) -> None:
        for use in (
            lambda: storage.sql,
            lambda: storage.transaction_sync(lambda: None),
            lambda: storage.get_current_bookmark(),
            lambda: storage.getBookmarkForTime(0),
            lambda: storage.on_next_session_restore_bookmark("x"),
        ):
            with pytest.raises(BackendError, match='storage = "sql"'):
                use()

    with_storage(logs, body, "kv")
