"""A zone that changes as services change it: names, then the journal's row, then the SOA."""

from edgestead.dns.journal import Journal
from edgestead.dns.table import Table
from edgestead.model.served import KIND_JOURNAL, KIND_NAME, KIND_ZONE, ServedZone, decode_name, encode
from edgestead.usecases.serving.publish import Journaled
from edgestead.usecases.serving.serials import next_serial
from tests.dns.serving import Change, name_change, wire


class Changing:
    """One zone in a table with its journal. `serial` is the zone's."""

    def __init__(self, apex="example.test.", *, serial=1, table=None, journal=None):
        self.apex, self.serial = apex, serial
        self.table = Table() if table is None else table
        self.journal = Journal() if journal is None else journal
        self._served = {}
        self._take([*self._names([(apex, ("NS", 3600, "ns1.example.net."))]), self._zone()])

    def change(self, *names):
        """Each of `names` is an owner and its RRsets from now on, as `name_change` takes them."""
        self._take(self.changes(*names))

    def changes(self, *names):
        """The same, not applied."""
        journaled, before = Journaled(), self._soa()
        told = list(self._names(names, journaled))
        self.serial = next_serial(self.serial)
        row = journaled.row(before, self._soa())
        return [*told, Change(self.apex, KIND_JOURNAL, f"{self.serial:08x}", row), self._zone()]

    def _names(self, names, journaled=None):
        for owner, *rrsets in names:
            told = name_change(self.apex, self.apex, owner, *rrsets)
            after = decode_name(told.doc).rrsets
            if journaled is not None:
                journaled.take(wire(owner), self._served.get(owner, ()), after)
            self._served[owner] = after
            yield told if after else Change(self.apex, KIND_NAME, told.key)

    def _zone(self):
        return Change(self.apex, KIND_ZONE, "", encode(self._soa()))

    def _soa(self):
        numbers = b"".join(n.to_bytes(4, "big") for n in (self.serial, 7200, 900, 86400, 600))
        return ServedZone(wire(self.apex), 3600, wire("ns1.example.net.") + wire("h.example.net.") + numbers)

    def _take(self, changes):
        self.table.apply(changes)
        self.journal.take(changes)

    def since(self, serial):
        """The number of journal rows from a serial to now, or None."""
        rows = self.journal.since(wire(self.apex), serial, self.serial)
        return None if rows is None else len(rows)
