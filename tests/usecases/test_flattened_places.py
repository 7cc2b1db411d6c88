"""What lies at or below a name is found without looking at what other zones' names hang on."""

from functools import partial

import pytest

from edgestead.sqlite.control import SqliteControlStore
from edgestead.tables import flattened
from edgestead.tables.schema import MIGRATIONS

HANGING = {  # what a zone's names hang on
    "z1": ("example.com",),
    "z2": ("www.example.com", "other.net"),
    "z3": ("a.b.example.com",),
    "z4": ("badexample.com", "example.com.net", "example.org", "com"),
    "z5": ("xexample.com", "example-com", "example.co"),
}


@pytest.fixture
def database(tmp_path):
    return tmp_path / "control.db"


def below(store, apex):
    return store.read(lambda reader: flattened.zones_hanging_below(reader, apex))


@pytest.mark.parametrize(
    ("apex", "zones"),
    [
        ("example.com", ["z1", "z2", "z3"]),
        ("b.example.com", ["z3"]),
        ("com", ["z1", "z2", "z3", "z4", "z5"]),
        ("nowhere.test", []),
    ],
)
def test_zones_below_a_name_are_found(database, apex, zones):
    store = SqliteControlStore(database, MIGRATIONS)
    try:
        hang = [
            partial(flattened.set_via, zone_id=id_, name="name", vias=vias) for id_, vias in HANGING.items()
        ]
        for write in hang:
            store.write(write).result(60)

        assert below(store, apex) == zones
    finally:
        store.close()


def test_no_other_rows_are_looked_at(database):
    store = SqliteControlStore(database, MIGRATIONS)
    try:
        plan = store.read(
            lambda reader: reader.rows(f"explain query plan {flattened.SELECT_ZONES_BELOW}", ("a.", "a/"))
        )
    finally:
        store.close()

    assert any("place>? AND place<?" in step[-1] for step in plan), plan


def test_a_database_of_before_keeps_what_hangs_on_what(database):
    before = SqliteControlStore(database, MIGRATIONS[:14])
    insert = "insert into flattened_via (via, zone_id, name) values (?, ?, ?)"
    try:
        rows = [(via, zone_id, "name") for zone_id, vias in HANGING.items() for via in vias]
        before.write(lambda tx: [tx.run(insert, row) for row in rows]).result(60)
    finally:
        before.close()

    after = SqliteControlStore(database, MIGRATIONS)
    try:
        found = {
            via: after.read(lambda reader, via=via: flattened.dependents(reader, via, 10))
            for vias in HANGING.values()
            for via in vias
        }
        assert found == {via: [(zone_id, "name")] for zone_id, vias in HANGING.items() for via in vias}
        assert below(after, "example.com") == ["z1", "z2", "z3"]
    finally:
        after.close()
