"""The rows by which objects processes of a cluster have slots: what each asks, as statements.

Owns  the SQL of registering, renewing, looking at the map, claiming, giving; draining a node.
Not   when it is asked (`cluster.slots`); the office of control (`postgres.incarnations`).

A change of the map is one statement, or one transaction, that raises the map's version first: that row's lock
puts changes in order, so who has seen a version has seen everything before it. An append holds its process's
row FOR KEY SHARE, so does a claim and a gift, and deleting the row waits for them.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import psycopg

from edgestead.cluster.forms import FORMS
from edgestead.cluster.placement import REGION_SLOTS, SLOTS, Worker
from edgestead.cluster.seat import Failed
from edgestead.cluster.slots import Ask, Claim, Give, Held, Poll, Register, Renew, View
from edgestead.model.seldom import Seldom
from edgestead.postgres.connection import Link, Misconfigured, Trouble
from edgestead.postgres.incarnations import DEADLINE_SECONDS, DELETE_ROW, IDLE_MS_MAX, NEXT_NUMBER

WORKER: Final = "objects"
DRAINING: Final = "draining"
KINDS: Final = f"('{WORKER}', '{DRAINING}')"

NEXT_VERSION = "UPDATE cluster SET slots_version = slots_version + 1 RETURNING slots_version"
# Held until the row is in: whoever takes a node from the list deletes its rows afterwards.
SELECT_LISTED = "SELECT name FROM nodes WHERE name = %s AND fingerprint = %s FOR KEY SHARE"
SELECT_FORMER = f"SELECT number FROM incarnations WHERE node = %s AND place = %b AND kind IN {KINDS}"
INSERT_WORKER = (
    "INSERT INTO incarnations (number, node, kind, address, place, renewed, form) "
    f"VALUES (%b, %s, '{WORKER}', %s, %b, 0, %b)"
)
# Not those of another region than its node's now: that may have been invited again.
INHERIT = (
    "UPDATE slots SET incarnation = %b, version = %b WHERE incarnation = ANY (%b::bigint[]) "
    f"AND (slot < {SLOTS} OR EXISTS (SELECT FROM object_regions r JOIN nodes n ON n.region = r.name "
    f"WHERE n.name = %s AND r.number = (slot - {SLOTS}) / {REGION_SLOTS} + 1))"
)
DELETE_FORMER = "DELETE FROM incarnations WHERE number = ANY (%b::bigint[])"
RENEW = "UPDATE incarnations SET renewed = renewed + 1 WHERE number = %b"
RENEW_LISTED = RENEW + " AND EXISTS (SELECT FROM nodes WHERE name = %s AND fingerprint = %s)"
# One statement, so that all of it is of one moment: workers, then slots, then the version.
LOOK = (
    "SELECT number, node, place, address, renewed, kind, (SELECT region FROM nodes WHERE name = node), form "
    f"FROM incarnations WHERE kind IN {KINDS} "
    "UNION ALL SELECT incarnation, NULL, slot, NULL, version, 'slot', NULL, 0 FROM slots "
    "WHERE slot >= 0 AND version > %b "
    "UNION ALL SELECT number, NULL, 0, NULL, 0, 'region', name, 0 FROM object_regions "
    "UNION ALL SELECT slots_version, NULL, 0, NULL, 0, 'version', NULL, 0 FROM cluster"
)
DELETE_SILENT = (
    "DELETE FROM incarnations i USING unnest(%b::bigint[], %b::bigint[]) AS silent (number, renewed) "
    "WHERE i.number = silent.number AND i.renewed = silent.renewed"
)
# A number is never used twice: a holder that a poll has seen, and that is not there now, is gone for ever.
CLAIM = (
    "WITH me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE) "
    "UPDATE slots s SET incarnation = me.number, version = %b "
    "FROM me, unnest(%b::int[], %b::bigint[]) AS seen (slot, holder) "
    "WHERE s.slot = seen.slot AND s.incarnation IS NOT DISTINCT FROM seen.holder "
    "AND NOT EXISTS (SELECT FROM incarnations i WHERE i.number = seen.holder) RETURNING s.slot"
)
GIVE = (
    "WITH new AS (UPDATE cluster SET slots_version = slots_version + 1 RETURNING slots_version), "
    "me AS (SELECT number FROM incarnations WHERE number = %b FOR KEY SHARE), "
    f"them AS (SELECT number FROM incarnations WHERE number = ANY (%b::bigint[]) AND kind IN {KINDS} "
    "FOR KEY SHARE) "
    "UPDATE slots s SET incarnation = them.number, version = new.slots_version "
    "FROM new, me, them, unnest(%b::int[], %b::bigint[], %b::bigint[]) AS given (slot, receiver, version) "
    "WHERE s.slot = given.slot AND them.number = given.receiver AND s.incarnation = me.number "
    "AND s.version = given.version RETURNING s.slot, s.incarnation, s.version"
)
DRAIN = "UPDATE incarnations SET kind = %s WHERE node = %s AND kind = %s"

_log = logging.getLogger(__name__)


class NotListed(Exception):
    """The node was removed from the cluster."""


def look(link: Link, after: int = -1) -> View:
    """The workers, and the slots whose holder changed after a version of the map. Raises as `Link.rows`."""
    workers: dict[int, Worker] = {}
    slots: dict[int, Held] = {}
    regions: dict[int, str] = {}
    newest = 0
    for number, node, place, address, renewed, kind, region, form in link.rows(LOOK, (after,)):
        if kind == "slot":
            slots[place] = Held(number, renewed)
        elif kind == "version":
            newest = number
        elif kind == "region":
            regions[number] = region
        else:
            workers[number] = Worker(
                number, node, place, address, renewed, kind == DRAINING, region or "", form
            )
    return View(workers, slots, newest, regions)


def drain(link: Link, node: str, *, ends: bool = False) -> int:
    """Let the slots of a node's processes go to others, or `ends` that; returns how many processes it has.

    Processes that start later have slots again. Raises as `Link.run`.
    """
    before, after = (DRAINING, WORKER) if ends else (WORKER, DRAINING)
    return link.run(DRAIN, (after, node, before))


class SlotClerk:
    """Answers the questions of one objects process. For one thread; renewals have one of their own.

    With the `key` of the node it registers and renews only while the cluster's list has that. So a process of
    a node that is removed ends, and others have its slots no sooner than its lease ends: it may be cut off.
    `registering` looks, in the transaction of that, whether it may; what it raises is raised.
    """

    def __init__(
        self,
        dsn: str,
        node: str,
        place: int,
        address: str,
        *,
        key: str = "",
        registering: Callable[[Link], None] = lambda link: None,
        form: int = FORMS.newest,
    ) -> None:
        self._registering, self._form = registering, form
        self._node, self._place, self._address, self._key = node, place, address, key
        self._quick = Link(dsn, deadline_s=DEADLINE_SECONDS, synced=False, name=f"edgestead {node} lease")
        self._synced = Link(dsn, deadline_s=DEADLINE_SECONDS, name=f"edgestead {node} slots")
        self._troubles = Seldom()

    def answer(self, ask: Ask) -> Any:
        """Raises Failed; NotListed when it registers."""
        try:
            return getattr(self, f"_{type(ask).__name__.lower()}")(ask)
        except (Trouble, Misconfigured, psycopg.Error) as error:
            if times := self._troubles.happened():
                _log.warning(
                    "the cluster's database did not answer (%d since the last line): %s", times, error
                )
            raise Failed() from error

    def leave(self, number: int) -> None:
        """Give back the row: its slots are free at once. Raises Failed."""
        try:
            self._synced.run(DELETE_ROW, (number,))
        except (Trouble, Misconfigured, psycopg.Error) as error:
            raise Failed() from error

    def close(self) -> None:
        self._quick.close()
        self._synced.close()

    def _register(self, ask: Register) -> int:
        link = self._synced
        with link.transaction(idle_ms_max=IDLE_MS_MAX):
            if self._key and not link.rows(SELECT_LISTED, (self._node, self._key)):
                raise NotListed(f"the node {self._node} was removed from the cluster: invite it again")
            ((number,),) = link.rows(NEXT_NUMBER)
            ((version,),) = link.rows(NEXT_VERSION)
            self._registering(link)
            former = [found for (found,) in link.rows(SELECT_FORMER, (self._node, self._place))]
            link.run(INSERT_WORKER, (number, self._node, self._address, self._place, self._form))
            if former:
                link.run(DELETE_FORMER, (former,))  # waits for what they append: then it is in the log
                link.run(INHERIT, (number, version, former, self._node))
        return int(number)

    def _renew(self, ask: Renew) -> bool:
        if self._key:
            return self._quick.run(RENEW_LISTED, (ask.number, self._node, self._key)) == 1
        return self._quick.run(RENEW, (ask.number,)) == 1

    def _poll(self, ask: Poll) -> View:
        return look(self._quick, ask.after)

    def _claim(self, ask: Claim) -> Mapping[int, Held]:
        link = self._synced
        with link.transaction(idle_ms_max=IDLE_MS_MAX):
            ((version,),) = link.rows(NEXT_VERSION)
            if ask.silent:
                link.run(DELETE_SILENT, (list(ask.silent), list(ask.silent.values())))
            seen = (list(ask.slots), list(ask.slots.values()))
            taken = link.rows(CLAIM, (ask.number, version, *seen))
        return {slot: Held(ask.number, version) for (slot,) in taken}

    def _give(self, ask: Give) -> Mapping[int, Held]:
        receivers = [one.to for one in ask.slots.values()]
        versions = [one.version for one in ask.slots.values()]
        given = self._synced.rows(
            GIVE, (ask.number, sorted(set(receivers)), list(ask.slots), receivers, versions)
        )
        return {slot: Held(number, version) for slot, number, version in given}
