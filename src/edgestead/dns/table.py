"""All zones of this process, kept up to date by the change feed while queries are answered.

Owns  applying changes, the lock, the view that queries read.
Not   following the feed (`feed`); answering (`answer`).

Two threads use it. The query thread has `lock` while it answers one batch of queries, and reads `view`
*after* it has received them; the feed's thread has the lock for at most SLICE changes at a time. So when
`apply` has returned, every query received later sees the change, and no older answer can get into a later
cache, because every cache belongs to a view and a change replaces the view.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Protocol

from edgestead.dns import node, signed
from edgestead.dns.lookup import View
from edgestead.dns.own import NONE, OwnNames
from edgestead.dns.zone import Frozen, Head, Zone, check_soa, is_cut, pieces
from edgestead.model.served import (
    KIND_NAME,
    KIND_ZONE,
    ServedRRset,
    ServedZone,
    decode_name,
    decode_zone,
)

log = logging.getLogger(__name__)
SLICE: Final = 256
"""Changes under one holding of the lock: about a quarter of a millisecond."""


PIECE_NAMES: Final = 4096
"""Names in one part of a frozen table: about half a millisecond to write or to read."""
Piece = tuple[str, bool, Head | None, dict[bytes, bytes], dict[bytes, int], dict[bytes, bytes]]


FrozenTable = list[tuple[str, bool, Frozen]]


class Change(Protocol):
    """One entry of the feed. `scope` is a zone's id; kind "" forgets the scope; doc None forgets the key."""

    @property
    def scope(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def doc(self) -> bytes | None: ...


class Table:
    """The zones. `apply` is for one thread, `lock` and `view` for the threads that answer.

    `own` does not change with the zones.
    """

    def __init__(self, own: OwnNames = NONE) -> None:
        self.lock = threading.Lock()
        self._own = own
        self._scopes: dict[str, Zone] = {}
        self._zones: dict[bytes, Zone] = {}
        self._private: dict[bytes, Zone] = {}
        self.view = View(self._zones, own)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes in order; every query received after the return is answered with them.

        Up to SLICE changes of zones that are being served become visible at once, larger batches in slices.
        A zone that is new, or dropped and sent again in the same batch, is built separately and swapped in at
        the end. A scope without a "zone" document is not served yet; when two scopes have the same apex, the
        last one that became complete is served. Kinds of other consumers are ignored.

        A batch that adds signatures to a zone which does not give them out yet leaves the view, and with it
        every cache, as it is: no answer can be another.

        A zone with a name that cannot be served is answered SERVFAIL until the name can, and the zone's next
        document has come; no other zone notices. Raises ValueError for a document that cannot be decoded, or
        a zone without an SOA that can be served; then nothing of the batch is applied.
        """
        plan = _Plan(self._scopes)
        for change in changes:
            plan.take(change)
        edits = plan.edits()
        for start in range(0, len(edits) - SLICE, SLICE):
            with self.lock:
                _run(edits[start : start + SLICE])
        with self.lock:
            _run(edits[(len(edits) - 1) // SLICE * SLICE :])
            gone = [self._replace(scope, zone) for scope, zone in plan.zones.items()]
            if plan.is_visible:
                self.view = View(self._zones, self._own)
        for zone in filter(None, gone):
            _empty(zone)

    def transferable(self, apex: bytes) -> Zone | None:
        """The zone with all its names, which queries may see or not."""
        return self._private.get(apex) or self.view.zones.get(apex)

    def take_over(self, other: "Table") -> None:
        """Replace all zones with those of `other`, which must not be used afterwards.

        One step for every query, whatever the number of zones.
        """
        with self.lock:
            before = list(self._scopes.values())
            self._scopes, self._zones, self._private = other._scopes, other._zones, other._private
            self.view = View(self._zones, self._own)
        for zone in before:
            _empty(zone)

    def freeze(self) -> FrozenTable:
        """(scope, whether it is served, zone) of all zones, as of between two slices of a batch."""
        with self.lock:
            return [
                (scope, self._zones.get(zone.apex) is zone.answering, zone.freeze())
                for scope, zone in self._scopes.items()
            ]

    def thaw(self, parts: Iterable[Iterable[Piece]]) -> None:
        """Load a frozen table; this table must be new and empty."""
        for part in parts:
            for scope, served, head, names, children, entries in part:
                if head is not None:
                    zone = self._scopes[scope] = Zone(head[0])
                    zone.thaw(head)
                    if served:
                        self._serve(zone)
                self._scopes[scope].thaw_names(names, children, entries)
        for zone in self._scopes.values():
            zone.thawed()

    def _replace(self, scope: str, zone: Zone | None) -> Zone | None:
        """Serve `zone` for a scope, None for nothing; returns the scope's zone before."""
        before = self._scopes.pop(scope, None)
        if before is not None and self._zones.get(before.apex) is before.answering:
            del self._zones[before.apex]
            self._private.pop(before.apex, None)
        if zone is not None:
            self._scopes[scope] = zone
            if zone.complete:
                self._serve(zone)
        return before if before is not zone else None

    def _serve(self, zone: Zone) -> None:
        self._zones[zone.apex] = zone.answering
        if zone.front is None or zone.lost:
            self._private.pop(zone.apex, None)
        else:
            self._private[zone.apex] = zone

    @property
    def zones(self) -> int:
        """How many zones are served."""
        return len(self._zones)

    @property
    def names(self) -> int:
        """How many names exist in them, empty non-terminals included."""
        with self.lock:
            return sum(len(zone.names) for zone in self._zones.values())


def parts(frozen: FrozenTable) -> Iterator[list[Piece]]:
    """A frozen table in parts of about PIECE_NAMES names, for `Table.thaw`."""
    part: list[Piece] = []
    left = PIECE_NAMES
    for scope, served, zone in frozen:
        for head, names, children, entries in pieces(zone, PIECE_NAMES):
            part.append((scope, served, head, names, children, entries))
            left -= len(names) + 1
            if left <= 0:
                yield part
                part, left = [], PIECE_NAMES
    if part:
        yield part


class _Plan:
    """A batch, decoded and checked before any of it is applied."""

    def __init__(self, scopes: dict[str, Zone]) -> None:
        self._served = scopes
        self._edits: dict[str, list[Callable[[], None]]] = {}
        self._spoiled: set[str] = set()
        self.is_visible = False
        """Whether an answer can be another after the batch."""
        self.zones: dict[str, Zone | None] = {}
        """What scopes stand for after the batch, where that differs or has to be looked at again."""

    def edits(self) -> list[Callable[[], None]]:
        """Changes of zones that may be served now, in order."""
        return [edit for edits in self._edits.values() for edit in edits]

    def take(self, change: Change) -> None:
        if change.kind == "" or (change.kind == KIND_ZONE and change.doc is None):
            self._edits.pop(change.scope, None)
            self.zones[change.scope] = None
            self.is_visible = True
        elif change.kind == KIND_ZONE and change.doc is not None:
            self._take_zone(change.scope, decode_zone(change.doc))
        elif change.kind == KIND_NAME and change.doc is not None:
            served = decode_name(change.doc)
            self._take_name(self._zone(change.scope, served.apex), change.scope, served.owner, served.rrsets)
        elif change.kind == KIND_NAME:
            self._take_gone(change.scope, bytes.fromhex(change.key))

    def _take_zone(self, scope: str, served: ServedZone) -> None:
        zone = self._zone(scope, served.apex)
        check_soa(served)
        self.is_visible = self.is_visible or not zone.shows_unsigned(served)
        self._do(scope, zone, partial(zone.set_soa, served))
        self.zones[scope] = zone

    def _take_name(self, zone: Zone, scope: str, owner: bytes, rrsets: tuple[ServedRRset, ...]) -> None:
        own, added = signed.split(rrsets)
        try:
            relative, packed, entry = zone.relative(owner), node.pack(own), signed.pack(added)
        except ValueError:
            log.exception("zone %s is not served: a name of it cannot be", scope)
            self._spoiled.add(scope)
            self._do(scope, zone, partial(zone.spoil, owner))
            self.zones[scope] = zone
            self.is_visible = True
            return
        self.is_visible = self.is_visible or zone.signed or zone.names.get(relative) != packed
        if zone.is_spoiled or scope in self._spoiled:
            self._do(scope, zone, partial(zone.mend, owner))
        if relative:
            self._do(scope, zone, partial(zone.put, relative, packed, cut=is_cut(own), entry=entry))
        else:
            self._do(scope, zone, partial(zone.set_apex, own, entry))

    def _take_gone(self, scope: str, owner: bytes) -> None:
        zone = self.zones[scope] if scope in self.zones else self._served.get(scope)
        if zone is not None:
            self._take_name(zone, scope, owner, ())

    def _zone(self, scope: str, apex: bytes) -> Zone:
        """The zone of a scope at this point of the batch; a new one when there is none."""
        zone = self.zones[scope] if scope in self.zones else self._served.get(scope)
        if zone is None:
            zone = self.zones[scope] = Zone(apex)
        elif zone.apex != apex:
            raise ValueError(f"scope {scope} has two apexes")
        return zone

    def _do(self, scope: str, zone: Zone, edit: Callable[[], None]) -> None:
        if self._served.get(scope) is zone:
            self._edits.setdefault(scope, []).append(edit)
        else:
            edit()


def _run(edits: list[Callable[[], None]]) -> None:
    for edit in edits:
        edit()


def _empty(zone: Zone) -> None:
    """Free a zone that is no longer served, name by name: one `del` of a large dict keeps the interpreter
    lock for tens of milliseconds."""
    while zone.names:
        zone.names.popitem()
    while zone.signatures is not None and zone.signatures.entries:
        zone.signatures.entries.popitem()
