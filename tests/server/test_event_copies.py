"""A copy of event files ends with a whole line, whatever their writer and its rotation do meanwhile."""

import stat

import pytest

from edgestead.server.event_copies import bytes_of_events, copy_events

LINE = b'{"id":"1"}\n'
LONG = b"x" * (3 << 20)  # over the bounds of what is read at once
COPIED = {  # what a file holds, and how many pieces of that its copy does
    "whole lines": ((LINE, LINE), 2),
    "a line that is being written": ((LINE, b'{"id":"2'), 1),
    "only a beginning": ((b'{"id"',), 0),
    "nothing": ((), 0),
    "a long line": ((LINE, LONG, b"\n", LINE, b"y"), 4),
    "a long line that is being written": ((LINE, LONG), 1),
}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "events"
    made.mkdir()
    return made


@pytest.mark.parametrize(("pieces", "copied"), COPIED.values(), ids=COPIED)
def test_only_whole_lines_are_copied(folder, tmp_path, pieces, copied):
    held = b"".join(pieces)
    (folder / "edge-0-1.jsonl").write_bytes(held)
    moved = []

    copy_events(folder, tmp_path / "copy", moved.append)

    made = tmp_path / "copy" / "edge-0-1.jsonl"
    assert made.read_bytes() == b"".join(pieces[:copied])
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert sum(moved) == bytes_of_events(folder) == len(held)


def test_what_is_written_after_the_file_was_looked_at_is_not_waited_for(folder, tmp_path):
    first, second = (folder / f"edge-0-{number}.jsonl" for number in (1, 2))
    for path in (first, second):
        path.write_bytes(LINE)

    def meanwhile(_):
        for path in folder.iterdir():
            path.write_bytes(LINE * 3)

    copy_events(folder, tmp_path / "copy", meanwhile)

    assert (tmp_path / "copy" / first.name).read_bytes() == LINE


def test_a_file_that_goes_meanwhile_is_not_missed(folder, tmp_path):
    first, second = (folder / f"edge-0-{number}.jsonl" for number in (1, 2))
    for path in (first, second):
        path.write_bytes(LINE)

    copy_events(folder, tmp_path / "copy", lambda _: second.unlink(missing_ok=True))

    assert [path.name for path in (tmp_path / "copy").iterdir()] == [first.name]


def test_without_events_there_is_nothing(tmp_path):
    copy_events(tmp_path / "events", tmp_path / "copy", lambda _: None)

    assert not (tmp_path / "copy").exists()
