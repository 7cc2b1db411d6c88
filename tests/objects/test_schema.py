"""The books of an object log: older ones are brought up after a copy, newer ones refused in words."""

import itertools
import random
from pathlib import Path

import apsw
import pytest

from edgestead.sqlite import migrate
from edgestead.sqlite.objectlog.checking import check_folder
from edgestead.sqlite.objectlog.files import LocalFiles
from edgestead.sqlite.objectlog.local import LocalObjectLog
from edgestead.sqlite.objectlog.paths import catalogue_path, history_path
from edgestead.store.migrations import Doing, quiet
from edgestead.store.objectlog import LogError
from edgestead.store.runner import InlineRunner
from tests.objects.logs import SEGMENT_BYTES, kept, keys, put, ref

_LIVES = ("folder.life", "folder.life_before", "folder.life_since", "folder.device", "folder.inode")
_SESSIONS = ("objects.session", "objects.target_session", "objects.target_position")
_UNNUMBERED = "DROP TABLE schema"
_UNMARKED = "ALTER TABLE folder DROP COLUMN marked"
OLDER = {  # statements that make of the catalogue, and of history, what an earlier version left
    "before numbers": ([_UNNUMBERED, _UNMARKED], [_UNNUMBERED]),
    "before history knew whether it had begun": (
        [_UNNUMBERED, _UNMARKED],
        [_UNNUMBERED, "DROP TABLE begun"],
    ),
    "before there were lives": (
        [_UNNUMBERED, _UNMARKED]
        + ["ALTER TABLE {} DROP COLUMN {}".format(*one.split(".")) for one in (*_LIVES, *_SESSIONS)],
        [_UNNUMBERED, "DROP TABLE begun"],
    ),
}
BOOKS = {"catalogue.db": catalogue_path, "history.db": history_path}


def open_log(folder: str, segment_bytes: int = SEGMENT_BYTES, doing: Doing = quiet) -> LocalObjectLog:
    def fatal(error: BaseException) -> None:
        raise error

    return LocalObjectLog(
        folder,
        files=LocalFiles(),
        commits=InlineRunner(),
        upkeep=InlineRunner(),
        now_us=itertools.count(1_000_000, 1_000).__next__,
        random=random.Random(1).randbytes,
        fatal=fatal,
        segment_bytes=segment_bytes,
        doing=doing,
    )


def run(path: str, statements: list[str]) -> None:
    book = apsw.Connection(path)
    for statement in statements:
        book.execute(statement).fetchall()
    book.close()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """One of this version, with two commits."""
    log = open_log(str(tmp_path))
    lease = log.lease(ref())
    put(log, lease, keys(a=b"1"), keys(b=b"2"))
    log.close()
    return str(tmp_path)


def test_an_upgrade_says_what_it_does(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts a process gives it time as long as it hears that something goes on."""
    monkeypatch.setattr(migrate, "STEPS_TOLD", 1)
    for make, statements in zip(BOOKS.values(), OLDER["before there were lives"], strict=True):
        run(make(folder), statements)
    said: list[str] = []

    open_log(folder, doing=said.append).close()

    for book in BOOKS:
        assert f"copying {book} before its upgrade" in said
        assert any(words.startswith(f"upgrading {book}: ") for words in said)


@pytest.mark.parametrize("version", OLDER)
def test_a_folder_of_an_earlier_version_is_brought_up_after_a_copy(folder: str, version: str) -> None:
    for make, statements in zip(BOOKS.values(), OLDER[version], strict=True):
        run(make(folder), statements)

    log = open_log(folder)

    assert log.lease(ref()).tail == {"a": b"1", "b": b"2"}
    assert [one.position for one in kept(log, ref(), 0, 2)] == [1, 2]
    log.close()
    assert check_folder(folder) == []
    copies = {path.name.partition(".before")[0] for path in Path(folder, "log").glob("*.before-upgrade-*")}
    assert copies == {book for book, steps in zip(BOOKS, OLDER[version], strict=True) if len(steps) > 1}


@pytest.mark.parametrize("version", OLDER)
def test_an_older_folder_is_examined_without_a_change(folder: str, version: str) -> None:
    for make, statements in zip(BOOKS.values(), OLDER[version], strict=True):
        run(make(folder), statements)
    before = [Path(make(folder)).read_bytes() for make in BOOKS.values()]

    assert check_folder(folder) == []

    assert [Path(make(folder)).read_bytes() for make in BOOKS.values()] == before
    assert not list(Path(folder, "log").glob("*.before-upgrade-*"))


@pytest.mark.parametrize("book", BOOKS)
def test_a_newer_schema_is_refused_in_a_line_that_names_the_file(folder: str, book: str) -> None:
    path = BOOKS[book](folder)
    run(path, ["INSERT INTO schema SELECT part, 99, 'later', 'checksum' FROM schema LIMIT 1"])
    before = Path(path).read_bytes()

    with pytest.raises(LogError, match=rf"{book}.*start the newer program") as refusal:
        open_log(folder)

    assert "\n" not in str(refusal.value)
    assert check_folder(folder) == [str(refusal.value)]
    assert Path(path).read_bytes() == before
