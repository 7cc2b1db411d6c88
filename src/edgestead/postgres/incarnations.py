"""The rows by which processes of a cluster own things: what a control process asks, as statements.

Owns  the SQL of registering, renewing, claiming, fencing; which of it waits for a standby.
Not   when it is asked (`cluster.seat`).

What a process writes holds its row FOR KEY SHARE, and a deletion waits for that: once a row is gone, no
append and no key-value of its process can land. `renewed` is no key column, so renewals wait for nobody.
Numbers are never used twice.
"""

import logging
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple

import psycopg

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.members import Row
from edgestead.cluster.office import Holder
from edgestead.cluster.seat import (
    Admit,
    Ask,
    Claim,
    Delete,
    Failed,
    Fence,
    Forget,
    Poll,
    Register,
    Renew,
    View,
)
from edgestead.model.seldom import Seldom
from edgestead.postgres.connection import IDLE_LIMIT, Link, Misconfigured, Trouble

CONTROL_SLOT: Final = -1
DEADLINE_SECONDS: Final = 0.9  # below half a lease: a statement that hangs must not end it unnoticed
IDLE_MS_MAX: Final = 1_000  # of a transaction that others wait for, and whose process stands still
# An owner's row, held by a statement until its end: `me` has a row while the process has, and always where it
# says None, for who needs none. In a longer transaction the statement is the last one before COMMIT.
HELD: Final = (
    f"mine AS (SELECT number, set_config('{IDLE_LIMIT}', '{IDLE_MS_MAX}', true) FROM incarnations "
    "WHERE number = %b::bigint FOR KEY SHARE), "
    "me AS (SELECT 1 WHERE %b::bigint IS NULL UNION ALL SELECT 1 FROM mine)"
)
KINDS: Final = "('joining', 'control', 'fenced')"

SELECT_HOLDER = "SELECT incarnation FROM slots WHERE slot = -1 FOR UPDATE"
SELECT_NODE = "SELECT node FROM incarnations WHERE number = %b"
# Nodes without control may answer by what a dead process granted them, until its own lease would have ended.
HAS_EDGES = "EXISTS (SELECT 1 FROM nodes WHERE position('control' IN roles) = 0)"
SELECT_HAS_EDGES = f"SELECT {HAS_EDGES}"
DELETE_ROW = "DELETE FROM incarnations WHERE number = %b"
DELETE_UNLESS_RENEWED = "DELETE FROM incarnations WHERE number = %b AND renewed = %b"
FREE_SLOT = "UPDATE slots SET incarnation = NULL WHERE slot = -1"
NEXT_NUMBER = "UPDATE cluster SET incarnations = incarnations + 1 RETURNING incarnations"
INSERT_ROW = (
    "INSERT INTO incarnations (number, node, kind, address, renewed) VALUES (%b, %s, 'joining', %s, 0)"
)
RENEW = "UPDATE incarnations SET renewed = renewed + 1 WHERE number = %b AND kind <> 'fenced'"
LIST = (
    "SELECT s.incarnation, s.wanted, i.number, i.node, i.kind, i.renewed, i.address FROM slots s "
    f"LEFT JOIN incarnations i ON i.kind IN {KINDS} WHERE s.slot = -1"
)
ADMIT = (
    "WITH office AS (SELECT incarnation FROM slots WHERE slot = -1 AND incarnation = %b FOR SHARE) "
    "UPDATE incarnations SET kind = 'control' FROM office WHERE number = %b AND kind <> 'fenced'"
)
TAKE_SLOT = "UPDATE slots SET incarnation = %b, wanted = NULL WHERE slot = -1"
SET_ADMITTED = "UPDATE incarnations SET kind = 'control' WHERE number = %b AND kind <> 'fenced'"
FENCE = (
    "WITH me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE) "
    "UPDATE incarnations i SET kind = 'fenced' FROM me WHERE i.number = ANY (%b::bigint[])"
)
DELETE_ROWS = (
    "WITH me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE) "
    "DELETE FROM incarnations i USING me, unnest(%b::bigint[], %b::bigint[]) AS silent (number, renewed) "
    "WHERE i.number = silent.number AND i.renewed = silent.renewed RETURNING i.number"
)
FORGET = f"DELETE FROM incarnations WHERE node = %s AND number <> %b AND kind IN {KINDS} AND NOT {HAS_EDGES}"
SET_WANTED = (
    "UPDATE slots SET wanted = (SELECT max(number) FROM incarnations WHERE node = %s AND kind = 'control') "
    "WHERE slot = -1 RETURNING wanted"
)

_log = logging.getLogger(__name__)


class Incarnation(NamedTuple):
    """One row, for `cluster status`."""

    number: int
    node: str
    kind: str
    renewed: int
    address: str


class Overview(NamedTuple):
    """All control processes, and which of them leads."""

    leader: int | None
    wanted: int | None
    rows: Mapping[int, Incarnation]


def overview(link: Link) -> Overview:
    """Raises as `Link.rows`."""
    found = link.rows(LIST)
    rows = {
        row[2]: Incarnation(row[2], row[3], row[4], row[5], row[6]) for row in found if row[2] is not None
    }
    leader, wanted = found[0][:2] if found else (None, None)
    return Overview(leader, wanted, rows)


def want(link: Link, node: str) -> bool:
    """Let the office go to a node's control process, as soon as the one that leads has ended what it does.

    False: the node has none that follows. Raises as `Link.rows`.
    """
    ((number,),) = link.rows(SET_WANTED, (node,))
    return number is not None


def bury(dsn: str, node: str) -> None:
    """Free the office of a control process of this node that is dead: the caller has its folder.

    It waits for what the dead process had appended and no disk or standby has yet, for a lease: longer is of
    no use. Not synced: the next claim is, behind this in the database's log. A failover that loses it brings
    the row of a dead process back, whose lease others wait for. Raises Trouble, Misconfigured, psycopg.Error.
    """
    name = f"edgestead {node} office"
    with closing(Link(dsn, deadline_s=LEASE_MS / 1000, synced=False, name=name)) as link:
        with link.transaction(idle_ms_max=IDLE_MS_MAX):
            _free_office(link, node, None)


def _free_office(link: Link, node: str, former: int | None) -> None:
    """In a transaction: delete what a dead process of a node holds the office by, and `former`."""
    ((holder,),) = link.rows(SELECT_HOLDER)
    if holder is not None and holder != former:
        found = link.row(SELECT_NODE, (holder,))
        is_ours = found is None or found[0] == node
        if not is_ours or link.row(SELECT_HAS_EDGES) == (True,):
            holder = None  # others wait for its lease
    for number in {holder, former} - {None}:
        link.run(DELETE_ROW, (number,))
    if holder is not None:
        link.run(FREE_SLOT)


class Clerk:
    """Answers the questions of one control process's rounds. For one thread."""

    def __init__(self, dsn: str, node: str, address: str) -> None:
        self._node, self._address = node, address
        self._quick = Link(dsn, deadline_s=DEADLINE_SECONDS, synced=False, name=f"edgestead {node} lease")
        self._synced = Link(dsn, deadline_s=DEADLINE_SECONDS, name=f"edgestead {node} office")
        self._troubles = Seldom()
        self.last_overview = Overview(None, None, {})

    def answer(self, ask: Ask) -> Any:
        """Raises Failed."""
        try:
            return getattr(self, f"_{type(ask).__name__.lower()}")(ask)
        except (Trouble, Misconfigured, psycopg.Error) as error:
            if times := self._troubles.happened():
                _log.warning(
                    "the cluster's database did not answer (%d since the last line): %s", times, error
                )
            raise Failed() from error

    @property
    def has_one_copy(self) -> bool:
        """Whether the primary has no synchronous standby, by its settings when it was connected to."""
        return self._synced.copies.is_one

    def leave(self, number: int) -> None:
        """Give back the row, and what it owns. Raises Failed."""
        try:
            with self._synced.transaction(idle_ms_max=IDLE_MS_MAX):
                self._synced.rows(SELECT_HOLDER)
                self._synced.run(DELETE_ROW, (number,))
                self._synced.run(f"{FREE_SLOT} AND incarnation = %b", (number,))
        except (Trouble, Misconfigured, psycopg.Error) as error:
            raise Failed() from error

    def close(self) -> None:
        self._quick.close()
        self._synced.close()

    def _register(self, ask: Register) -> int:
        link = self._synced
        with link.transaction(idle_ms_max=IDLE_MS_MAX):
            _free_office(link, self._node, ask.former)
            ((number,),) = link.rows(NEXT_NUMBER)
            link.run(INSERT_ROW, (number, self._node, self._address))
        return int(number)

    def _renew(self, ask: Renew) -> bool:
        return self._quick.run(RENEW, (ask.number,)) == 1

    def _poll(self, ask: Poll) -> View:
        self.last_overview = found = overview(self._quick)
        rows = {number: Row(one.renewed, one.kind) for number, one in found.rows.items()}
        if found.leader is None:
            return View(None, rows, wanted=found.wanted)
        leader = found.rows.get(found.leader)
        if leader is None:
            return View(Holder(found.leader, None), rows, wanted=found.wanted)
        return View(Holder(leader.number, leader.renewed), rows, leader.address, found.wanted)

    def _admit(self, ask: Admit) -> bool:
        return self._synced.run(ADMIT, (ask.leader, ask.number)) == 1

    def _claim(self, ask: Claim) -> bool:
        link, holder = self._synced, ask.holder
        try:
            with link.transaction(idle_ms_max=IDLE_MS_MAX):
                ((number,),) = link.rows(SELECT_HOLDER)
                if number != (None if holder is None else holder.number):
                    raise _NotThis
                if holder is not None and holder.renewed is not None:
                    if link.run(DELETE_UNLESS_RENEWED, (holder.number, holder.renewed)) != 1:
                        raise _NotThis
                if link.run(SET_ADMITTED, (ask.number,)) != 1:
                    raise _NotThis
                link.run(TAKE_SLOT, (ask.number,))
        except _NotThis:
            return False
        return True

    def _fence(self, ask: Fence) -> None:
        self._synced.run(FENCE, (ask.leader, list(ask.numbers)))

    def _delete(self, ask: Delete) -> list[int]:
        renewed = [row.renewed for row in ask.rows.values()]
        rows = self._synced.rows(DELETE_ROWS, (ask.leader, list(ask.rows), renewed))
        return [int(number) for (number,) in rows]

    def _forget(self, ask: Forget) -> None:
        self._synced.run(FORGET, (self._node, ask.number))


class _NotThis(Exception):
    """The office is not what was seen: roll back."""
