"""What one change of a zone took away and put in its place: a row of the zone's journal.

Owns  the difference between two states of a name, record by record; how much of it a row may hold.
Not   keeping rows, and for how long (the feed's tail); transfers (`dns`). Pure.

The state before comes from the feed itself, not from rows rendered again: a secondary has to remove exactly
what was served, also when the server's own names or addresses have changed since.
"""

from collections.abc import Sequence

from edgestead.model import served
from edgestead.model.served import Owned, ServedChange, ServedRRset, ServedZone

ROW_OCTETS_MAX = 256 * 1024  # of the feed: secondaries of a larger change fetch the whole zone
"""Of a row. A larger change is journaled as a gap: fetching the zone anew costs little more."""


class Journaled:
    """Collects the names of one change."""

    def __init__(self) -> None:
        self._removed: list[Owned] = []
        self._added: list[Owned] = []

    def take(self, owner: bytes, before: Sequence[ServedRRset], after: Sequence[ServedRRset]) -> None:
        """Add one name. Each name of a change at most once."""
        removed, added = less(before, after), less(after, before)
        if removed:
            self._removed.append((owner, removed))
        if added:
            self._added.append((owner, added))

    def row(self, before: ServedZone, after: ServedZone) -> bytes:
        """The row as the feed's document."""
        row = served.encode(ServedChange(before, after, tuple(self._removed), tuple(self._added)))
        if len(row) > ROW_OCTETS_MAX:
            row = served.encode(ServedChange(before, after, (), (), whole=False))
        return row


def less(rrsets: Sequence[ServedRRset], others: Sequence[ServedRRset]) -> tuple[ServedRRset, ...]:
    """The records of `rrsets` that `others` does not have with the same TTL."""
    rrsets = [rrset for rrset in rrsets if not rrset.is_mark]
    there = {(rrset.type, rrset.ttl_seconds): rrset.rdatas for rrset in others}
    left = []
    for rrset in rrsets:
        known = there.get((rrset.type, rrset.ttl_seconds), ())
        if known != rrset.rdatas:
            held = frozenset(known)
            rdatas = tuple(rdata for rdata in rrset.rdatas if rdata not in held)
            if rdatas:
                left.append(ServedRRset(rrset.type, rrset.ttl_seconds, rdatas))
    return tuple(left)
