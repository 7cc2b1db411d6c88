"""Zones of a node that is cut off: each is answered until its SOA's expire time is over, then SERVFAIL.

Owns  which zones that are, and marking them in the file of the group dns; taking the marks off again.
Not   for how long the node is cut off (`feed.relay`); what a marked zone answers (`dns.table`).

RFC 1035 §3.3.13 gives a zone that upper limit of time without its primary, RFC 1035 §4.3.5 what comes
afterwards. `cluster.stale-hours` is a limit for all of them.

    lease     zone             its document
    over      within expire    as control made it
    over      beyond it        marked `expired`
    valid     any              as control made it, or will: the marks are taken off
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from edgestead.model.served import KIND_ZONE, ServedZone, decode_zone, expire_seconds, with_expired
from edgestead.sqlite.control import SqliteControlStore
from edgestead.store.changes import Change
from edgestead.store.control import Transaction

SELECT_ZONE: Final = "SELECT doc FROM feed_state WHERE scope = ? AND kind = ? AND key = ?"
_KINDS: Final = frozenset((KIND_ZONE,))

log = logging.getLogger("edgestead.server")


class Expiry:
    """One for each life of the relay. Nothing here is for two threads at once."""

    def __init__(self, stale_seconds: float) -> None:
        self._stale_seconds = stale_seconds
        self._is_marked = True  # perhaps, by the life before
        self._due: list[tuple[float, str, str]] | None = None  # (seconds, scope, key), the next one last

    def look(self, store: SqliteControlStore, cut_off_seconds: float) -> int:
        """Mark what has expired, or take the marks off when the node has a lease (0 seconds).

        Returns how many zones are others now. Blocks: for milliseconds, or for a scan when either begins.
        Raises what a write raises.
        """
        if cut_off_seconds <= 0:
            self._due = None
            if not self._is_marked:
                return 0
            self._is_marked = False
            marked = [one for one in _zones(store) if _zone(one).expired]
            return _mark(store, ((one.scope, one.key) for one in marked), is_expired=False)
        if self._due is None:
            limits = ((self._limit(one), one.scope, one.key) for one in _zones(store))
            self._due = sorted(limits, reverse=True)
        over = []
        while self._due and self._due[-1][0] <= cut_off_seconds:
            over.append(self._due.pop()[1:])
        if over:
            self._is_marked = True
            log.warning("cut off for %.0f s: %d zones have expired", cut_off_seconds, len(over))
        return _mark(store, over, is_expired=True)

    def _limit(self, change: Change) -> float:
        return min(expire_seconds(_zone(change)), self._stale_seconds)


def _zones(store: SqliteControlStore) -> list[Change]:
    found: list[Change] = []
    store.feed.snapshot(_KINDS, found.extend)
    return [one for one in found if one.doc is not None]


def _zone(change: Change) -> ServedZone:
    assert change.doc is not None
    return decode_zone(change.doc)


def _mark(store: SqliteControlStore, zones: Iterable[Sequence[str]], *, is_expired: bool) -> int:
    """Those among them that are not there any more are left out."""

    def run(tx: Transaction) -> int:
        count = 0
        for scope, key in zones:
            row = tx.row(SELECT_ZONE, (scope, KIND_ZONE, key))
            if row is None or decode_zone(row[0]).expired is is_expired:
                continue
            tx.emit(scope, KIND_ZONE, key, with_expired(row[0], is_expired=is_expired))
            count += 1
        return count

    count: int = store.write(run).result().value
    return count
