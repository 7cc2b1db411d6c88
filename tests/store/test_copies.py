"""Copies of databases and files, and what SQLite's own examination finds in a database."""

from contextlib import closing

import apsw
import pytest

from edgestead.sqlite.connection import PAGE_BYTES, open_writer
from edgestead.sqlite.copies import (
    CHUNK_BYTES,
    FAULTS_MAX,
    HOLE_BYTES,
    STEP_PAGES,
    copy_database,
    copy_file,
    faults,
)

TABLES = """
CREATE TABLE notes (id integer PRIMARY KEY, body text);
CREATE INDEX bodies ON notes (body) WHERE id < 0;
CREATE TABLE marks (note integer REFERENCES notes (id));
INSERT INTO notes VALUES (1, 'good');
INSERT INTO marks VALUES (1);
"""
HARM = {
    "nothing": ("", []),
    "an index that lacks a row": (
        "PRAGMA writable_schema = ON; "
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX bodies ON notes (body)' WHERE name = 'bodies'",
        ["wrong # of entries in index bodies", "row 1 missing from index bodies"],
    ),
    "a reference to nothing": (
        "INSERT INTO marks VALUES (3)",
        ["row 2 of marks refers to a row of notes that is not there"],
    ),
    "a value that its table does not take": (
        "CREATE TABLE flags (flag integer CHECK (flag IN (0, 1))); "
        "PRAGMA ignore_check_constraints = ON; INSERT INTO flags VALUES (7)",
        ["CHECK constraint failed in flags"],
    ),
}


def database(path, sql):
    with closing(apsw.Connection(str(path))) as db:
        db.execute(TABLES + sql).fetchall()
    return path


@pytest.mark.parametrize(("sql", "found"), HARM.values(), ids=HARM)
def test_an_examination_tells_what_is_wrong_and_nothing_else(tmp_path, sql, found):
    assert faults(database(tmp_path / "x.db", sql)) == found


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_an_examination_changes_no_octet_of_what_a_killed_process_left(tmp_path, mode):
    writing = apsw.Connection(str(database(tmp_path / "x.db", f"PRAGMA journal_mode = {mode}")))
    writing.execute("PRAGMA cache_size = 1; BEGIN; INSERT INTO notes VALUES (2, zeroblob(100000))").fetchall()
    if mode == "WAL":
        writing.execute("COMMIT")
    (tmp_path / "killed").mkdir()
    for left in tmp_path.glob("x.db*"):
        if not left.name.endswith("-shm"):
            (tmp_path / "killed" / left.name).write_bytes(left.read_bytes())
    writing.close()
    before = {left.name: left.read_bytes() for left in (tmp_path / "killed").iterdir()}
    assert len(before) == 2

    faults(tmp_path / "killed" / "x.db")

    assert {name: (tmp_path / "killed" / name).read_bytes() for name in before} == before


def test_so_many_faults_are_told(tmp_path):
    many = "INSERT INTO marks VALUES (3);" * (FAULTS_MAX + 1)

    assert len(faults(database(tmp_path / "x.db", many))) == FAULTS_MAX


def test_a_file_that_is_no_database_is_a_fault(tmp_path):
    (tmp_path / "x.db").write_bytes(b"no database" * 1_000)

    assert len(faults(tmp_path / "x.db")) == 1


def filling(pages):
    return f"CREATE TABLE filling (bytes blob); INSERT INTO filling VALUES (zeroblob({pages * PAGE_BYTES}))"


PAGES = {"nothing": 0, "less than a step": 10, "several steps": 2 * STEP_PAGES + 10}


@pytest.mark.parametrize("pages", PAGES.values(), ids=PAGES)
def test_the_progress_of_a_copy_adds_up_to_its_size(tmp_path, pages):
    source, target, copied = tmp_path / "x.db", tmp_path / "copy.db", []
    database(
        source, f"CREATE TABLE filling (bytes blob); INSERT INTO filling VALUES (zeroblob({pages} * 4096))"
    )

    copy_database(source, target, copied.append)

    assert sum(copied) == target.stat().st_size == source.stat().st_size
    assert all(0 < step <= STEP_PAGES * PAGE_BYTES for step in copied)


def test_a_copy_is_of_one_moment_although_others_write_meanwhile(tmp_path):
    source, target = tmp_path / "x.db", tmp_path / "copy.db"
    database(
        source,
        f"CREATE TABLE filling (bytes blob); INSERT INTO filling VALUES (zeroblob({3 * STEP_PAGES} * 4096))",
    )

    with closing(open_writer(source)) as writer:
        copy_database(source, target, lambda _: writer.execute("INSERT INTO notes (body) VALUES ('later')"))
        written = writer.execute("SELECT count(*) FROM notes WHERE body = 'later'").get

    with closing(apsw.Connection(str(target))) as copy:
        assert copy.execute("SELECT body FROM notes").fetchall() == [("good",)]
        assert copy.pragma("journal_mode") == "delete"
    assert written == 4
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]


def test_a_copy_never_takes_the_place_of_something(tmp_path):
    database(tmp_path / "x.db", "")
    (tmp_path / "copy.db").write_bytes(b"kept")

    with pytest.raises(FileExistsError):
        copy_database(tmp_path / "x.db", tmp_path / "copy.db", lambda _: None)

    assert (tmp_path / "copy.db").read_bytes() == b"kept"


HOLE = bytes(HOLE_BYTES)
CONTENTS = {
    "nothing": b"",
    "a little": b"a",
    "a hole at the end": b"a" + bytes(3 * HOLE_BYTES),
    "a hole at the start": HOLE + b"a",
    "more than a chunk": b"a" * CHUNK_BYTES + HOLE + b"b" * HOLE_BYTES + HOLE,
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_copied_file_is_the_same_and_private(tmp_path, content):
    (tmp_path / "a").write_bytes(content)

    copy_file(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == content
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "upto", [0, 1, HOLE_BYTES, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 10 * CHUNK_BYTES]
)
def test_behind_its_end_a_copied_file_has_zeros(tmp_path, upto):
    content = b"a" * (2 * CHUNK_BYTES)
    (tmp_path / "a").write_bytes(content)

    copy_file(tmp_path / "a", tmp_path / "b", upto)

    assert (tmp_path / "b").read_bytes() == content[:upto].ljust(len(content), b"\0")


def test_zeros_take_no_room_in_a_copy(tmp_path):
    (tmp_path / "a").write_bytes(b"a" * HOLE_BYTES + bytes(CHUNK_BYTES))

    copy_file(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").stat().st_blocks * 512 < 2 * HOLE_BYTES
