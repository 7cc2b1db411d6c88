"""A database becomes a cluster's once, and only a program that knows its schema uses it."""

from contextlib import closing

import pytest

from edgestead.postgres import schema
from edgestead.postgres.connection import Link
from edgestead.store.migrations import SchemaError, SchemaTooNew


@pytest.fixture
def link(postgres):
    with closing(Link(postgres.empty())) as made:
        yield made


def test_an_empty_database_becomes_a_clusters(link):
    assert schema.find(link) is None

    schema.create(link, "abc")

    assert schema.find(link) == schema.settle(link) == schema.Cluster("abc", schema.SCHEMA, 1)


def test_a_database_with_a_cluster_is_not_made_another(link):
    schema.create(link, "abc")

    with pytest.raises(schema.HasCluster, match="abc"):
        schema.create(link, "other")

    assert schema.settle(link).id == "abc"


def test_a_cluster_that_was_half_made_is_made_again(link):
    schema.create(link, "abc", generation=0)
    link.run("INSERT INTO secrets (name, sealed) VALUES ('a', 'b')")

    with pytest.raises(schema.NoCluster, match="run it again"):
        schema.settle(link)
    schema.create(link, "def")

    assert (schema.settle(link).id, link.rows("SELECT * FROM secrets")) == ("def", [])


def test_what_else_is_in_the_database_stays_when_a_cluster_is_made_again(link):
    link.run("CREATE TABLE mine (id text)")
    link.run("INSERT INTO mine VALUES ('a')")
    link.run("CREATE VIEW seen AS SELECT * FROM mine")
    schema.create(link, "abc", generation=0)

    schema.create(link, "def", generation=0)

    assert schema.find(link).id == "def"
    assert link.rows("SELECT * FROM seen") == [("a",)]


def test_a_view_of_what_would_be_made_again_is_named_and_stays(link):
    schema.create(link, "abc", generation=0)
    link.run("CREATE VIEW seen AS SELECT name FROM nodes")

    with pytest.raises(SchemaError, match="not empty"):
        schema.create(link, "def", generation=0)

    assert (schema.find(link).id, link.rows("SELECT * FROM seen")) == ("abc", [])


def test_one_init_at_a_time_has_a_database(link):
    with schema.sole_init(link.dsn) as first, schema.sole_init(link.dsn) as second:
        assert (first, second) == (True, False)

    with schema.sole_init(link.dsn) as later:
        assert later


def test_a_database_with_other_tables_of_these_names_is_left_as_it_is(link):
    link.run("CREATE TABLE nodes (mine text)")

    with pytest.raises(SchemaError, match="not empty"):
        schema.create(link, "abc")

    assert link.rows(
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
    ) == [("nodes",)]


def test_a_program_without_a_cluster_or_with_an_older_schema_is_told_what_to_do(link):
    with pytest.raises(schema.NoCluster, match="edgecli cluster init"):
        schema.settle(link)
    schema.create(link, "abc")
    link.run("UPDATE cluster SET schema = schema + 1, oldest = schema + 1")

    with pytest.raises(SchemaTooNew, match="newer"):
        schema.settle(link)


def test_a_node_with_the_release_before_starts_again_while_others_are_upgraded(link):
    schema.create(link, "abc")
    link.run("UPDATE cluster SET schema = schema + 1")

    assert schema.settle(link).schema == schema.SCHEMA + 1

    assert schema.find(link).schema == schema.SCHEMA + 1, "it brings nothing back"


def test_who_only_looks_upgrades_nothing(link, monkeypatch):
    schema.create(link, "abc")
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)

    assert schema.settle(link, upgrades=False).schema == schema.SCHEMA - 1
    assert schema.find(link).schema == schema.SCHEMA - 1


def test_a_database_from_before_it_said_which_programs_may_use_it(link):
    schema.create(link, "abc")
    link.run("ALTER TABLE cluster DROP COLUMN oldest")

    assert schema.find(link).oldest == 1


def test_an_older_schema_is_upgraded_in_place(link, monkeypatch):
    schema.create(link, "abc")
    monkeypatch.setattr(schema, "SCRIPTS", (*schema.SCRIPTS, "CREATE TABLE more (id text PRIMARY KEY)"))
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)

    assert schema.settle(link).schema == schema.SCHEMA

    assert link.rows("SELECT id FROM more") == []
    assert schema.settle(link).schema == schema.SCHEMA
