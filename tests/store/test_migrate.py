"""Migrations by number, the backup before an upgrade, and what is refused."""

import apsw
import pytest

from edgestead.sqlite import migrate as migrate_module
from edgestead.sqlite.connection import open_writer
from edgestead.sqlite.migrate import migrate
from edgestead.store.migrations import Migration, MigrationFailed, SchemaChanged, SchemaTooNew, pending, quiet

ONE = Migration(1, "notes", "CREATE TABLE notes (id text PRIMARY KEY); INSERT INTO notes VALUES ('a');")
TWO = Migration(2, "more", "ALTER TABLE notes ADD COLUMN body text;")
BROKEN = Migration(2, "broken", "CREATE TABLE half (id text); CREATE TABLE notes (id text);")
ORPHAN = Migration(
    2, "orphan", "CREATE TABLE child (note text REFERENCES notes (id)); INSERT INTO child VALUES ('nobody');"
)
REBUILD = Migration(
    3,
    "rebuild",
    "CREATE TABLE fresh (id text PRIMARY KEY, body text); INSERT INTO fresh SELECT id, body FROM notes; "
    "DROP TABLE notes; ALTER TABLE fresh RENAME TO notes;",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "control.db"


def run(path, *steps, doing=quiet):
    """Open, migrate and close as a start of the program does; returns the backup."""
    db = open_writer(path)
    try:
        return migrate(db, path, {"tables": steps}, doing)
    finally:
        db.close()


def tables(path):
    with apsw.Connection(str(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def backups(path):
    return sorted(p.name for p in path.parent.glob("*.before-upgrade-*"))


def test_a_new_database_gets_every_step_and_no_backup(path):
    assert run(path, ONE, TWO) is None
    assert tables(path) == {"notes", "schema"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_start_changes_nothing(path):
    run(path, ONE)

    assert run(path, ONE) is None


def test_an_upgrade_leaves_a_readable_private_backup_of_the_old_state(path):
    run(path, ONE)

    backup = run(path, ONE, TWO)

    assert backup.name == "control.db.before-upgrade-tables1"
    assert backup.stat().st_mode & 0o777 == 0o600
    with apsw.Connection(str(backup)) as db:
        assert db.execute("SELECT * FROM notes").fetchall() == [("a",)]
    assert run(backup, ONE, TWO) is not None, "a backup put back upgrades like the original"


def test_an_upgrade_that_goes_on_says_so(path, monkeypatch):
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    many = f"{ONE.sql} {numbers} INSERT INTO notes (id) SELECT i FROM n;"
    first, said = Migration(1, "notes", many), []
    run(path, first)
    monkeypatch.setattr(migrate_module, "STEPS_TOLD", 1_000)

    run(path, first, Migration(2, "renamed", "UPDATE notes SET id = id || 'b';"), doing=said.append)

    copying, upgrading = "copying control.db before its upgrade", "upgrading control.db: tables/2 (renamed)"
    assert set(said) == {copying, upgrading}
    assert min(said.count(copying), said.count(upgrading)) > 1
    assert said == sorted(said)


def test_only_the_newest_backups_are_kept(path):
    steps = [ONE, *[Migration(n, "more", f"CREATE TABLE t{n} (id text);") for n in range(2, 8)]]
    for count in range(1, 8):
        run(path, *steps[:count])

    assert backups(path) == [f"control.db.before-upgrade-tables{n}" for n in (4, 5, 6)]


def test_a_table_that_others_refer_to_can_be_rebuilt(path):
    child = Migration(
        2,
        "child",
        "ALTER TABLE notes ADD COLUMN body text; CREATE TABLE child (note text "
        "REFERENCES notes (id)); INSERT INTO child VALUES ('a');",
    )
    run(path, ONE, child)

    run(path, ONE, child, REBUILD)

    with apsw.Connection(str(path)) as db:
        assert db.execute("SELECT note, body FROM child JOIN notes ON id = note").fetchall() == [("a", None)]


FAILING = {"a statement fails": (BROKEN, "already exists"), "rows refer to nothing": (ORPHAN, "child")}


@pytest.mark.parametrize(("step", "words"), FAILING.values(), ids=FAILING)
def test_a_failing_step_leaves_the_ones_before_it_and_nothing_of_itself(path, step, words):
    with pytest.raises(MigrationFailed, match=f"tables/2.*{words}"):
        run(path, ONE, step)

    assert tables(path) == {"notes", "schema"}
    run(path, ONE, TWO)


def test_a_newer_database_is_refused_with_advice(path):
    run(path, ONE, TWO)

    with pytest.raises(SchemaTooNew, match="tables/2, this program knows tables/1: start the newer program"):
        run(path, ONE)
    assert backups(path) == []


def test_an_unknown_part_is_refused(path):
    run(path, ONE)
    db = open_writer(path)

    with pytest.raises(SchemaTooNew, match="tables/1"):
        migrate(db, path, {"other": [ONE]})
    db.close()


def test_a_script_that_changed_after_its_release_is_refused(path):
    run(path, ONE)

    with pytest.raises(SchemaChanged, match=r"tables/1 \(notes\)"):
        run(path, Migration(1, "notes", ONE.sql + " "), TWO)


@pytest.mark.parametrize("numbers", [(2,), (1, 3), (1, 1), (2, 1)])
def test_numbers_must_be_dense(numbers):
    with pytest.raises(ValueError, match="must be numbered"):
        pending({"tables": [Migration(number, "", "") for number in numbers]}, {})


def test_without_room_for_the_backup_nothing_is_upgraded(path, monkeypatch):
    run(path, ONE)

    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(migrate_module.os, "rename", no_room)
    with pytest.raises(OSError, match="No space"):
        run(path, ONE, TWO)
    monkeypatch.undo()

    assert sorted(p.name for p in path.parent.iterdir()) == ["control.db"]
    assert run(path, ONE, TWO) is not None


def test_a_backup_that_was_broken_off_is_made_again_from_the_start(path):
    run(path, ONE)
    path.with_name(f"{path.name}.backup-partial").write_bytes(b"half")

    backup = run(path, ONE, TWO)

    assert sorted(p.name for p in path.parent.iterdir()) == ["control.db", backup.name]
