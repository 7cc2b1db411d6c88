"""The control log in a cluster's database, while other nodes store bases and delete what these replace."""

from contextlib import closing

import pytest

from edgestead.postgres import controllog
from edgestead.postgres.connection import Link
from edgestead.postgres.controllog import PostgresControlLog
from edgestead.store.controllog import PART_BYTES, Entry, Kind


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
