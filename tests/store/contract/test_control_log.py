"""What every ControlLog promises."""

import hashlib

import pytest

from edgestead.store.controllog import (
    PART_BYTES,
    Diverged,
    Entry,
    Fenced,
    Kind,
    Position,
    chained,
    check_chain,
)
from tests.support.memory_log import MemoryControlLog
from tests.support.postgres import postgres, postgres_binaries

__all__ = ["postgres", "postgres_binaries"]


class MemoryLogs:
    def __init__(self):
        self.log = MemoryControlLog()

    def own(self, number):
        self.log.living.add(number)

    def disown(self, number):
        self.log.living.discard(number)


class PostgresLogs:
    def __init__(self, dsn):
        from edgestead.postgres.connection import Link
        from edgestead.postgres.controllog import PostgresControlLog

        self.log, self.link = PostgresControlLog(dsn), Link(dsn)

    def own(self, number):
        self.link.run(
            "INSERT INTO incarnations (number, node, kind, address, renewed) "
            "VALUES (%b, 'n', 'control', '', 0)",
            (number,),
        )

    def disown(self, number):
        self.link.run("DELETE FROM incarnations WHERE number = %b", (number,))


@pytest.fixture(params=["memory", "postgres"])
def logs(request):
    if request.param == "memory":
        yield MemoryLogs()
        return
    made = PostgresLogs(request.getfixturevalue("postgres").database())
    yield made
    made.log.close()
    made.link.close()


@pytest.fixture
def log(logs):
    logs.own(1)
    return logs.log


FIRST = Position(0, b"first")
DISORDERS = {
    "missing first": lambda made: made[1:],
    "missing": lambda made: [made[0], made[2]],
    "other": lambda made: [made[0], *entries(1, b"y", made[0].position), made[2]],
}


def entries(count, body=b"body", after=FIRST):
    made = []
    for _ in range(count):
        sequence = after.sequence + 1
        made.append(
            Entry(sequence, Kind.CHANGES, 7, chained(after.chain, sequence, Kind.CHANGES, body), 1, body)
        )
        after = made[-1].position
    return made


def test_what_was_appended_is_read_in_order(log):
    made = entries(5)
    for entry in made:
        log.append(1, entry)

    assert log.read(0) == made
    assert log.read(3) == made[3:]
    assert log.read(5) == []
    assert log.chain(2) == made[1].chain
    assert log.chain(6) is None
    assert check_chain(Position(0, b"first"), made) == made[-1].position


def test_a_read_is_cut_by_bytes_and_returns_at_least_one_entry(log):
    made = entries(4, b"x" * 1000)
    for entry in made:
        log.append(1, entry)

    assert log.read(0, 1) == made[:1]
    assert log.read(1, 2500) == made[1:3]


@pytest.mark.parametrize("octets", [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES])
def test_a_body_of_any_size_comes_back(log, octets):
    (made,) = entries(1, b"x" * octets)

    log.append(1, made)

    assert log.read(0) == [made]


@pytest.mark.parametrize("octets", [10, 2 * PART_BYTES])
def test_a_process_without_its_row_appends_nothing(logs, log, octets):
    first, second = entries(2, b"x" * octets)
    log.append(1, first)
    logs.disown(1)

    with pytest.raises(Fenced):
        log.append(1, second)
    logs.own(2)
    log.append(2, second)

    assert log.read(0) == [first, second]


def test_a_sequence_is_appended_once(log):
    first, second = entries(2)
    log.append(1, first)

    with pytest.raises(Fenced):
        log.append(1, first)
    log.append(1, second)

    assert log.read(0) == [first, second]


def test_a_base_is_whole_and_the_first_of_its_position_stays(log):
    assert log.newest_base() is None
    log.put_base(Position(0, b"chain"), [b"one", b"two"])
    log.put_base(Position(0, b"other"), [b"three"])

    base = log.newest_base()

    assert base.position == Position(0, b"chain")
    assert list(log.read_base(base)) == [b"one", b"two"]
    assert base.sha256 == hashlib.sha256(b"onetwo").digest()


def test_a_base_that_fails_on_its_way_is_not_there(log):
    def parts():
        yield b"one"
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        log.put_base(Position(0, b"chain"), parts())

    assert log.newest_base() is None


def test_an_entry_that_would_leave_a_gap_is_refused(log):
    """Its predecessor was lost in a failover: nobody could ever follow."""
    made = entries(4)
    log.append(1, made[0])

    with pytest.raises(Fenced):
        log.append(1, made[2])
    assert log.read(0) == made[:1]


@pytest.mark.parametrize("position", [Position(2, b"another"), Position(3, b"ahead")])
def test_a_base_of_what_is_not_the_logs_is_refused(log, position):
    """Of a copy that has what a failover lost: whoever loads it could not go on from there."""
    for entry in entries(2):
        log.append(1, entry)

    with pytest.raises(Diverged):
        log.put_base(position, [b"part"])
    assert log.newest_base() is None


def test_what_follows_the_newest_base_is_counted(log):
    assert log.since_base() == (0, None)
    made = entries(3, b"x" * 10) + entries(1, b"y" * (PART_BYTES + 5), entries(3, b"x" * 10)[-1].position)
    for entry in made:
        log.append(1, entry)

    assert log.since_base() == (30 + PART_BYTES + 5, 1)
    log.put_base(made[2].position, [b"part"])
    assert log.since_base() == (PART_BYTES + 5, 1)


def test_what_lies_before_the_last_but_one_base_goes(log):
    made = entries(6)
    for entry in made:
        log.append(1, entry)
    for entry in (made[1], made[3], made[5]):
        log.put_base(entry.position, [b"part"])

    log.trim()

    assert log.read(0) is None
    assert log.read(3) is None
    assert log.read(4) == made[4:]
    assert log.newest_base().position == made[5].position


@pytest.mark.parametrize("disorder", DISORDERS)
def test_entries_that_do_not_continue_a_copy_are_refused(disorder):
    with pytest.raises(Diverged):
        check_chain(FIRST, DISORDERS[disorder](entries(3)))
