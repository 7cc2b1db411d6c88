"""A database that somebody else holds, and errors of SQLite's that mean that storage itself failed."""

import threading
from contextlib import closing

import apsw
import pytest

from edgestead.model.refusals import DiskFull, Unavailable
from edgestead.sqlite.connection import (
    CACHE_KIB,
    PAGE_BYTES,
    SPARING_PAGES,
    let_journal_grow,
    open_reader,
    open_writer,
)
from edgestead.sqlite.control import SqliteControlStore

SPARING_BYTES = SPARING_PAGES * PAGE_BYTES
FULL = 2  # of `synchronous`
HELD_SECONDS = 0.03  # long enough for whoever does not wait to have failed

USES = {
    "a writer": (open_writer, "BEGIN EXCLUSIVE"),
    "a reader": (open_reader, "SELECT count(*) FROM sqlite_schema"),
}


@pytest.mark.parametrize(("opened", "statement"), USES.values(), ids=USES)
def test_a_database_that_a_shell_holds_is_waited_for(tmp_path, opened, statement):
    path = tmp_path / "control.db"
    with closing(apsw.Connection(str(path))) as shell:
        shell.execute("CREATE TABLE notes (id text)")
        with closing(opened(path)) as db:
            shell.execute("BEGIN EXCLUSIVE")
            release = threading.Timer(HELD_SECONDS, shell.execute, ["ROLLBACK"])
            release.start()
            try:
                db.execute(statement).fetchall()
            finally:
                release.join()


@pytest.mark.parametrize("opened", [open_writer, open_reader])
def test_a_statement_keeps_its_plan_whatever_is_bound(tmp_path, opened):
    path = tmp_path / "control.db"
    open_writer(path).close()
    with closing(opened(path)) as db:
        assert db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1


FAILED = {
    "held": (apsw.BusyError("database is locked"), Unavailable),
    "damaged": (apsw.CorruptError("malformed"), Unavailable),
    "a full disk": (apsw.FullError("database or disk is full"), DiskFull),
}


@pytest.mark.parametrize(("error", "heard"), FAILED.values(), ids=FAILED)
def test_a_write_that_storage_fails_hears_unavailable_and_its_cause(tmp_path, error, heard):
    def fails(tx):
        raise error

    with closing(SqliteControlStore(tmp_path / "control.db")) as store:
        refusal = store.write(fails).exception(60)
        assert store.write(lambda tx: "works").result(60).value == "works"

    assert type(refusal) is heard
    assert refusal.__cause__ is error


def test_a_journal_that_may_grow_keeps_its_room_and_one_that_may_not_gives_it_back(tmp_path):
    path = tmp_path / "control.db"
    journal = path.with_name("control.db-wal")
    with closing(open_writer(path)) as db:
        db.execute("CREATE TABLE notes (body blob)")
        db.execute("INSERT INTO notes VALUES (zeroblob(?))", (8 * SPARING_BYTES,))
        grown = journal.stat().st_size
        for grow in (True, False):
            let_journal_grow(db, grow)
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            db.execute("INSERT INTO notes VALUES (zeroblob(1))")
            assert (journal.stat().st_size == grown) is grow

    assert grown > 8 * SPARING_BYTES


def test_a_double_quoted_text_is_a_name_and_never_a_string(tmp_path):
    with closing(open_writer(tmp_path / "control.db")) as db:
        db.execute("CREATE TABLE notes (id text)")
        for statement in ('SELECT "nothing" FROM notes', 'CREATE INDEX i ON notes ("nothing")'):
            with pytest.raises(apsw.SQLError, match="no such column"):
                db.execute(statement).fetchall()


@pytest.mark.parametrize("opened", [open_writer, open_reader])
def test_a_schema_of_somebody_elses_may_do_nothing_but_hold_rows(tmp_path, opened):
    """What an operator put into a file runs with the rights of the server that opens it."""
    path = tmp_path / "control.db"
    with closing(apsw.Connection(str(path))) as theirs:
        theirs.execute("CREATE TABLE notes (id text); CREATE VIEW odd AS SELECT risky() FROM notes")
    with closing(opened(path)) as db:
        db.create_scalar_function("risky", lambda: 1)
        with pytest.raises(apsw.SQLError, match="unsafe use of risky"):
            db.execute("SELECT * FROM odd").fetchall()
        db.execute("PRAGMA writable_schema = ON").fetchall()
        with pytest.raises(apsw.Error, match="may not be modified"):
            db.execute("DELETE FROM sqlite_schema").fetchall()


@pytest.mark.parametrize("opened", [open_writer, open_reader])
def test_a_connection_keeps_as_many_pages_as_it_says(tmp_path, opened):
    open_writer(tmp_path / "control.db").close()
    with closing(opened(tmp_path / "control.db")) as db:
        assert db.pragma("cache_size") == -CACHE_KIB


def test_a_commit_is_on_the_disk_and_references_hold(tmp_path):
    with closing(open_writer(tmp_path / "control.db")) as db:
        assert (db.pragma("journal_mode"), db.pragma("synchronous")) == ("wal", FULL)
        db.execute("CREATE TABLE notes (id text PRIMARY KEY, above text REFERENCES notes (id))")
        with pytest.raises(apsw.ConstraintError):
            db.execute("INSERT INTO notes VALUES ('a', 'nobody')").fetchall()
