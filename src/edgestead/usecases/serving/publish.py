"""What a change of a zone tells the feed: a document for each name, the journal's row, the zone's serial.

Owns  which documents a change makes, what they hold, in which order they go out; how much of a change one row
      of the journal may hold.
Not   reading what they are made of, or emitting them: pure, everything comes in. Keeping the journal (the
      feed's tail); transfers (`dns`).

The state before comes from the feed itself, not from rows rendered again: a secondary has to remove exactly
what was served, also when the server's own names or addresses have changed since.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from edgestead.model import served
from edgestead.model.edge import KIND_EDGE_NAME
from edgestead.model.served import Owned, ServedChange, ServedName, ServedRRset, ServedZone
from edgestead.store.control import Group
from edgestead.tables.records import Neighbour
from edgestead.usecases.serving import edge_feed, rendering, serials
from edgestead.usecases.serving.rendering import Renderer, ZoneFacts
from edgestead.usecases.serving.signing import IS_SERVED, Owner, ZoneSigning, without_signatures


class Document(NamedTuple):
    """One change of the feed. None: the key is gone. `if_new`: not when the feed says it already."""

    kind: str
    key: str
    document: bytes | None
    first: Group = ""
    if_new: bool = False


class Name:
    """One owner name under change: its records as they are now, and what it was when the change began."""

    __slots__ = ("carries", "owner", "records", "text", "was_alias", "was_empty", "was_proxied")

    def __init__(self, text: str, owner: bytes, found: list[Neighbour]) -> None:
        self.text = text
        self.owner = owner
        self.records = found
        self.was_empty = not found
        self.carries = False  # or did: records beside those of the API
        self.was_alias = has_alias(found)
        self.was_proxied = rendering.is_proxied(found)

    @property
    def feed_key(self) -> str:
        return self.owner.hex()

    def remove(self, record_id: str) -> None:
        self.records = [record for record in self.records if record.id != record_id]


def has_alias(members: Iterable[Neighbour]) -> bool:
    for record in members:  # as in `rendering.is_proxied`: a third of the time of `any`
        if record.type == "CNAME":
            return True
    return False


class Publication:
    """The documents of one change. Ask for every name, then for the zone."""

    def __init__(
        self, renderer: Renderer, apex: bytes, facts: ZoneFacts, signing: ZoneSigning | None = None
    ) -> None:
        self._renderer = renderer
        self._apex = apex
        self._facts = facts
        self._signing = signing
        self._journaled = Journaled()

    def render(self, name: Name, flat: Sequence[ServedRRset] | None, before: bytes | None) -> Owner:
        """What a name serves, without signatures. `flat` as `Renderer.name` takes it, `before` is the name's
        newest document.
        """
        after = self._renderer.name(self._apex, name.owner, name.records, self._facts, flat)
        return Owner(name.owner, served.decode_name(before).rrsets if before else (), after.rrsets)

    def name(self, name: Name, one: Owner, *, changed: bool) -> list[Document]:
        """Each name once, after `render`, and in a signed zone after `ZoneSigning.settle`.

        A name that is not `changed`, but was asked for again, makes none when it serves what it did.
        """
        after = one.plain if self._signing is None else self._signing.sign(one)
        if not changed and one.before == after:
            return []
        return _in_order(name, self._document(one, after))

    def signatures(self, one: Owner) -> list[Document]:
        """A name whose records stay, and whose signatures may not."""
        after = one.plain if self._signing is None else self._signing.sign(one)
        if one.before == after:
            return []
        return [Document(served.KIND_NAME, one.owner.hex(), self._document(one, after))]

    def _document(self, one: Owner, after: tuple[ServedRRset, ...]) -> bytes | None:
        self._journaled.take(one.owner, one.before, after)
        return served.encode(ServedName(self._apex, one.owner, after)) if after else None

    def soa(self, serial: int, *, lost: bool = False) -> ServedZone:
        """The zone's own document under this serial, signed where the zone is."""
        after = self._renderer.zone(self._apex, serial, self._facts)
        if lost:
            after = msgspec.structs.replace(after, lost=True)
        if self._signing is not None and (self._facts.presigned or self._facts.signing in IS_SERVED):
            after = self._signing.zone(after)
        return after

    def apex(self, one: Owner, plain: tuple[ServedRRset, ...]) -> Owner:
        """The apex with these RRsets as it would be served; signatures that still do are kept."""
        one = one._replace(plain=plain)
        return one if self._signing is None else one._replace(plain=self._signing.sign(one))

    def served_apex(self, name: Name, one: Owner, after: tuple[ServedRRset, ...]) -> list[Document]:
        """The apex's documents; none where it stays as it was."""
        return [] if one.before == after else _in_order(name, self._document(one, after))

    def zone(self, after: ServedZone, before: bytes | None) -> list[Document]:
        """The journal's row, then the SOA: last, because afterwards the zone counts as complete.

        `before` is the zone's newest document; without one no row leads to this serial.
        """
        documents = [Document(served.KIND_ZONE, "", served.encode(after))]
        if before is not None:
            row = self._journaled.row(served.decode_zone(before), after)
            documents.insert(0, Document(served.KIND_JOURNAL, f"{serials.of_soa(after.soa_rdata):08x}", row))
        return documents


def _in_order(name: Name, document: bytes | None) -> list[Document]:
    """The name as DNS and, where it is or was proxied, as the edge has it.

    Of the two the group that goes first gets its own first: the second one opens the gate.
    """
    is_proxied = rendering.is_proxied(name.records)
    if not is_proxied and not name.was_proxied:
        return [Document(served.KIND_NAME, name.feed_key, document)]
    first: Group = ""
    if is_proxied != name.was_proxied:
        first = "edge" if is_proxied else "dns"
    at_dns = Document(served.KIND_NAME, name.feed_key, document, first)
    origins = edge_feed.name_document(name.owner, name.records)
    at_edge = Document(KIND_EDGE_NAME, name.feed_key, origins, if_new=True)
    return [at_edge, at_dns] if is_proxied else [at_dns, at_edge]


ROW_OCTETS_MAX = 256 * 1024  # of the feed: secondaries of a larger change fetch the whole zone
"""Of a row. A larger change is journaled as a gap: fetching the zone anew costs little more."""


class Journaled:
    """Collects the names of one change. What changed of each is worked out for the row alone: a change that
    nobody sees, as the first signatures of a zone, makes none.
    """

    def __init__(self) -> None:
        self._taken: list[tuple[bytes, Sequence[ServedRRset], Sequence[ServedRRset]]] = []

    def take(self, owner: bytes, before: Sequence[ServedRRset], after: Sequence[ServedRRset]) -> None:
        """Add one name. Each name of a change at most once."""
        self._taken.append((owner, before, after))

    def row(self, before: ServedZone, after: ServedZone) -> bytes:
        """The row as the feed's document.

        Signatures of a zone whose SOA has none are given to nobody, so no row has them, and the change with
        which they come, or go, is a gap.
        """
        gap = served.encode(ServedChange(before, after, (), (), whole=False))
        if bool(before.soa_rrsigs) != bool(after.soa_rrsigs):
            return gap
        removed = [(owner, less(old, new)) for owner, old, new in self._taken]
        added = [(owner, less(new, old)) for owner, old, new in self._taken]
        if not after.soa_rrsigs:
            removed, added = _unsigned(removed), _unsigned(added)
        row = served.encode(ServedChange(before, after, _with_records(removed), _with_records(added)))
        return row if len(row) <= ROW_OCTETS_MAX else gap


def _unsigned(owned: Iterable[Owned]) -> list[Owned]:
    return [(owner, without_signatures(rrsets)) for owner, rrsets in owned]


def _with_records(owned: Iterable[Owned]) -> tuple[Owned, ...]:
    return tuple([one for one in owned if one[1]])


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
