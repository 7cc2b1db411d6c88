"""What holds between a record and the others of its name.

Owns  what a checked record is (`Draft`); the documented conflicts of types, duplicates, how much one name
      may hold.
Not   what a single record may hold; chains of aliases, which lead elsewhere. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from edgestead.model.refusals.record import (
    AddressHost,
    AliasHost,
    ContentRefused,
    ContentsTooLong,
    DelegatedHost,
    IdenticalRecord,
    NameRefused,
    OtherHost,
    RecordExists,
    RecordRefused,
)
from edgestead.tables.records import Neighbour, RecordRow
from edgestead.usecases import limits
from edgestead.usecases.serving import rendering


class Draft(NamedTuple):
    """A checked record that is not in the zone yet. `owner` is `name` in wire form."""

    owner: bytes
    name: str
    type: str
    rdata: bytes
    ttl: int
    proxied: int
    priority: int | None
    content: str
    content_folded: str
    data: str | None
    settings: str
    comment: str | None
    tags: str


class _Rule(NamedTuple):
    """A record of one of `new` may not join a name that has one of `there`."""

    new: frozenset[str]
    there: frozenset[str]
    refusal: type[RecordRefused]
    at_apex: bool


_CNAME, _NS, _SOA = frozenset(("CNAME",)), frozenset(("NS",)), frozenset(("SOA",))
_ADDRESSES = frozenset(("A", "AAAA"))
_BESIDE_NONE = frozenset(("DNAME", "CNAME", "NS"))  # a DNAME
_WILDCARD = b"\1*"  # how its owner begins
_BELOW = {"NS": "delegated (RFC 4592 §4.2)", "DNAME": "redirected (RFC 4592 §4.4)"}

# Contract "Errors": these are the documented conflicts. Other types at the name of a CNAME are stored, not
# served.
_RULES = (
    _Rule(_CNAME, rendering.ADDRESS_TYPES, AddressHost, True),
    _Rule(_ADDRESSES, _CNAME, AliasHost, True),
    _Rule(_NS, rendering.ADDRESS_TYPES, OtherHost, False),
    _Rule(rendering.ADDRESS_TYPES, _NS, DelegatedHost, False),
    _Rule(_SOA, _SOA, RecordExists, True),
)


def check(draft: Draft, old: RecordRow | None, others: Sequence[Neighbour], *, at_apex: bool) -> None:
    """Whether a record may join a name, or stay there changed. `others` are all but itself.

    Raises IdenticalRecord, RecordExists, NameRefused, AddressHost, AliasHost, OtherHost, DelegatedHost,
    ContentRefused, ContentsTooLong, whichever comes first in this order.
    """
    _check_duplicate(draft, others)
    _check_types(draft, others, at_apex)
    _check_sizes(draft, others)


def _check_duplicate(draft: Draft, others: Sequence[Neighbour]) -> None:
    """Raises IdenticalRecord, RecordExists."""
    identity = _identity(draft.type, draft.rdata)
    for other in others:
        if other.type == draft.type and _identity(other.type, other.rdata) == identity:
            same = (draft.ttl, draft.proxied, draft.settings, draft.comment, draft.tags) == other[3:]
            raise (IdenticalRecord if same else RecordExists)(type=draft.type)


def _identity(type_: str, rdata: bytes) -> bytes:
    """What makes two records of a name the same: rdata; for TXT the text, however it is cut into strings."""
    if type_ != "TXT":
        return rdata
    return b"".join(_strings(rdata))


def _strings(rdata: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(rdata):
        end = position + 1 + rdata[position]
        yield rdata[position + 1 : end]
        position = end


def check_delegable(draft: Draft, old: RecordRow | None) -> None:
    """Raises NameRefused: an asterisk delegated, or redirected. RFC 4592 §4.2 and §4.4 leave open what that
    means; servers take it for data or for a delegation, and BIND loads no zone that has one. What was stored
    before may stay.
    """
    is_new = old is None or old.name != draft.name
    if draft.type in _BELOW and is_new and draft.owner.startswith(_WILDCARD):
        reason = f"an asterisk cannot be {_BELOW[draft.type]}"
        raise NameRefused(type=draft.type, field="name", reason=reason)


def check_redirect(draft: Draft, others: Sequence[Neighbour], *, at_apex: bool) -> None:
    """What RFC 6672 §2.3 and §2.4 ask of a name with a DNAME: one only, no alias, and no delegation but the
    zone's own. Raises NameRefused.
    """
    there = {other.type for other in others}
    beside = (there & _BESIDE_NONE) - (_NS if at_apex else set())
    if draft.type == "DNAME" and beside:
        reason = f"a DNAME cannot stand beside the {min(beside)} record of that name (RFC 6672 §2.3, §2.4)"
        raise NameRefused(type="DNAME", field="name", reason=reason)
    if "DNAME" in there and draft.type in _BESIDE_NONE and not (at_apex and draft.type == "NS"):
        reason = "that name has a DNAME record, beside which no such record can stand (RFC 6672 §2.3, §2.4)"
        raise NameRefused(type=draft.type, field="name", reason=reason)


def below_redirect(draft: Draft, above: str) -> NameRefused:
    """A record below a DNAME, which nobody could ever be answered with (RFC 6672 §2.3)."""
    reason = f"it is below {above}, whose DNAME record answers for all names there"
    return NameRefused(type=draft.type, field="name", reason=reason)


def above_records(draft: Draft) -> NameRefused:
    """The same from the other side."""
    reason = "there are records below that name, for which its DNAME would answer"
    return NameRefused(type=draft.type, field="name", reason=reason)


def _check_types(draft: Draft, others: Sequence[Neighbour], at_apex: bool) -> None:
    """Raises AddressHost, AliasHost, OtherHost, DelegatedHost; ContentRefused: DS without a delegation."""
    there = {other.type for other in others}
    for rule in _RULES:
        if draft.type in rule.new and (rule.at_apex or not at_apex) and there & rule.there:
            raise rule.refusal(type=draft.type, field="name")
    if draft.type == "DS" and "NS" not in there:
        raise ContentRefused(type="DS", field="name", reason="NS records of that name must exist first")


def _check_sizes(draft: Draft, others: Sequence[Neighbour]) -> None:
    """Raises ContentsTooLong: more than one DNS message can carry, or more text than a name may have."""
    rdatas = [draft.rdata, *(other.rdata for other in others if other.type == draft.type)]
    octets_max = limits.RRSET_OCTETS_MAX - limits.RECORD_HEAD_OCTETS * len(rdatas)
    sizes = [(sum(map(len, rdatas)), octets_max)]
    if draft.type == "TXT":  # the text alone, without the octets that say how long each string is
        text_octets = sum(len(_identity("TXT", rdata)) for rdata in rdatas)
        sizes.append((text_octets, limits.TXT_OCTETS_PER_NAME_MAX))
    for octets, octets_max in sizes:
        if octets > octets_max:
            raise ContentsTooLong(type=draft.type, field="content", octets=octets, octets_max=octets_max)
