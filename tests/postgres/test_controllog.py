"""The control log in a cluster's database, while other nodes store bases and delete what these replace."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from edgestead.model.refusals import Unavailable
from edgestead.postgres import controllog
from edgestead.postgres.connection import Link
from edgestead.postgres.controllog import PostgresControlLog
from edgestead.store.controllog import PART_BYTES, Entry, Kind

PATIENCE_SECONDS = 60


def entry(sequence, body=b"body"):
    return Entry(sequence, Kind.CHANGES, 0, b"chain %d" % sequence, 0, body)


@pytest.fixture
def log(postgres):
    dsn = postgres.database()
    with closing(Link(dsn)) as link, closing(PostgresControlLog(dsn)) as made:
        link.run(
            "INSERT INTO incarnations (number, node, kind, address, renewed) VALUES (1, '', 'control', '', 0)"
        )
        yield made


@pytest.fixture
def other(log):
    with closing(PostgresControlLog(log._reading.dsn)) as made:
        yield made


def before(monkeypatch, statement, act):
    """Do something once, before the log's next statement that begins so."""
    execute = Link._execute

    def hooked(link, asked, *arguments, **more):
        if asked.startswith(statement):
            monkeypatch.setattr(Link, "_execute", execute)
            act()
        return execute(link, asked, *arguments, **more)

    monkeypatch.setattr(Link, "_execute", hooked)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(controllog.LIST_ENTRIES, id="before the entries"),
        pytest.param(controllog.LIST_PARTS, id="before the parts of one"),
    ],
)
def test_entries_that_are_deleted_while_they_are_read_are_not_the_end_of_the_log(
    log, other, monkeypatch, step
):
    """Who reads nothing has all of it, and may lead."""
    made = [entry(1, b"x" * (PART_BYTES + 1)), *map(entry, range(2, 6))]
    for one in made:
        log.append(1, one)
    for one in (made[1], made[3]):
        log.put_base(one.position, [b"base"])

    before(monkeypatch, step, other.trim)

    assert log.read(0, 1) == made[:1]
    assert log.read(0) is None


def test_a_base_that_takes_long_to_store_keeps_nobody_from_the_log(log):
    """As who takes the office, which reads it first."""
    made = [entry(1), entry(2)]
    for one in made:
        log.append(1, one)

    with ThreadPoolExecutor() as threads:

        def parts():
            yield b"part"
            reading = threads.submit(log.read, 0)
            yield b"another"
            assert reading.result(PATIENCE_SECONDS) == made

        log.put_base(made[1].position, parts())

    assert log.newest_base().parts == 2


def test_closing_the_log_does_not_wait_for_a_base(log):
    with ThreadPoolExecutor() as threads:
        closing_ = []

        def parts():
            yield b"part"
            closing_.append(threads.submit(log.close))
            while True:
                yield b"another"

        with pytest.raises(Unavailable):
            log.put_base(entry(1).position, parts())
        closing_[0].result(PATIENCE_SECONDS)

    assert log.newest_base() is None
