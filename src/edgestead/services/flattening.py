"""CNAME flattening: an alias answered with its target's addresses, where an alias may not or shall not stand.

Owns  when a CNAME is flattened, the chase through our own zones, whose answers hang on which names, when a
      target outside is asked for again.
Asks  `tables` for rows, the renderer for the edge's addresses.
Tells `services.zone_edit` what to serve at a flattened name; the resolver's task what is due.
Not   asking the world outside (`server.resolving`); settings and records.

Nothing is chased when a query comes. Whatever changes a name on the way renders the flattened names that hang
on it again, in the same transaction (`dependents`); an answer from outside does so when it comes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.limits import TTL_SECONDS_AUTO
from edgestead.model.served import PENDING, ServedRRset
from edgestead.services import limits
from edgestead.services.aliases import OurZone, enclosing_zone
from edgestead.services.record_view import read_settings
from edgestead.services.serving import Renderer, is_proxied, rrsets_of
from edgestead.store.control import Reader, Transaction
from edgestead.tables import flattened, records
from edgestead.tables.flattened import Dependent, Due
from edgestead.tables.records import Neighbour

CHAIN_MAX = 16  # links followed inside our zones; real chains have two or three
TTL_SECONDS_MAX = 300  # of an answer from outside: how late its change may be noticed
TTL_SECONDS_MIN = 20  # a target with shorter TTLs is asked no more often
STALE_TTL_SECONDS = 30  # RFC 8767 §4: of an answer that could not be renewed
RETRY_SECONDS = (1, 2, 5, 10, 30, 60)  # after so many failures; the last one from then on
DUE_MAX = 64  # targets in one round

_ADDRESSES = ("A", "AAAA")
_MICROSECONDS = 1_000_000
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[ServedRRset, ...]).decode


class Flat(NamedTuple):
    """Where a chase came to. `rrsets` is None when nobody can say yet, `outside` the target that must.

    `via` names everything on the way, in order.
    """

    rrsets: tuple[ServedRRset, ...] | None
    via: tuple[str, ...]
    outside: str | None = None

    @property
    def served(self) -> tuple[ServedRRset, ...]:
        return (ServedRRset(PENDING, 0, (b"",)),) if self.rrsets is None else self.rrsets


def has_alias(members: Iterable[Neighbour]) -> bool:
    return any(record.type == "CNAME" for record in members)


def alias_of(members: Sequence[Neighbour], *, at_apex: bool, flatten_all: bool) -> Neighbour | None:
    """The CNAME among a name's records if it has to be flattened; proxied names answer the edge instead."""
    alias = next((record for record in members if record.type == "CNAME"), None)
    if alias is None or is_proxied(members):
        return None
    wanted = at_apex or flatten_all or bool(read_settings(alias.settings).flatten_cname)
    return alias if wanted else None


def chase(reader: Reader, renderer: Renderer, alias: Neighbour) -> Flat:
    """Follow an alias to addresses; at most CHAIN_MAX links, each link's TTL shortens the answer's."""
    via: list[str] = []
    ttl_seconds = _ttl_seconds(alias)
    for _ in range(CHAIN_MAX):
        target = alias.rdata
        via.append(names.text_from_wire(target))
        zone = enclosing_zone(reader, target)
        if zone is None or _is_delegated(reader, zone, target):
            kept = flattened.answer(reader, via[-1])
            rrsets = None if kept is None else _shortened(_decode(kept), ttl_seconds)
            return Flat(rrsets, tuple(via), via[-1])
        found = _at_or_covering(reader, zone, target, via)
        if is_proxied(found):
            return Flat(_shortened(renderer.edge_rrsets(found), ttl_seconds), tuple(via))
        next_alias = next((record for record in found if record.type == "CNAME"), None)
        if next_alias is None:
            addresses = [record for record in found if record.type in _ADDRESSES]
            return Flat(_shortened(rrsets_of(addresses), ttl_seconds), tuple(via))
        alias, ttl_seconds = next_alias, min(ttl_seconds, _ttl_seconds(next_alias))
    return Flat(None, tuple(via))


def settle(tx: Transaction, zone_id: str, name: str, flat: Flat | None, now_us: int) -> None:
    """Write down what a name depends on; have a target outside asked for that nobody knew."""
    flattened.set_via(tx, zone_id, name, () if flat is None else dict.fromkeys(flat.via))
    if flat is not None and flat.outside is not None:
        flattened.want(tx, flat.outside, now_us)


def dependents(reader: Reader, changed: Iterable[str], limit: int) -> list[Dependent]:
    """The flattened names that hang on any of these, each once and in order."""
    found: dict[Dependent, None] = {}
    for name in changed:
        found.update(dict.fromkeys(flattened.dependents(reader, name, limit)))
    return sorted(found)[:limit]


def next_names(tx: Transaction, zone_id: str, after: str) -> list[str]:
    """The next names of a zone to render again, from "" on; where there are more the zone is noted.

    The first of them are rendered in the change itself, so that it is answered when DNS answers it; the
    upkeep goes on with the rest (`services.refreshing`).
    """
    found = records.flexible_names(tx, zone_id, after, limits.REFRESHED_NAMES_MAX)
    if len(found) == limits.REFRESHED_NAMES_MAX:
        flattened.set_refresh(tx, zone_id, found[-1])
    else:
        flattened.end_refresh(tx, zone_id)
    return found


def due(reader: Reader, now_us: int) -> list[Due]:
    """At most DUE_MAX targets, the longest waiting first."""
    return flattened.due(reader, now_us, DUE_MAX)


def take_answer(tx: Transaction, target: str, rrsets: Sequence[ServedRRset], now_us: int) -> bool:
    """Keep an answer, which may be empty, until its TTL has passed. Returns whether it says something new."""
    if not flattened.is_needed(tx, target):
        flattened.forget_target(tx, target)
        return False
    before = flattened.answer(tx, target)
    seconds = min((rrset.ttl_seconds for rrset in rrsets), default=TTL_SECONDS_MAX)
    seconds = min(max(seconds, TTL_SECONDS_MIN), TTL_SECONDS_MAX)
    # A TTL that counts down in a resolver's cache is no news: we answer the time until we ask again.
    now = _encode(tuple(ServedRRset(one.type, seconds, tuple(sorted(one.rdatas))) for one in rrsets))
    flattened.set_answered(tx, target, now, now_us, now_us + seconds * _MICROSECONDS)
    return before is None or _contents(before) != _contents(now)


def take_failure(tx: Transaction, due: Due, now_us: int) -> None:
    """Keep the last good answer for as long as there is no other one (RFC 8767 in spirit), and try again."""
    if not flattened.is_needed(tx, due.name):
        flattened.forget_target(tx, due.name)
        return
    seconds = RETRY_SECONDS[min(due.failures, len(RETRY_SECONDS) - 1)]
    flattened.set_failed(tx, due.name, now_us + seconds * _MICROSECONDS)


def _at_or_covering(reader: Reader, zone: OurZone, target: bytes, via: list[str]) -> list[Neighbour]:
    """What a zone of ours holds at a name, or for it by a wildcard; adds the wildcards to `via`.

    An empty non-terminal that hides a wildcard (RFC 4592 §2.2.2) is seen only if it has records itself.
    """
    found = records.at_name(reader, zone.id, names.text_from_wire(target))
    above = target
    while not found and above != zone.apex:
        above = names.parent(above)
        text = names.text_from_wire(above)
        via.append(f"*.{text}")
        found = records.at_name(reader, zone.id, via[-1])
        if not found and above != zone.apex and records.at_name(reader, zone.id, text):
            break
    return found


def _is_delegated(reader: Reader, zone: OurZone, target: bytes) -> bool:
    while target != zone.apex:
        found = records.at_name(reader, zone.id, names.text_from_wire(target))
        if any(record.type == "NS" for record in found):
            return True
        target = names.parent(target)
    return False


def _ttl_seconds(record: Neighbour) -> int:
    return TTL_SECONDS_AUTO if record.ttl == 1 else record.ttl


def _shortened(rrsets: Iterable[ServedRRset], ttl_seconds: int) -> tuple[ServedRRset, ...]:
    return tuple(
        msgspec.structs.replace(one, ttl_seconds=min(one.ttl_seconds, ttl_seconds)) for one in rrsets
    )


def _contents(encoded: bytes) -> list[tuple[int, tuple[bytes, ...]]]:
    return [(one.type, one.rdatas) for one in _decode(encoded)]
