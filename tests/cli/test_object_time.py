"""`edgecli object` and the past, the alarm, and copied folders."""

import json
import shutil

import pytest

from edgestead.testing.server import EdgeServer
from tests.cli.conftest import call
from tests.cli.test_object import NOTES, edgecli, objects_server
from tests.support.patience import patient

__all__ = ["edgecli", "objects_server"]
FAR = "2090-01-01T00:00:00Z"


def texts(name):
    rows = json.loads(call("object", "sql", "Notes", name, "SELECT text FROM notes", "--json").out)["rows"]
    return [text for (text,) in rows]


def test_a_mistake_is_taken_back_and_forth(edgecli):
    edgecli("object", "call", "Notes", "back", "add", "one")
    before = edgecli("object", "bookmark", "Notes", "back")
    edgecli("object", "call", "Notes", "back", "add", "mistake")
    assert (before.code, before.err) == (0, "")

    done = edgecli("object", "restore", "Notes", "back", before.out.strip(), "-y")
    assert (done.code, done.err) == (0, "Notes back is back. This undoes it:\n")
    assert texts("back") == ["one"]
    again = edgecli("object", "undo", "Notes", "back", "--yes")
    assert texts("back") == ["one", "mistake"]
    edgecli("object", "restore", "Notes", "back", again.out.strip(), "-y")
    assert texts("back") == ["one"]
    edgecli("object", "restore", "Notes", "back", done.out.strip(), "-y")
    assert texts("back") == ["one", "mistake"]


def test_an_answer_is_waited_for_before_anything_is_taken_back(edgecli):
    edgecli("object", "call", "Notes", "asks", "add", "one")
    edgecli("object", "call", "Notes", "asks", "add", "two")
    bookmark = edgecli("object", "bookmark", "Notes", "asks").out.strip()
    edgecli("object", "call", "Notes", "asks", "add", "three")

    assert call("object", "restore", "Notes", "asks", bookmark, stdin="n\n").out.endswith("Not restoring\n")
    assert call("object", "undo", "Notes", "asks").code == 1
    assert texts("asks") == ["one", "two", "three"]
    assert call("object", "restore", "Notes", "asks", bookmark, stdin="y\n").code == 0
    assert texts("asks") == ["one", "two"]


def test_the_timeline_draws_what_there_is_to_go_back_to(edgecli):
    for text in ("one", "two", "three"):
        edgecli("object", "call", "Notes", "drawn", "add", text)
    bookmark = edgecli("object", "bookmark", "Notes", "drawn").out.strip()

    drawn = edgecli("object", "timeline", "Notes", "drawn").out.splitlines()
    moments = json.loads(edgecli("object", "timeline", "Notes", "drawn", "--json").out)
    assert len(drawn) == 3 + len(moments)
    assert all(moment["bookmark"] in line for moment, line in zip(moments, drawn[3:], strict=True))
    assert moments[0]["bookmark"] == bookmark
    assert [moment["bookmark"] for moment in moments] == sorted(
        (moment["bookmark"] for moment in moments), reverse=True
    )
    assert f" * {bookmark}" in drawn[3].replace("  ", " ")
    assert len(edgecli("object", "timeline", "Notes", "drawn", "--limit", "1").out.splitlines()) == 4
    assert edgecli("object", "timeline", "Notes", "drawn", "--until", "1h").out.startswith("Nothing is kept")
    assert edgecli("object", "timeline", "Notes", "drawn", "--since", "1h").out.splitlines() == drawn


def test_an_alarm_is_shown_set_run_and_deleted(edgecli):
    edgecli("object", "call", "Notes", "alarm", "add", "one")

    assert edgecli("object", "alarm", "Notes", "alarm").out.split() == [
        *("time", "-", "retries", "0", "running", "no")
    ]
    shown = edgecli("object", "alarm", "Notes", "alarm", FAR)
    assert "2090-01-01T00:00:00.000Z" in shown.out
    assert "2090-01-01T00:00:00.000Z" in edgecli("object", "list", "Notes").out
    assert edgecli("object", "alarm", "Notes", "alarm", "--run").code == 0
    assert texts("alarm") == ["one", "rang"]
    none = edgecli("object", "alarm", "Notes", "alarm", "--run")
    assert (none.code, "has no alarm" in none.err) == (1, True)
    edgecli("object", "alarm", "Notes", "alarm", "2h")
    assert json.loads(edgecli("object", "alarm", "Notes", "alarm", "--delete", "--json").out)["time"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["restore", "Notes", "wrong"], 2, "Give a BOOKMARK, or --at TIME"),
        (["restore", "Notes", "wrong", "x", "--at", "1h"], 2, "Give a BOOKMARK, or --at TIME"),
        (["restore", "Notes", "wrong", "x", "-y"], 1, "is no bookmark"),
        (["restore", "Notes", "wrong", "--at", "soon", "-y"], 1, "is no time"),
        (["restore", "Notes", "wrong", "--at", "60d", "-y"], 1, "30 days"),
        (["bookmark", "Notes", "wrong", "--at", "2026-11-21"], 1, "zone"),
        (["bookmark", "Notes", "missing"], 1, "has no object missing"),
        (["undo", "Notes", "wrong", "-y"], 1, "never restored"),
        (["alarm", "Notes", "wrong", "1h", "--delete"], 2, "only one of them"),
        (["timeline", "Notes", "wrong", "--limit", "0"], 2, "limit"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(edgecli, words, code, said):
    edgecli("object", "call", "Notes", "wrong", "add", "one")

    done = edgecli("object", *words)

    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_copied_folder_is_adopted_before_it_starts(clean_environment, tmp_path, monkeypatch):
    (tmp_path / "notes.py").write_text(NOTES)
    flags = (*patient(tmp_path), "--objects", str(tmp_path / "notes.py"), "--objects-workers", "1")
    first = EdgeServer(tmp_path / "data", *flags).start()
    monkeypatch.setenv("EDGE_OBJECTS_ADDR", first.ready["objects"])
    monkeypatch.setenv("EDGE_TOKEN", first.ready["api_token"])
    call("object", "call", "Notes", "copied", "add", "one")
    bookmark = call("object", "bookmark", "Notes", "copied").out.strip()
    call("object", "call", "Notes", "copied", "add", "two")
    running = call("object", "adopt", "--data-dir", str(tmp_path / "data"))
    first.close()
    shutil.copytree(tmp_path / "data", tmp_path / "copy", symlinks=True)

    adopted = call("object", "adopt", "--data-dir", str(tmp_path / "copy"))
    copy = EdgeServer(tmp_path / "copy", *flags).start()
    try:
        monkeypatch.setenv("EDGE_OBJECTS_ADDR", copy.ready["objects"])
        later = call("object", "bookmark", "Notes", "copied").out.strip()
        done = call("object", "restore", "Notes", "copied", bookmark, "-y")
        assert (done.code, texts("copied")) == (0, ["one"]), done
    finally:
        copy.close()

    assert (running.code, "stop it first" in running.err) == (1, True), running
    assert (adopted.code, adopted.out) == (0, f"{tmp_path / 'copy'}: adopted 1 log of objects.\n")
    assert later > bookmark
    empty = call("object", "adopt", "--data-dir", str(tmp_path / "empty"))
    assert (empty.code, "no objects" in empty.err) == (1, True)


def test_what_is_no_bookmark_is_noticed_before_anything_is_asked(edgecli):
    done = edgecli("object", "restore", "Notes", "any", "yesterday", stdin="y\n")

    assert done.code == 1
    assert "'yesterday' is no bookmark: one is 8-8-16-8 hexadecimal digits" in done.err
    assert "--at 10m" in done.err
    assert "Take Notes any back" not in done.out + done.err
