"""Every statement and migration of the control data runs on PostgreSQL too."""

import importlib
import pkgutil
from types import SimpleNamespace

import pytest

import edgestead.tables
from edgestead.sqlite import feed, outbox
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.migrations import Migration
from tests.store import example_table
from tests.support.portable import POSTGRES_PREAMBLE, objections, statements, to_postgres
from tests.support.postgres import cluster, find_binaries

TABLES = [
    importlib.import_module(f"edgestead.tables.{found.name}")
    for found in pkgutil.iter_modules(edgestead.tables.__path__)
]
FEED = (outbox, feed)

TRANSLATED = {
    "SELECT 1": "SELECT 1",
    "a = ? AND b = ?": "a = $1 AND b = $2",
    "a = '?' AND b = ?": "a = '?' AND b = $1",
    "a = 'it''s ?' AND b = ?": "a = 'it''s ?' AND b = $1",
    'SELECT "why?" -- really?\n, ?': 'SELECT "why?" -- really?\n, $1',
    "/* ? */ ?": "/* ? */ $1",
    "a integer, b INTEGER, c integers, 'integer'": "a bigint, b bigint, c integers, 'integer'",
}
OBJECTED = {
    "SELECT 1 FROM t WHERE a LIKE ?": "LIKE",
    "SELECT a -> 'b' FROM t": "JSON",
    "SELECT json_extract(a, '$') FROM t": "JSON",
    "CREATE TABLE t (id integer PRIMARY KEY AUTOINCREMENT)": "the caller makes ids",
    "SELECT rowid FROM t": "row ids",
    "CREATE TRIGGER t AFTER INSERT ON u BEGIN SELECT 1; END": "services",
    "SELECT current_timestamp": "chance",
    "SELECT a FROM t ORDER BY a COLLATE NOCASE": "bytes",
    "CREATE TABLE t (a boolean)": "types",
}
UNPREPARABLE = (
    "INSERT OR REPLACE INTO notes (id) VALUES ('a')",
    "SELECT id FROM notes WHERE nothing = ?",
    "SELECT ifnull(id, '') FROM notes",
    "SELECT id FROM notes GROUP BY zone_id",
)


@pytest.mark.parametrize(("sqlite", "postgres"), TRANSLATED.items())
def test_parameters_are_numbered_and_integers_widened_outside_of_literals(sqlite, postgres):
    assert to_postgres(sqlite) == postgres


@pytest.mark.parametrize(("sql", "words"), OBJECTED.items())
def test_what_means_two_things_is_objected_to(sql, words):
    assert any(words in objection for objection in objections(sql))


@pytest.mark.parametrize("sql", ["SELECT a FROM t WHERE b = 'LIKE -> rowid'", "SELECT likes FROM t -- like"])
def test_words_inside_of_literals_and_names_are_not_objected_to(sql):
    assert objections(sql) == []


def test_statements_are_found_by_the_convention():
    found = set(statements(example_table))

    assert found == {
        example_table.INSERT,
        example_table.SELECT_PAGE,
        example_table.KEEP_LARGEST,
        *example_table.MATCH.values(),
    }


def test_a_module_may_enumerate_what_it_composes():
    module = SimpleNamespace(ORDERS=("a asc", "a desc"), statements=lambda: iter(["SELECT 1"]))

    assert list(statements(module)) == ["SELECT 1"]


def migrations_of(modules) -> list[Migration]:
    return [step for module in modules for step in getattr(module, "MIGRATIONS", ())]


@pytest.mark.parametrize("modules", [FEED, TABLES, [example_table]], ids=["feed", "tables", "example"])
def test_our_own_sql_has_no_objection(modules):
    texts = [sql for module in modules for sql in statements(module)]
    texts += [step.sql for step in migrations_of(modules)]

    assert {sql: found for sql in texts if (found := objections(sql))} == {}


@pytest.mark.parametrize("modules", [FEED, TABLES, [example_table]], ids=["feed", "tables", "example"])
def test_every_statement_prepares_on_sqlite(tmp_path, modules):
    store = SqliteControlStore(tmp_path / "control.db", () if modules is FEED else migrations_of(modules))
    try:
        for sql in {sql for module in modules for sql in statements(module)}:
            store.read(
                lambda reader, sql=sql: reader.rows(f"EXPLAIN {sql}", (None,) * to_postgres(sql).count("$"))
            )
    finally:
        store.close()


@pytest.fixture(scope="module")
def postgres():
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PORTABILITY NOT CHECKED: PostgreSQL is not installed (apt install postgresql)")
    with cluster(binaries) as running:
        assert running.errors([POSTGRES_PREAMBLE]) == [""]
        yield running


def failures(postgres, modules) -> dict[str, str]:
    """Run the modules' migrations in a schema of their own, prepare their statements, and undo it all."""
    steps = migrations_of(modules)
    texts = sorted({sql for module in modules for sql in statements(module)})
    scripts = ["CREATE SCHEMA own; SET search_path = own, public"]
    scripts += [to_postgres(step.sql) for step in steps]
    scripts += [f"PREPARE s{number} AS {to_postgres(sql)}" for number, sql in enumerate(texts)]
    found = postgres.errors([*scripts, "DROP SCHEMA own CASCADE"])
    names = ["(start)", *(step.name for step in steps), *texts, "(end)"]
    return {name: error for name, error in zip(names, found, strict=True) if "ERROR" in error}


@pytest.mark.parametrize("modules", [FEED, TABLES, [example_table]], ids=["feed", "tables", "example"])
def test_every_migration_runs_and_every_statement_prepares_on_postgres(postgres, modules):
    assert failures(postgres, modules) == {}


def test_what_only_sqlite_takes_is_found(postgres):
    module = SimpleNamespace(MIGRATIONS=example_table.MIGRATIONS, BAD=UNPREPARABLE)

    assert failures(postgres, [module]).keys() == set(UNPREPARABLE)


def test_text_sorts_and_substrings_count_as_in_sqlite(postgres, tmp_path):
    # Both answer the same question; on PostgreSQL a wrong answer divides by zero.
    question = (
        "('B' < 'a') AND ('Z' < 'ä') AND instr('wéb', 'b') = 3 AND instr('web', 'x') = 0 "
        "AND substr('web', length('web') - length('b') + 1) = 'b' "
        "AND NOT substr('b', length('b') - length('web') + 1) = 'web'"
    )
    store = SqliteControlStore(tmp_path / "control.db")

    try:
        assert store.read(lambda reader: reader.row(f"SELECT {question}")) == (1,)
        assert postgres.errors([f"SELECT 1 / (CASE WHEN {question} THEN 1 ELSE 0 END)"]) == [""]
    finally:
        store.close()
