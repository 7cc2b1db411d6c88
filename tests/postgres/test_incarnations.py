"""The rows of control processes: what each statement does when its question has been overtaken.

The random schedules of `tests/cluster` run against a model of these statements; here are the conditions that
the model takes for granted.
"""

from contextlib import closing

import pytest

from edgestead.cluster.members import ADMITTED, FENCED, JOINING, Row
from edgestead.cluster.office import Holder
from edgestead.cluster.seat import Admit, Claim, Delete, Fence, Poll, Register, Renew
from edgestead.postgres.controllog import PostgresControlLog
from edgestead.postgres.incarnations import Clerk, bury
from edgestead.store.controllog import Entry, Fenced, Kind

pytestmark = pytest.mark.usefixtures("patient_leases")


@pytest.fixture
def dsn(postgres):
    return postgres.database()


@pytest.fixture
def clerks(dsn):
    """Of three nodes, each registered as 1, 2, 3."""
    with (
        closing(Clerk(dsn, "a", "")) as a,
        closing(Clerk(dsn, "b", "")) as b,
        closing(Clerk(dsn, "c", "")) as c,
    ):
        assert [clerk.answer(Register(None)) for clerk in (a, b, c)] == [1, 2, 3]
        yield a, b, c


def rows(clerk):
    return clerk.answer(Poll()).rows


def test_only_the_leader_of_now_admits(clerks):
    """Every later leader finds the row of who was admitted: one that leads already has looked."""
    a, b, c = clerks
    assert a.answer(Claim(1, None))
    assert b.answer(Claim(2, Holder(1, 0)))

    assert not c.answer(Admit(3, leader=1))
    assert rows(c)[3].kind == JOINING
    assert c.answer(Admit(3, leader=2))
    assert rows(c)[3].kind == ADMITTED


def test_a_holder_that_has_renewed_since_keeps_the_office(clerks):
    a, b, c = clerks
    assert a.answer(Claim(1, None))
    seen = b.answer(Poll()).holder
    assert a.answer(Renew(1))

    assert not b.answer(Claim(2, seen))
    assert not c.answer(Claim(3, None))
    assert c.answer(Poll()).holder == Holder(1, 1)
    assert b.answer(Claim(2, Holder(1, 1)))
    assert not a.answer(Renew(1))


def test_a_row_that_was_renewed_since_is_not_deleted(clerks):
    a, b, _ = clerks
    assert a.answer(Claim(1, None))
    assert b.answer(Renew(2))

    assert a.answer(Delete(1, {2: Row(0, JOINING), 3: Row(0, JOINING)})) == [3]
    assert set(rows(a)) == {1, 2}
    assert b.answer(Renew(2))


def test_who_was_fenced_is_renewed_admitted_and_elected_no_more(clerks):
    a, b, c = clerks
    assert a.answer(Claim(1, None))
    a.answer(Fence(1, (2,)))

    assert rows(a)[2] == Row(0, FENCED)
    assert not b.answer(Renew(2))
    assert not b.answer(Admit(2, leader=1))
    assert not b.answer(Claim(2, Holder(1, 0)))
    assert c.answer(Poll()).holder == Holder(1, 0)


def test_a_leader_whose_row_is_gone_fences_deletes_and_appends_nothing(clerks, dsn):
    a, b, _ = clerks
    assert a.answer(Claim(1, None))
    assert b.answer(Claim(2, Holder(1, 0)))

    a.answer(Fence(1, (2, 3)))
    assert a.answer(Delete(1, {3: Row(0, JOINING)})) == []
    assert rows(b) == {2: Row(0, ADMITTED), 3: Row(0, JOINING)}
    with closing(PostgresControlLog(dsn)) as log:
        with pytest.raises(Fenced):
            log.append(1, Entry(1, Kind.CHANGES, 0, b"chain", 0, b"late"))
        log.append(2, Entry(1, Kind.CHANGES, 0, b"chain", 0, b"of the leader"))
        assert [entry.body for entry in log.read(0)] == [b"of the leader"]


def test_the_next_process_of_a_node_frees_the_office_of_the_one_before_it_and_no_other(clerks, dsn):
    """It has the node's folder, so that one is dead."""
    a, b, _ = clerks
    assert a.answer(Claim(1, None))

    bury(dsn, "b")
    assert b.answer(Poll()).holder == Holder(1, 0)
    bury(dsn, "a")
    assert b.answer(Poll()).holder is None
    assert set(rows(b)) == {2, 3}
    assert b.answer(Claim(2, None))


def test_who_is_ready_to_lead_connects_to_nothing_when_it_appends(clerks, dsn):
    """Its predecessor is dead, and every writer waits for its first entry."""
    a, _, _ = clerks
    assert a.answer(Claim(1, None))
    opened = []
    with closing(PostgresControlLog(dsn)) as log:
        link = log._appending
        connect = link._open
        link._open = lambda: opened.append(1) or connect()
        log.get_ready()
        log.get_ready()
        assert opened == [1]
        link.cut()  # while it is idle
        log.get_ready()
        assert opened == [1, 1]

        log.append(1, Entry(1, Kind.CHANGES, 0, b"chain", 0, b"of the leader"))
    assert opened == [1, 1]


def test_who_cannot_be_made_ready_waits_for_its_turn():
    with closing(PostgresControlLog("host=/nowhere dbname=x")) as log:
        log.get_ready()
