"""CNAME flattening: an alias answered with its target's addresses, where an alias may not or shall not stand.

Owns  when a CNAME is flattened, the chase through our own zones, whose answers hang on which names, when a
      target outside is asked for again.
Not   asking the world outside (`server.control.resolving`); settings and records.

Nothing is chased when a query comes. Whatever changes a name on the way renders the flattened names that hang
on it again, in the same transaction (`dependents`); an answer from outside does so when it comes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from edgestead.model import names
from edgestead.model.limits import TTL_SECONDS_AUTO
from edgestead.model.records import TYPES
from edgestead.model.served import PENDING, ServedRRset, mark
from edgestead.store.control import Reader, Transaction
from edgestead.tables import flattened, records, zones
from edgestead.tables.flattened import Dependent, Due
from edgestead.tables.records import Neighbour
from edgestead.usecases import limits
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.aliases import OurZone, enclosing_zone
from edgestead.usecases.serving.rendering import (
    Renderer,
    ZoneFacts,
    is_at_edge,
    is_proxied,
    read_settings,
    rrsets_of,
)

CHAIN_MAX = 16  # links followed inside our zones; real chains have two or three
TTL_SECONDS_MAX = 300  # of an answer from outside: how late its change may be noticed
TTL_SECONDS_MIN = 20  # a target with shorter TTLs is asked no more often
NOTHING_SECONDS = 60  # until a target without addresses is asked again: it may be about to be made
RETRY_SECONDS = (1, 2, 5, 10, 30, 60)  # after so many failures; the last one from then on

_ADDRESSES = ("A", "AAAA")
_CNAME = TYPES["CNAME"].number
_MICROSECONDS = 1_000_000
_PENDING = mark(PENDING)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[ServedRRset, ...]).decode


class Answer(NamedTuple):
    """What a resolver says of a target: its addresses, and the aliases on the way to them, in order.

    `unknown` is the type that it could not say, when it could say the other one.
    """

    rrsets: tuple[ServedRRset, ...]
    aliases: tuple[bytes, ...] = ()
    unknown: int | None = None


class Flat(NamedTuple):
    """Where a chase came to. `rrsets` is None while the result is unknown.

    `via` names everything that the answer hangs on, each once; `outside` are those among them that somebody
    else answers for.
    """

    rrsets: tuple[ServedRRset, ...] | None
    via: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @property
    def served(self) -> tuple[ServedRRset, ...]:
        return (_PENDING,) if self.rrsets is None else self.rrsets


def alias_of(members: Sequence[Neighbour], facts: ZoneFacts, *, at_apex: bool) -> Neighbour | None:
    """The CNAME among a name's records if it has to be flattened; proxied names answer the edge instead."""
    alias = next((record for record in members if record.type == "CNAME"), None)
    if alias is None or is_at_edge(members, facts):
        return None
    wanted = at_apex or facts.flatten_all or bool(read_settings(alias.settings).flatten_cname)
    return alias if wanted else None


def chase(reader: Reader, renderer: Renderer, alias: Neighbour) -> Flat:
    """Follow an alias to addresses; at most CHAIN_MAX links, each link's TTL shortens the answer's."""
    via: dict[str, None] = {}
    outside: list[str] = []
    target, ttl_seconds = alias.rdata, _ttl_seconds(alias)
    for _ in range(CHAIN_MAX):
        zone = enclosing_zone(reader, target)
        found = None if zone is None else _at_or_covering(reader, zone, target, via)
        if found is None:
            text = names.text_from_wire(target)
            via[text] = None
            outside.append(text)
            rrsets = _kept(reader, text)
            back = rrsets and next((one for one in rrsets if one.type == _CNAME), None)
            if not back:
                return _flat(rrsets, ttl_seconds, via, outside)
            target, ttl_seconds = back.rdatas[0], min(ttl_seconds, back.ttl_seconds)
            continue
        facts = _facts_at_edge(reader, zone, found)
        if facts is not None:
            return _flat(renderer.edge_rrsets(found, facts), ttl_seconds, via, outside)
        next_alias = next((record for record in found if record.type == "CNAME"), None)
        if next_alias is None:
            addresses = [record for record in found if record.type in _ADDRESSES]
            return _flat(rrsets_of(addresses), ttl_seconds, via, outside)
        target, ttl_seconds = next_alias.rdata, min(ttl_seconds, _ttl_seconds(next_alias))
    return _flat(None, ttl_seconds, via, outside)


def settle(tx: Transaction, zone_id: str, name: str, flat: Flat | None, now_us: int) -> None:
    """Store the dependencies of a name; schedule queries for new targets outside."""
    flattened.set_via(tx, zone_id, name, () if flat is None else flat.via)
    for target in () if flat is None else flat.outside:
        flattened.want(tx, target, now_us)


def dependents(reader: Reader, changed: Iterable[str], at_most: int) -> list[Dependent] | None:
    """The flattened names that hang on any of these, each once and in order; None when there are more."""
    found: dict[Dependent, None] = {}
    for name in changed:
        found.update(dict.fromkeys(flattened.dependents(reader, name, at_most + 1)))
        if len(found) > at_most:
            return None
    return sorted(found)


def with_ancestors(changed: Iterable[str], apex: str) -> list[str]:
    """Names of a zone, and those between them and its apex, which may be empty non-terminals."""
    found: dict[str, None] = {}
    for name in changed:
        found[name] = None
        above = name.partition(".")[2]
        while name != apex and above != apex:
            found[above] = None
            above = above.partition(".")[2]
    return list(found)


def refresh_later(tx: Transaction, changed: Iterable[str]) -> None:
    """Have the upkeep render whatever hangs on any of these, with the rest of its zones."""
    for name in changed:
        flattened.refresh_zones_hanging(tx, name)


def next_names(tx: Transaction, zone_id: str, after: str) -> list[str]:
    """The next names of a zone to render again, from "" on; where there are more the zone is noted.

    The first of them are rendered in the change itself, so that it is answered when DNS answers it; the
    upkeep goes on with the rest (`usecases.zone.refreshing`).
    """
    found = records.flexible_names(tx, zone_id, after, limits.REFRESHED_NAMES_MAX)
    if len(found) == limits.REFRESHED_NAMES_MAX:
        flattened.set_refresh(tx, zone_id, found[-1])
    else:
        flattened.end_refresh(tx, zone_id)
    return found


def due(reader: Reader, now_us: int, at_most: int) -> list[Due]:
    """Targets to be asked for: those that never were, the newest first, then the longest waiting.

    So a new alias does not wait behind the thousands of an import.
    """
    return flattened.due(reader, now_us, at_most)


def is_wanted(reader: Reader, target: str) -> bool:
    """Whether a flattened name still hangs on this target, and no zone of ours has come to hold it."""
    return flattened.is_needed(reader, target) and not _is_ours(reader, names.wire_from_text(target))


def forget(tx: Transaction, targets: Iterable[str]) -> None:
    """Targets without a dependent alias. They are kept until they are due, for an alias that is created
    again.
    """
    for target in targets:
        if not is_wanted(tx, target):
            flattened.forget_target(tx, target)


def take_answer(tx: Transaction, target: str, answer: Answer, now_us: int) -> bool:
    """Keep an answer, which may be empty, until its TTL has passed. Returns whether it says something new.

    A chain that comes back into our zones is kept as the way there: followed to the addresses that we serve
    now. Else we would renew our own old answer for ever, once it had gone through the world.
    """
    if not flattened.exists(tx, target):
        return False
    before = _kept(tx, target)
    back = next((name for name in answer.aliases if _is_ours(tx, name)), None)
    seconds = min((rrset.ttl_seconds for rrset in answer.rrsets), default=NOTHING_SECONDS)
    seconds = min(max(seconds, TTL_SECONDS_MIN), TTL_SECONDS_MAX)
    if back is not None:
        now = [ServedRRset(_CNAME, seconds, (back,))]
    else:
        # A TTL that counts down in a resolver's cache is no news: we answer the time until we ask again.
        now = [ServedRRset(one.type, seconds, tuple(sorted(one.rdatas))) for one in answer.rrsets]
        if answer.unknown is not None:
            now += [one for one in before or (_PENDING,) if one.type in (answer.unknown, PENDING)]
    flattened.set_answered(tx, target, _encode(now), now_us, now_us + seconds * _MICROSECONDS)
    return before is None or _contents(before) != _contents(now)


def take_failure(tx: Transaction, due: Due, now_us: int) -> None:
    """Keep the last good answer for as long as there is no other one (RFC 8767 in spirit), and try again."""
    seconds = RETRY_SECONDS[min(due.failures, len(RETRY_SECONDS) - 1)]
    flattened.set_failed(tx, due.name, now_us + seconds * _MICROSECONDS)


def mend_clock(tx: Transaction, now_us: int) -> None:
    """Have nothing wait longer than it may: a clock that was ahead has given times that are far away."""
    flattened.due_no_later(tx, now_us + TTL_SECONDS_MAX * _MICROSECONDS)


def _facts_at_edge(reader: Reader, zone: OurZone | None, found: Sequence[Neighbour]) -> ZoneFacts | None:
    """The facts of a zone that answers these records with the edge; None when it does not."""
    row = zones.zone(reader, zone.id) if zone is not None and is_proxied(found) else None
    if row is None:
        return None
    facts = zone_facts.facts_of(reader, row)
    return None if facts.dns_only else facts


def refresh_others_below(tx: Transaction, apex: str, but_for: str = "") -> None:
    """Have the upkeep look again at zones with a name that hangs on anything at or below an apex."""
    for zone_id in flattened.zones_hanging_below(tx, apex):
        if zone_id != but_for:
            flattened.set_refresh(tx, zone_id, "")


def _flat(
    rrsets: Iterable[ServedRRset] | None, ttl_seconds: int, via: Iterable[str], outside: Iterable[str]
) -> Flat:
    shortened = None
    if rrsets is not None:
        shortened = tuple(
            msgspec.structs.replace(one, ttl_seconds=min(one.ttl_seconds, ttl_seconds)) for one in rrsets
        )
    return Flat(shortened, tuple(via), tuple(dict.fromkeys(outside)))


def _kept(reader: Reader, target: str) -> tuple[ServedRRset, ...] | None:
    """The last good answer of a target outside."""
    kept = flattened.answer(reader, target)
    return None if kept is None else _decode(kept)


def _is_ours(reader: Reader, name: bytes) -> bool:
    zone = enclosing_zone(reader, name)
    return zone is not None and _at_or_covering(reader, zone, name, {}) is not None


def _at_or_covering(
    reader: Reader, zone: OurZone, target: bytes, via: dict[str, None]
) -> list[Neighbour] | None:
    """What a zone of ours holds at a name, or for it by a wildcard; None when the name is delegated.

    Adds to `via` each name whose change may change that: those above, which may become a delegation or hide
    a wildcard, and the wildcards. An empty non-terminal hides a wildcard, too (RFC 4592 §2.2.2): whatever
    comes or goes below a name counts as its change (`with_ancestors`).
    """
    above = [target]
    while above[-1] != zone.apex:
        above.append(names.parent(above[-1]))
    texts = [names.text_from_wire(name) for name in above]
    via.update(dict.fromkeys(texts[: max(1, len(texts) - 1)]))
    found = [records.at_name(reader, zone.id, text) for text in texts]
    if any(record.type == "NS" for members in found[:-1] for record in members):
        return None
    if found[0]:
        return found[0]
    for below, text, members in zip(texts, texts[1:], found[1:], strict=False):
        wildcard = f"*.{text}"
        via[wildcard] = None
        covering = records.at_name(reader, zone.id, wildcard)
        if members or covering:
            return [] if covering and records.is_above(reader, zone.id, below) else covering
    return []


def _ttl_seconds(record: Neighbour) -> int:
    return TTL_SECONDS_AUTO if record.ttl == 1 else record.ttl


def _contents(rrsets: Iterable[ServedRRset]) -> list[tuple[int, tuple[bytes, ...]]]:
    return [(one.type, one.rdatas) for one in rrsets]
