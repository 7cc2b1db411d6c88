"""Secondary zones: their primaries, their timers, and taking what was transferred (RFC 1034 §4.3.5).

Owns  the state of each, when it is due, which transfer is refused, what a transfer changes.
Not   asking primaries (`server.control.incoming`); rendering (`usecases.serving`).

The records are rows like those of other zones, so that lists, filters and files show them, and one place
renders. Nobody but a transfer changes them (`usecases.change.records`). `State.serial` is the primary's; the
zone's own goes ahead of it when an override changes what is served.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from edgestead.model import names, served, zonemd
from edgestead.model.addresses import plain
from edgestead.model.call import Call
from edgestead.model.dnssec import (
    NSEC,
    NSEC3,
    NSEC3_SHA1,
    NSEC3PARAM,
    RRSIG,
    Nsec3Params,
    covered,
    nsec3_label,
    nsec3_params,
)
from edgestead.model.limits import TTL_SECONDS_AUTO
from edgestead.model.records import TYPES_BY_NUMBER, folded_content, from_wire
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.secondary import IncomingNotFound, IncomingRefused, NotSecondary
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import carried, records, settings, tsig_keys, zones
from edgestead.tables.carried import CarriedRow
from edgestead.tables.records import StoredRecord
from edgestead.tables.tsig_keys import TsigRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change import overrides
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.neighbours import Draft
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import followed, presigned, serials
from edgestead.usecases.serving.facts import FAMILY, SECONDARY, StoredSoa, stored_dnssec
from edgestead.usecases.serving.followed import Followed
from edgestead.usecases.serving.presigned import CARRIED, ITERATIONS_MAX, SIGNED
from edgestead.usecases.serving.rendering import ADDRESS_TYPES

PEERS: Final = "secondary_peers"
STATE: Final = "secondary.state"
INCOMING: Final = "secondary.incoming"
SOA_SETTING: Final = f"{FAMILY}.soa"

FIRST_RETRY_SECONDS: Final = 5  # of a zone that was never transferred; doubled with each failure
RETRY_SECONDS_MAX: Final = 3_600  # however often it failed
REFRESH_SECONDS: Final = (30, 86_400)  # whatever a primary's SOA says
EXPIRE_SECONDS: Final = (3_600, 30 * 86_400)
JITTER: Final = 0.1  # of each pause, so that zones that came together do not stay together
CHANGES_AT_ONCE_MAX: Final = 1_000  # records in one transaction: about 150 ms of the writer's time
RECORDS_OF_A_TYPE_MAX: Final = 65_535  # at one name: the count in a message has 16 bits
RECORDS_OF_A_NAME_MAX: Final = 5_000  # of a signed zone, whose names are each written in one transaction
TTL_SECONDS_MAX: Final = 2**31 - 1  # RFC 2181 §8
CHAINS_MAX: Final = 2  # of NSEC3 records: one, and the one that takes its place
SALT_OCTETS_MAX: Final = 64  # hashed anew with each iteration of each denial; RFC 9276 §3.1 wants none
ROWS_PER_READ: Final = 5_000
_US: Final = 1_000_000
_SOA: Final = 6
_LINKS: Final = (NSEC, NSEC3)

_encode = msgspec.json.Encoder().encode


class Peer(msgspec.Struct, frozen=True):
    """A name server of others; without `ip` it cannot be asked. With `tsig_id` transfers are signed, with
    `tls` they are over TLS only."""

    id: str
    name: str
    ip: str = ""
    port: int = 53
    ixfr_enable: bool = True
    tsig_id: str | None = None
    tls: bool = False


class State(msgspec.Struct, frozen=True):
    """`serial` is the primary's as it was transferred, None before that; `lost` while DNS answers SERVFAIL.

    `checked_us` is the last time that a primary answered, `due_us` when one is asked next; `tries` are the
    failures since, `problem` the last one's reason. `whole`: the next transfer is a full one. `mixed`: some
    parts of a transfer are written, its end is not, so that no changes lead on from the records.
    """

    serial: int | None = None
    refresh: int = 3_600
    retry: int = 600
    expire: int = 604_800
    checked_us: int = 0
    due_us: int = 0
    tries: int = 0
    problem: str = ""
    whole: bool = False
    lost: bool = True
    mixed: bool = False

    @property
    def expires_us(self) -> int:
        return self.checked_us + self.expire * _US

    def due_since_us(self, now_us: int) -> int:
        """Of one that is due: since its timer ended or somebody asked, or since it expired behind that."""
        has_expired = not self.lost and self.due_us < self.expires_us <= now_us
        return self.expires_us if has_expired else self.due_us


class Incoming(msgspec.Struct, frozen=True):
    """Which peers a zone is transferred from, the first one that answers.

    `tsig_id` stands in the place of their keys.
    """

    id: str
    name: str
    peers: tuple[str, ...]
    auto_refresh_seconds: int
    created_us: int
    modified_us: int
    tsig_id: str | None = None


class IncomingBody(msgspec.Struct, frozen=True):
    name: str | None = None
    peers: list[str] | None = None
    auto_refresh_seconds: int | None = None


class IncomingView(msgspec.Struct, frozen=True, kw_only=True):
    """As the original API has it; `problem` is our own: why the last attempt failed, "" if it did not."""

    id: str
    name: str
    peers: tuple[str, ...]
    auto_refresh_seconds: int
    soa_serial: int
    checked_time: str | None
    created_time: str
    modified_time: str
    problem: str
    expired: bool


class Rr(NamedTuple):
    """A record as it was transferred: owner lower-case, rdata uncompressed, both in wire form."""

    owner: bytes
    type: int
    ttl: int
    rdata: bytes


class Content(NamedTuple):
    """A whole zone. `soa` is the rdata, which is not among `records`."""

    soa: bytes
    soa_ttl: int
    records: Collection[Rr]
    of_one_second: Collection[Rr] = frozenset()
    """Those of `records` that have two seconds there, and had one."""
    from_changes: bool = False
    """Whether it is what was there before and what changed, and not all from the primary."""

    @property
    def serial(self) -> int:
        return int.from_bytes(self.soa[-20:-16], "big")


class Unfit(Exception):
    """A transfer that is not taken; the message says why."""


class Changes(NamedTuple):
    """What leads from the rows to a `Content`, in steps of one record each, those of one name together."""

    content: Content
    steps: Sequence["Step"]


class Step(NamedTuple):
    """One of: a row that goes, by id; a record that comes; one that is carried, which comes or is `gone`."""

    name: str
    row_id: str = ""
    draft: Draft | None = None
    carried: CarriedRow | None = None
    gone: bool = False


_read_state = msgspec.json.Decoder(State).decode
_read_incoming = msgspec.json.Decoder(Incoming).decode
_read_peer = msgspec.json.Decoder(Peer).decode


def peers_of(reader: Reader, account_id: str) -> dict[str, Peer]:
    """An account's peers by id."""
    found = settings.family(reader, account_id, PEERS)
    return {id_: _read_peer(stored.value) for id_, stored in found.items()}


def zones_with_peer(reader: Reader, peer_id: str) -> list[str]:
    """Zones, and followed catalogs, by id."""
    followers = [
        one.id for one in followed.every(reader) if peer_id in one.peers or _is_in_a_group(one, peer_id)
    ]
    return followers + [
        zone_id
        for zone_id, value in settings.scopes(reader, INCOMING)
        if peer_id in _read_incoming(value).peers
    ]


def _is_in_a_group(catalog: Followed, peer_id: str) -> bool:
    return any(peer_id in group.peers for group in catalog.groups.values())


def states(reader: Reader) -> dict[str, State]:
    """Of every secondary zone, by id."""
    return {zone_id: _read_state(value) for zone_id, value in settings.scopes(reader, STATE)}


def state_of(reader: Reader, zone_id: str) -> State:
    stored = settings.one(reader, zone_id, STATE)
    return _read_state(stored.value) if stored else State()


def begin(call: Call, tx: Transaction, platform: Platform, row: ZoneRow, apex: bytes) -> None:
    """A new one: DNS answers SERVFAIL for it until it was transferred."""
    zone = platform.renderer.zone(apex, row.serial)
    tx.emit(row.id, served.KIND_ZONE, "", served.encode(msgspec.structs.replace(zone, lost=True)))
    _put_state(call, tx, row.id, State(due_us=call.now_us))


def show(reader: Reader, zone_id: str) -> IncomingView:
    """Raises ZoneNotFound, NotSecondary, IncomingNotFound."""
    _secondary(reader, zone_id)
    found, state = _incoming(reader, zone_id), state_of(reader, zone_id)
    return IncomingView(
        id=found.id,
        name=found.name,
        peers=found.peers,
        auto_refresh_seconds=found.auto_refresh_seconds,
        soa_serial=state.serial or 0,
        checked_time=six_digits(state.checked_us) if state.checked_us else None,
        created_time=six_digits(found.created_us),
        modified_time=six_digits(found.modified_us),
        problem=state.problem,
        expired=state.lost and state.serial is not None,
    )


def put(call: Call, tx: Transaction, platform: Platform, zone_id: str, body: IncomingBody) -> IncomingView:
    """Say where a zone is transferred from; it is asked for at once.

    Raises ZoneNotFound, NotSecondary, IncomingRefused.
    """
    zone = _secondary(tx, zone_id)
    stored = settings.one(tx, zone_id, INCOMING)
    before = _read_incoming(stored.value) if stored else None
    known = peers_of(tx, zone.account_id)
    wanted = tuple(dict.fromkeys(body.peers or ()))
    if not 1 <= len(wanted) <= limits.PEERS_PER_ZONE_MAX:
        reason = f"peers are 1 to {limits.PEERS_PER_ZONE_MAX} ids of peers."
        raise IncomingRefused(reason=reason, pointer="/peers")
    for at, peer_id in enumerate(wanted):
        if peer_id not in known or not known[peer_id].ip:
            reason = "the account has no such peer, or it has no ip."
            raise IncomingRefused(reason=reason, pointer=f"/peers/{at}")
    pause = body.auto_refresh_seconds or 0
    if pause and not REFRESH_SECONDS[0] <= pause <= REFRESH_SECONDS[1]:
        reason = f"auto_refresh_seconds is 0, for the SOA's, or {REFRESH_SECONDS[0]} to {REFRESH_SECONDS[1]}."
        raise IncomingRefused(reason=reason, pointer="/auto_refresh_seconds")
    incoming = Incoming(
        before.id if before else platform.new_id(),
        (body.name or zone.name)[: limits.PEER_NAME_CHARACTERS_MAX],
        wanted,
        pause,
        before.created_us if before else call.now_us,
        call.now_us,
    )  # a key that a catalog gave goes with its peers: those that are named here have their own
    settings.put(tx, zone_id, INCOMING, _encode(incoming).decode(), call.now_us)
    refresh_soon(call, tx, zone_id)
    return show(tx, zone_id)


def follow(
    call: Call,
    tx: Transaction,
    platform: Platform,
    zone: ZoneRow,
    peers: tuple[str, ...],
    tsig_id: str | None,
) -> None:
    """Transfer a zone from where its catalog says; nothing is written where that is known."""
    stored = settings.one(tx, zone.id, INCOMING)
    before = _read_incoming(stored.value) if stored else None
    if before is not None and (before.peers, before.tsig_id) == (peers, tsig_id):
        return
    if before is None:
        before = Incoming(platform.new_id(), zone.name, (), 0, call.now_us, call.now_us)
    incoming = msgspec.structs.replace(before, peers=peers, tsig_id=tsig_id, modified_us=call.now_us)
    settings.put(tx, zone.id, INCOMING, _encode(incoming).decode(), call.now_us)
    refresh_soon(call, tx, zone.id)


def zone_with_tsig(reader: Reader, account_id: str, tsig_id: str) -> str | None:
    """The name of a zone of the account that its catalog gave this key."""
    for zone_id, value in settings.scopes(reader, INCOMING):
        zone = zones.zone(reader, zone_id) if _read_incoming(value).tsig_id == tsig_id else None
        if zone is not None and zone.account_id == account_id:
            return zone.name
    return None


def is_followed_so(reader: Reader, zone_id: str, peers: tuple[str, ...], tsig_id: str | None) -> bool:
    """Whether `follow` would change nothing."""
    stored = settings.one(reader, zone_id, INCOMING)
    found = _read_incoming(stored.value) if stored else None
    return found is not None and (found.peers, found.tsig_id) == (peers, tsig_id)


def delete(tx: Transaction, zone_id: str) -> IncomingView:
    """The zone is refreshed no longer, and expires. Raises ZoneNotFound, NotSecondary, IncomingNotFound."""
    found = show(tx, zone_id)
    settings.delete(tx, zone_id, INCOMING)
    return found


def force(call: Call, tx: Transaction, zone_id: str) -> str:
    """Have the whole zone transferred, soon. Raises ZoneNotFound, NotSecondary, IncomingNotFound."""
    show(tx, zone_id)
    state = state_of(tx, zone_id)
    _put_state(call, tx, zone_id, msgspec.structs.replace(state, whole=True, due_us=call.now_us))
    return "OK"


def refresh_each(call: Call, tx: Transaction, zone_ids: Iterable[str]) -> None:
    for zone_id in zone_ids:
        if zones.zone(tx, zone_id) is not None:
            refresh_soon(call, tx, zone_id)


def transfer_again(call: Call, tx: Transaction, zone_id: str) -> None:
    """Have all of a zone transferred, whether it has peers yet or not."""
    state = state_of(tx, zone_id)
    _put_state(call, tx, zone_id, msgspec.structs.replace(state, whole=True, due_us=call.now_us, tries=0))


def refresh_soon(call: Call, tx: Transaction, zone_id: str) -> None:
    state = state_of(tx, zone_id)
    _put_state(call, tx, zone_id, msgspec.structs.replace(state, due_us=call.now_us, tries=0))


Notice = tuple[str, str]
"""A NOTIFY: the address that it came from, and the zone as text without its last dot."""


def told(reader: Reader, notices: Iterable[Notice]) -> list[str]:
    """Which zones a primary of theirs says to have changed, by id (RFC 1996 §3.10: no other is heard)."""
    found = []
    for address, name in notices:
        zone_id = zones.id_by_name(reader, name)
        stored = settings.one(reader, zone_id, INCOMING) if zone_id is not None else None
        account_id = zones.account_id(reader, zone_id) if stored and zone_id else None
        if stored is None or zone_id is None or account_id is None:
            continue
        known, wanted = peers_of(reader, account_id), _read_incoming(stored.value).peers
        if is_from(address, (known[id_] for id_ in wanted if id_ in known)):
            found.append(zone_id)
    return found


def is_from(address: str, peers: Iterable[Peer]) -> bool:
    """Whether a notice came from one of these."""
    return any(plain(peer.ip) == plain(address) for peer in peers if peer.ip)


class Task(NamedTuple):
    """One zone to be asked for; `keys` are those of its peers, by id."""

    zone_id: str
    name: str
    peers: Sequence[Peer]
    state: State
    records_max: int
    keys: Mapping[str, TsigRow]
    presigned: bool = False


class Waiting(NamedTuple):
    zone_id: str
    account_id: str
    state: State


def waiting(reader: Reader, now_us: int) -> list[Waiting]:
    """Zones whose time has come, those that wait longest first."""
    due = {zone_id: state for zone_id, state in states(reader).items() if state.due_us <= now_us}
    accounts = zones.account_ids(reader, STATE) if due else {}
    found = [Waiting(id_, accounts[id_], state) for id_, state in due.items() if id_ in accounts]
    return sorted(found, key=lambda one: (one.state.due_us, one.zone_id))


def task_of(reader: Reader, platform: Platform, due: Waiting) -> Task:
    zone_id, account_id, state = due
    stored = settings.one(reader, zone_id, INCOMING)
    incoming = _read_incoming(stored.value) if stored else None
    known = peers_of(reader, account_id)
    peers = [known[id_] for id_ in (incoming.peers if incoming else ()) if id_ in known]
    if incoming is not None and incoming.tsig_id:
        peers = [msgspec.structs.replace(peer, tsig_id=incoming.tsig_id) for peer in peers]
    keys = keys_of(reader, account_id, peers)
    is_presigned = stored_dnssec(reader, zone_id).presigned
    name = zone_of(reader, zone_id).name
    return Task(zone_id, name, peers, state, platform.quotas.zone_records, keys, is_presigned)


def keys_of(reader: Reader, account_id: str, peers: Iterable[Peer]) -> dict[str, TsigRow]:
    found = (tsig_keys.one(reader, account_id, peer.tsig_id) for peer in peers if peer.tsig_id)
    return {row.id: row for row in found if row is not None}


def late(reader: Reader, now_us: int, most: int) -> list[tuple[str, State]]:
    """By name the zones that are not served, or that no primary has confirmed for half of their expire time;
    those first that wait longest.
    """
    found = [(one.checked_us, id_, one) for id_, one in states(reader).items() if _is_late(one, now_us)]
    named = (
        (zones.zone(reader, id_), state) for _, id_, state in sorted(found, key=lambda row: row[:2])[:most]
    )
    return [(zone.name, state) for zone, state in named if zone is not None]


def _is_late(state: State, now_us: int) -> bool:
    if state.lost:
        return bool(state.problem)
    is_due = state.tries > 0 or state.due_us <= now_us
    return is_due and now_us >= state.checked_us + state.expire * _US // 2


def ending(reader: Reader, before_us: int) -> list[tuple[str, int]]:
    """Presigned zones with a signature that ends before a time, and when it does; by name."""
    found = []
    for zone_id in carried.zones(reader):
        zone, ends = zones.zone(reader, zone_id), carried.first_end(reader, zone_id)
        if zone is not None and ends is not None and ends * _US < before_us:
            found.append((zone.name, ends * _US))
    return sorted(found)


def wants_whole(reader: Reader, task: Task) -> bool:
    """Whether changes alone are not enough: somebody has asked for all, or the records are of no serial, also
    since this task has written some of them.
    """
    return task.state.whole or state_of(reader, task.zone_id).mixed


def present(reader: Reader, task: Task) -> frozenset[Rr]:
    """The zone's records as they were transferred, but for the SOA."""
    found = [_rr(row) for row in _rows(reader, task.zone_id)]
    found += [_carried_rr(row) for row in carried.of_zone(reader, task.zone_id, ROWS_PER_READ)]
    return frozenset(found)


def changes(reader: Reader, task: Task, content: Content) -> Changes:
    """What is to be written. Takes 50 µs for each new record. Raises Unfit.

    A zone that we serve in our own way, with names proxied say, goes without its primary's digest.
    """
    if len(content.records) > task.records_max:
        raise Unfit(f"it has more than {task.records_max} records")
    apex = names.wire_from_text(task.name)
    check_fit(apex, content, is_presigned=task.presigned)
    soa = Rr(apex, _SOA, content.soa_ttl, content.soa)
    problem = zonemd.problem(apex, soa, content.records, content.of_one_second)
    if problem:
        raise Unfit(problem)
    proxied = overrides.names_of(reader, task.zone_id)
    wanted = {rr for rr in content.records if task.presigned or (rr.owner, rr.type) != (apex, zonemd.ZONEMD)}
    steps = []
    for row in _rows(reader, task.zone_id):
        rr = _rr(row)
        if rr in wanted:
            wanted.discard(rr)
        else:
            steps.append(Step(row.name, row_id=row.id))
    for carried_row in carried.of_zone(reader, task.zone_id, ROWS_PER_READ):
        rr = _carried_rr(carried_row)
        if rr in wanted:
            wanted.discard(rr)
        else:
            steps.append(Step(carried_row.name, carried=carried_row, gone=True))
    for rr in sorted(wanted):
        name = names.text_from_wire(rr.owner)
        if task.presigned and rr.type in CARRIED:
            row_of = presigned.row_of(task.zone_id, name, rr.type, rr.ttl, rr.rdata)
            steps.append(Step(name, carried=row_of))
        else:
            steps.append(Step(name, draft=_draft(rr, apex, proxied)))
    steps.sort(key=lambda step: step.name)  # stable: what goes from a name goes before what comes
    return Changes(content, steps)


def check_fit(apex: bytes, content: Content, *, is_presigned: bool) -> None:
    """Raises Unfit: a signed zone where none is wanted, one whose denials cost too much or are not all there,
    or what no DNS process could load.
    """
    counts: Counter[tuple[bytes, int, int]] = Counter()
    chains: set[Nsec3Params] = set()
    for rr in content.records:
        if rr.type in SIGNED and not is_presigned:
            raise Unfit("the zone is signed, and dnssec_presigned, which serves it as it was signed, is off")
        if rr.ttl > TTL_SECONDS_MAX:
            raise Unfit(f"a record at {names.text_from_wire(rr.owner)} has a TTL of {rr.ttl} seconds")
        if rr.type in (NSEC3, NSEC3PARAM):
            chains.add(_params(rr.rdata))
            if len(chains) > CHAINS_MAX:
                raise Unfit(f"its NSEC3 records are hashed in more than {CHAINS_MAX} ways")
        counts[rr.owner, rr.type, covered(rr.rdata) if rr.type == RRSIG else 0] += 1
    _check_counts(counts)
    owners = [(apex, NSEC), *((nsec3_label(apex, one) + apex, NSEC3) for one in chains)]
    if counts[apex, RRSIG, _SOA] and not any(counts[owner, type_, 0] for owner, type_ in owners):
        raise Unfit(
            "it is signed, and its apex has no NSEC or NSEC3 record: nothing that is not there is proven"
        )
    if is_presigned:
        _check_names(content)


def _check_counts(counts: Counter[tuple[bytes, int, int]]) -> None:
    """Of records by owner, type and the type that a signature covers. Raises Unfit."""
    for (owner, type_, _), count in counts.items():
        if count > RECORDS_OF_A_TYPE_MAX:
            name = names.text_from_wire(owner)
            raise Unfit(f"{name} has more than {RECORDS_OF_A_TYPE_MAX} records of type {type_}")
        if type_ in _LINKS and (count > 1 or not counts[owner, RRSIG, type_]):
            raise Unfit(
                f"{names.text_from_wire(owner)} has an NSEC or NSEC3 record that is not signed, or two"
            )


def _check_names(content: Content) -> None:
    """Raises Unfit."""
    for owner, count in Counter(rr.owner for rr in content.records).items():
        if count > RECORDS_OF_A_NAME_MAX:
            raise Unfit(f"{names.text_from_wire(owner)} has more than {RECORDS_OF_A_NAME_MAX} records")


def _params(rdata: bytes) -> Nsec3Params:
    """How an NSEC3 or NSEC3PARAM record hashes. Raises Unfit."""
    try:
        params = nsec3_params(rdata)
    except ValueError as error:
        raise Unfit(str(error)) from None
    if params.algorithm != NSEC3_SHA1:
        raise Unfit(f"its NSEC3 records have the unknown hash {params.algorithm}")
    if params.iterations > ITERATIONS_MAX:
        reason = f"its NSEC3 records want {params.iterations} iterations, more than {ITERATIONS_MAX}"
        raise Unfit(f"{reason} (RFC 9276 wants none)")
    if len(params.salt) > SALT_OCTETS_MAX:
        raise Unfit(
            f"its NSEC3 records have a salt of {len(params.salt)} octets, more than {SALT_OCTETS_MAX}"
        )
    return params


def take(call: Call, tx: Transaction, platform: Platform, task: Task, found: Changes, start: int) -> int:
    """Write the next portion of a transfer, from change `start` on; returns where the one after it starts, -1
    when that was the last. DNS has the new SOA with the last one.
    """
    zone = zones.zone(tx, task.zone_id)
    if zone is None or stored_dnssec(tx, zone.id).presigned != task.presigned:
        return -1  # who changed that has had the zone asked for again, as it is wanted now
    total = len(found.steps)
    end = min(start + CHANGES_AT_ONCE_MAX, total)
    if task.presigned:  # the two records of a chain, or none, are what no name may have at any moment
        while end < total and found.steps[end].name == found.steps[end - 1].name:
            end += 1
    edit = ZoneEdit(call, tx, platform, task.zone_id)
    for step in found.steps[start:end]:
        if step.carried is not None:
            edit.records.carry(step.carried, gone=step.gone)
        elif step.draft is not None:
            edit.records.put_transferred(step.draft)
        else:
            edit.records.drop_transferred(step.row_id, step.name)
    if end < total:
        edit.publish_names_only()
        edit.finish()
        if start == 0:
            _put_state(call, tx, zone.id, msgspec.structs.replace(state_of(tx, zone.id), mixed=True))
        return end
    _finish(call, tx, edit, zone, task, found.content)
    return -1


def _finish(
    call: Call,
    tx: Transaction,
    edit: ZoneEdit,
    zone: ZoneRow,
    task: Task,
    content: Content,
) -> None:
    soa, numbers = soa_of(content)
    settings.put(tx, zone.id, SOA_SETTING, _encode(soa).decode(), call.now_us)
    is_first = task.state.serial is None
    ahead = (content.serial - zone.serial) % serials.SERIAL_END
    is_newer = 0 < ahead < serials.SERIAL_END // 2
    keeps = task.presigned or is_first or is_newer  # a signed SOA cannot have another serial
    serial = content.serial if keeps else serials.next_serial(zone.serial)
    edit.take_transfer(serial, follows=not (is_first or state_of(tx, zone.id).mixed))
    edit.finish()
    refresh, retry, expire = numbers
    state = State(content.serial, refresh, retry, expire, call.now_us, lost=False)
    _put_state(call, tx, zone.id, _after_success(tx, task, state, call.now_us))


def current(call: Call, tx: Transaction, task: Task) -> None:
    """A primary has nothing newer."""
    zone = zones.zone(tx, task.zone_id)
    if zone is None:
        return
    state = state_of(tx, zone.id)
    if state.lost and state.serial is not None:
        _tell_lost(tx, zone.id, is_lost=False)
    state = msgspec.structs.replace(
        state, checked_us=call.now_us, tries=0, problem="", whole=False, lost=state.serial is None
    )
    _put_state(call, tx, zone.id, _after_success(tx, task, state, call.now_us))


def failed(call: Call, tx: Transaction, task: Task, problem: str) -> None:
    """No primary gave anything that is taken: ask again later, and answer no longer once it has expired.

    If somebody has asked since this began, of other primaries say, the next attempt has to say so.
    """
    state = state_of(tx, task.zone_id)
    if zones.zone(tx, task.zone_id) is None or _is_asked_again(state, task):
        return
    first = FIRST_RETRY_SECONDS if state.serial is None else state.retry
    pause = min(first << min(state.tries, 16), RETRY_SECONDS_MAX)
    is_lost = state.lost or call.now_us >= state.expires_us
    if is_lost and not state.lost:
        _tell_lost(tx, task.zone_id, is_lost=True)
    due_us = call.now_us + jittered_us(pause)
    if not is_lost:
        due_us = min(due_us, state.expires_us)
    new = msgspec.structs.replace(
        state,
        tries=state.tries + 1,
        problem=problem[: limits.PROBLEM_CHARACTERS_MAX],
        due_us=due_us,
        lost=is_lost,
    )
    _put_state(call, tx, task.zone_id, new)


def _after_success(reader: Reader, task: Task, state: State, now_us: int) -> State:
    """With the time of the next one: now, and as it was asked for, if somebody has asked since this began."""
    before = state_of(reader, task.zone_id)
    if _is_asked_again(before, task):
        return msgspec.structs.replace(state, whole=before.whole, due_us=now_us)
    stored = settings.one(reader, task.zone_id, INCOMING)
    pause = (_read_incoming(stored.value).auto_refresh_seconds if stored else 0) or state.refresh
    return msgspec.structs.replace(state, due_us=now_us + jittered_us(pause))


def _is_asked_again(now: State, task: Task) -> bool:
    """Whether somebody has asked for the zone since the task began, which writes nothing but its parts."""
    return msgspec.structs.replace(now, mixed=task.state.mixed) != task.state


def _tell_lost(tx: Transaction, zone_id: str, *, is_lost: bool) -> None:
    document = tx.newest(zone_id, served.KIND_ZONE, "")
    if document is not None:
        zone = msgspec.structs.replace(served.decode_zone(document), lost=is_lost)
        tx.emit(zone_id, served.KIND_ZONE, "", served.encode(zone))


def _put_state(call: Call, tx: Transaction, zone_id: str, state: State) -> None:
    settings.put(tx, zone_id, STATE, _encode(state).decode(), call.now_us)


def jittered_us(seconds: int) -> int:
    return int(seconds * _US * (1 - JITTER * random.random()))


def _secondary(reader: Reader, zone_id: str) -> ZoneRow:
    zone = zone_of(reader, zone_id)
    if zone.type != SECONDARY:
        raise NotSecondary(name=zone.name)
    return zone


def _incoming(reader: Reader, zone_id: str) -> Incoming:
    stored = settings.one(reader, zone_id, INCOMING)
    if stored is None:
        raise IncomingNotFound
    return _read_incoming(stored.value)


def _rows(reader: Reader, zone_id: str) -> Iterable[StoredRecord]:
    after = None
    while found := records.stored(reader, zone_id, after, ROWS_PER_READ):
        yield from found
        after = found[-1]


_NUMBERS: Final = {row.name: number for number, row in TYPES_BY_NUMBER.items()}


def _rr(row: StoredRecord) -> Rr:
    return Rr(names.wire_from_text(row.name), _NUMBERS[row.type], row.ttl, row.rdata)


def _carried_rr(row: CarriedRow) -> Rr:
    return Rr(names.wire_from_text(row.name), row.type, row.ttl, row.rdata)


def _draft(rr: Rr, apex: bytes, proxied: Collection[str]) -> Draft:
    """Raises Unfit."""
    name = names.text_from_wire(rr.owner)
    row = TYPES_BY_NUMBER.get(rr.type)
    if row is None:
        raise Unfit(f"{name} has a record of type {rr.type}, which is not stored here")
    try:
        rdata = from_wire(row.name, rr.rdata)
    except EdgeError as error:
        raise Unfit(f"{name} {row.name}: {error.message}") from None
    data = rdata.to_data()
    return Draft(
        rr.owner,
        name,
        row.name,
        rr.rdata,
        rr.ttl,
        int(name in proxied and row.name in ADDRESS_TYPES),
        rdata.top_priority,
        rdata.to_content(),
        folded_content(rdata),
        None if data is None else _encode(data).decode(),
        "{}",
        None,
        "[]",
    )


def soa_of(content: Content) -> tuple[StoredSoa, tuple[int, int, int]]:
    """The SOA as the setting has it; refresh, retry and expire within bounds."""
    mname, rest = _name(content.soa)
    rname, numbers = _name(rest)
    _, refresh, retry, expire, minimum = (
        int.from_bytes(numbers[at : at + 4], "big") for at in range(0, 20, 4)
    )
    soa = StoredSoa(
        names.text_from_wire(mname),
        names.text_from_wire(rname),
        refresh,
        retry,
        expire,
        minimum,
        content.soa_ttl or TTL_SECONDS_AUTO,
    )
    return soa, (
        _bounded(refresh, *REFRESH_SECONDS),
        _bounded(retry, 1, RETRY_SECONDS_MAX),
        _bounded(expire, *EXPIRE_SECONDS),
    )


def _name(octets: bytes) -> tuple[bytes, bytes]:
    """The first name of uncompressed rdata, and what follows."""
    at = 0
    while octets[at]:
        at += octets[at] + 1
    return octets[: at + 1], octets[at + 1 :]


def _bounded(value: int, lowest: int, highest: int) -> int:
    return max(lowest, min(value, highest))
