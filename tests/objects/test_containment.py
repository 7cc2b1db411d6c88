"""When a class gets a process of its own, and when it goes back: the table, and the file that others read."""

import errno
import random
from pathlib import Path

import pytest

from edgestead.objects.runtime.containment import QUIET_SECONDS, SUSPECTED_SECONDS, Row, after_end, is_over
from edgestead.server.objects.apart import FILES, Apart, is_used, read
from edgestead.server.objects.shared import locked
from edgestead.sqlite.objectlog.files import LocalFiles
from tests.server.small_disk import fill, small_disk, why_not

SECOND_US = 1_000_000
OWN, SIGNAL = True, False
# seconds and kinds of ends; what follows
ENDS: list[tuple[list[tuple[int, bool]], str]] = [
    ([(0, OWN)], "apart"),
    ([(0, SIGNAL)], "suspected"),
    ([(0, SIGNAL), (SUSPECTED_SECONDS, SIGNAL)], "apart"),
    ([(0, SIGNAL), (SUSPECTED_SECONDS + 1, SIGNAL)], "suspected"),
    ([(0, SIGNAL), (1, OWN)], "apart"),
    ([(0, OWN), (1, SIGNAL)], "apart"),
]


class Clock:
    def __init__(self) -> None:
        self.us = 1_700_000_000 * SECOND_US

    def __call__(self) -> int:
        return self.us

    def go(self, seconds: float) -> None:
        self.us += int(seconds * SECOND_US)


@pytest.mark.parametrize(("ends", "state"), ENDS)
def test_an_own_end_or_two_by_signals_put_a_class_apart(ends: list[tuple[int, bool]], state: str) -> None:
    row: Row | None = None
    for seconds, is_own in ends:
        row = after_end(row, "Bad", seconds * SECOND_US, is_own=is_own)
    assert row is not None
    assert row.state == state


def test_a_class_is_back_after_a_quiet_time_when_none_of_its_objects_is_there() -> None:
    row = after_end(None, "Bad", 0, is_own=True)
    early, late = QUIET_SECONDS * SECOND_US, (QUIET_SECONDS + 1) * SECOND_US
    assert not is_over(row, early, has_objects=False)
    assert not is_over(row, late, has_objects=True)
    assert is_over(row, late, has_objects=False)
    assert not is_over(after_end(row, "Bad", late, is_own=False), late + 1, has_objects=False)


def test_at_random_the_file_agrees_with_a_second_account(tmp_path: Path) -> None:
    """Two processes that write, one that only looks; a class is apart when the account says so."""
    chance, clock = random.Random(5), Clock()
    writers = [Apart(tmp_path, now_us=clock) for _ in range(2)]
    reader = Apart(tmp_path, now_us=clock)
    apart: dict[str, int] = {}
    suspected: dict[str, int] = {}
    for _ in range(400):
        clock.go(chance.choice((1, 60, SUSPECTED_SECONDS / 2, QUIET_SECONDS / 2)))
        name, is_own = chance.choice("ABC"), chance.random() < 0.2
        if chance.random() < 0.3:
            has = {one for one in "ABC" if chance.random() < 0.3}
            writers[1].look()
            writers[1].tend(lambda one, has=has: one in has)  # type: ignore[misc]
            gone = {
                one
                for one, us in apart.items()
                if clock.us - us > QUIET_SECONDS * SECOND_US and one not in has
            }
            apart = {one: us for one, us in apart.items() if one not in gone}
        else:
            writers[0].note_end(name, is_own=is_own)
            last_us = suspected.get(name, -SUSPECTED_SECONDS * SECOND_US * 9)
            is_second = clock.us - last_us <= SUSPECTED_SECONDS * SECOND_US
            if is_own or name in apart or is_second:
                apart[name] = clock.us
                suspected.pop(name, None)
            else:
                suspected[name] = clock.us
        reader.look()
        assert reader.classes == frozenset(apart)
        assert frozenset(Apart(tmp_path, now_us=clock).classes) == reader.classes
        assert is_used(tmp_path) == bool(apart)


def test_an_operators_word_ends_the_quiet_time_at_once(tmp_path: Path) -> None:
    one = Apart(tmp_path)
    one.note_end("Bad", is_own=True)
    assert not one.returning()
    assert one.release("Bad")
    assert not one.release("Good")
    assert one.returning() == ["Bad"]
    one.tend(lambda name: True)
    assert one.classes == {"Bad"}
    one.tend(lambda name: False)
    assert not one.classes
    assert not read(tmp_path)


def test_what_an_operator_keeps_apart_is_not_written_down(tmp_path: Path) -> None:
    one = Apart(tmp_path, fixed=("Bad",))
    assert not one.note_end("Bad", is_own=True)
    assert not any((tmp_path / name).exists() for name in FILES)


def test_without_leave_no_class_goes_apart_but_one_that_is_stays(tmp_path: Path) -> None:
    Apart(tmp_path).note_end("Bad", is_own=True)
    one = Apart(tmp_path, may_begin=False)
    assert not one.note_end("Other", is_own=True)
    assert one.classes == {"Bad"}


def test_a_file_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / FILES[0]).write_text("{")
    with pytest.raises(OSError, match="cannot be read"):
        Apart(tmp_path)
    assert is_used(tmp_path), "who starts processes starts it, and it says what is wrong"


def test_a_change_that_could_not_be_read_is_read_with_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Apart(tmp_path)
    Apart(tmp_path).note_end("Bad", is_own=True)

    def no_descriptor(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "open", no_descriptor)
        with pytest.raises(OSError, match="Too many"):
            reader.look()

    assert reader.look()
    assert reader.classes == {"Bad"}


def test_what_an_older_release_wrote_is_read_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / FILES[0]).write_text(
        '{"classes":[{"class":"Old","state":"apart","ends":1,"since_us":1,"last_us":2}]}'
    )
    one = Apart(tmp_path)
    assert one.classes == {"Old"}
    one.note_end("Bad", is_own=True)
    one.note_end("Worse", is_own=True)
    assert Apart(tmp_path).classes == {"Old", "Bad", "Worse"}


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_class_goes_apart_on_a_full_disk(tmp_path: Path) -> None:
    """It ended every process that others share again and again, one second each, until there was space."""
    with small_disk(tmp_path / "disk", 1) as disk:
        one = Apart(disk)
        one.take_room()
        with locked(disk / "lock"):
            one.take_room()
        fill(disk)
        for name in ("Bad", "Worse"):
            assert one.note_end(name, is_own=True)
        assert Apart(disk).classes == {"Bad", "Worse"}
