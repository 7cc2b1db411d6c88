"""The recent changes of each zone, by serial, for incremental transfers (RFC 1995).

Owns  the newest rows of the journal, in memory and bounded over all zones.
Not   rows on disk: they are in the feed's tail, which sends them at the start.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, Protocol

from edgestead.model.served import KIND_JOURNAL, ServedChange, decode_change

ROWS_MAX: Final = 65_536  # changes of all zones that a secondary may fetch alone; then it fetches whole zones
OCTETS_MAX: Final = 16 * 1024 * 1024  # the same in memory, of each process
"""Of all rows together, as documents. The oldest go first, whichever zone they belong to."""

_SERIAL: Final = slice(-20, -16)  # RFC 1035 §3.3.13: five numbers end an SOA, the serial is the first
_HALF: Final = 1 << 31
_SERIALS: Final = 1 << 32


def serial_of(soa_rdata: bytes) -> int:
    return int.from_bytes(soa_rdata[_SERIAL], "big")


def is_newer(serial: int, other: int) -> bool:
    """Whether `serial` comes after `other` (RFC 1982 §3.2). Of two that differ by exactly 2^31 neither does.

    >>> is_newer(1, 0xFFFFFFFF), is_newer(0xFFFFFFFF, 1), is_newer(7, 7)
    (True, False, False)
    """
    return 0 < (serial - other) % _SERIALS < _HALF


class Change(Protocol):
    """As in `table`: kind "" forgets the scope."""

    @property
    def scope(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def doc(self) -> bytes | None: ...


class _Row:
    """`document` is not decoded: most rows are never read."""

    __slots__ = ("after", "before", "document", "scope")

    def __init__(self, scope: str, document: bytes, change: ServedChange) -> None:
        self.scope = scope
        self.document = document
        self.before = serial_of(change.before.soa_rdata)
        self.after = serial_of(change.after.soa_rdata)


class Journal:
    """Rows of each zone without gaps: each begins at the serial at which the one before ends."""

    def __init__(self, *, rows_max: int = ROWS_MAX, octets_max: int = OCTETS_MAX) -> None:
        self._rows_max = rows_max
        self._octets_max = octets_max
        self._octets = 0
        self._all: deque[_Row] = deque()
        self._zones: dict[str, deque[_Row]] = {}
        self._scopes: dict[bytes, str] = {}
        self._apexes: dict[str, bytes] = {}

    def take(self, changes: Iterable[Change]) -> None:
        """Store the journal rows among changes of the feed. Raises ValueError for a malformed one."""
        for change in changes:
            if change.kind == KIND_JOURNAL and change.doc is not None:
                self._add(change.scope, change.doc)
            elif change.kind == "":
                self._forget(change.scope)

    def _add(self, scope: str, document: bytes) -> None:
        change = decode_change(document)
        row = _Row(scope, document, change)
        rows = self._zones.setdefault(scope, deque())
        if rows and not is_newer(row.after, rows[-1].after):
            return  # sent again after a start from a file
        if not change.whole or (rows and rows[-1].after != row.before):
            rows.clear()
        if not change.whole:
            return
        rows.append(row)
        self._scopes[change.after.apex], self._apexes[scope] = scope, change.after.apex
        self._all.append(row)
        self._octets += len(document)
        while self._octets > self._octets_max or len(self._all) > self._rows_max:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Rows of forgotten zones and before gaps are counted here as well: the bound is for all."""
        oldest = self._all.popleft()
        self._octets -= len(oldest.document)
        rows = self._zones.get(oldest.scope)
        if rows and rows[0] is oldest:
            rows.popleft()

    def _forget(self, scope: str) -> None:
        self._zones.pop(scope, None)
        apex = self._apexes.pop(scope, b"")
        if self._scopes.get(apex) == scope:
            del self._scopes[apex]

    def rows(self) -> list[tuple[str, bytes]]:
        """(scope, document) of every row, the oldest first."""
        return [(row.scope, row.document) for row in self._all if row.scope in self._zones]

    def restore(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Store the result of `rows`. Raises ValueError."""
        for scope, document in rows:
            self._add(scope, document)

    def take_over(self, other: "Journal") -> None:
        """Replace the content with that of `other`, which must not be used afterwards."""
        self._octets, self._all = other._octets, other._all
        self._zones, self._scopes, self._apexes = other._zones, other._scopes, other._apexes

    def since(self, apex: bytes, serial: int, newest: int) -> list[bytes] | None:
        """The rows, as documents, that lead from one serial to the `newest`; None when one is missing."""
        rows = self._zones.get(self._scopes.get(apex, ""))
        if not rows or rows[-1].after != newest:
            return None
        first = next((index for index, row in enumerate(rows) if row.before == serial), None)
        if first is None:
            return None
        return [row.document for row in islice(rows, first, None)]
