"""Certificates that authorities issue: each step of one as a transaction.

Owns  which zones get one, what a step writes, that proofs come and go with the order.
Not   when a step is due or tried again (`usecases.certificate.states`); talking to an authority.

Each function that ends a step takes the row as its step found it, and does nothing when it is another one by
now: its zone was deleted, or an operator asked for a new order meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from edgestead.model.call import Call
from edgestead.model.settings import ACME_VALIDATION, SETTINGS
from edgestead.store.control import Reader, Transaction
from edgestead.tables import certificates, records, settings, zones
from edgestead.tables.certificates import NEVER, CertificateRow
from edgestead.usecases.certificate import states
from edgestead.usecases.certificate.reading import HOSTS_MAX, Checked
from edgestead.usecases.certificate.states import Progress, read_progress, text_of
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving import proofs
from edgestead.usecases.serving.certificates import UNIVERSAL, read_hosts
from edgestead.usecases.serving.proofs import Proof

SETTING = "zone.universal_ssl"
OFF = "false"
BEGUN_AT_ONCE_MAX = 50  # zones that get their first order in one transaction, or another one at one look
NAMES_READ_MAX = 200  # of a zone's proxied ones, wildcards among them
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(str).decode


def zones_without(reader: Reader) -> list[tuple[str, str]]:
    """(id, name) of the first zones that should have a certificate of their own and have none. Looks at every
    record of zones without a proxied one: 0.7 s for a million.
    """
    found = (one for one in _all_without(reader) if hosts_of(reader, *one))
    return list(islice(found, BEGUN_AT_ONCE_MAX))


def _all_without(reader: Reader) -> Iterator[tuple[str, str]]:
    after = ""
    while page := certificates.zones_without(reader, UNIVERSAL, SETTING, OFF, after, BEGUN_AT_ONCE_MAX):
        yield from page
        after = page[-1][0]


def begin(call: Call, tx: Transaction, platform: Platform, found: Iterable[tuple[str, str]]) -> None:
    """Want a certificate for each of these zones that still has none."""
    for zone_id, name in found:
        if zones.zone(tx, zone_id) is not None and not certificates.of_kind(tx, zone_id, UNIVERSAL):
            hosts = hosts_of(tx, zone_id, name)
            if hosts:
                add(call, tx, platform, zone_id, UNIVERSAL, hosts)


def method_of(reader: Reader, zone_id: str) -> str:
    """How an authority is shown that the zone's names lead here."""
    found = settings.one(reader, zone_id, ACME_VALIDATION)
    method: str = SETTINGS[ACME_VALIDATION].default if found is None else _decode(found.value)
    return method


def hosts_of(reader: Reader, zone_id: str, name: str) -> tuple[str, ...]:
    """What the zone's own certificate is for: apex and wildcard, where records prove them; else the proxied
    names, one by one.
    """
    if method_of(reader, zone_id) == proofs.TXT:
        return (name, f"*.{name}")
    found = records.proxied_names(reader, zone_id, "", NAMES_READ_MAX)
    return tuple(one for one in found if "*" not in one)[:HOSTS_MAX]


def changed_hosts(reader: Reader) -> list[tuple[CertificateRow, tuple[str, ...]]]:
    """The first of zones' own certificates whose names are others by now, with those. Only zones that chose
    how to prove have such."""
    return list(islice(_changed(reader), BEGUN_AT_ONCE_MAX))


def _changed(reader: Reader) -> Iterator[tuple[CertificateRow, tuple[str, ...]]]:
    for row in _all_that_chose(reader):
        zone = zones.zone(reader, row.zone_id)
        hosts = hosts_of(reader, row.zone_id, zone.name) if zone is not None else ()
        if hosts and hosts != wanted_hosts(row):
            yield row, hosts


def _all_that_chose(reader: Reader) -> Iterator[CertificateRow]:
    after, states_ = "", (states.ISSUED, states.FAILED)
    while page := certificates.where_set(
        reader, ACME_VALIDATION, UNIVERSAL, states_, after, BEGUN_AT_ONCE_MAX
    ):
        yield from page
        after = page[-1].zone_id


def order_for(call: Call, tx: Transaction, row: CertificateRow, hosts: Sequence[str]) -> bool:
    """Order again, for these names. What is served goes on until then."""
    progress = msgspec.structs.replace(read_progress(row.body), next_hosts=tuple(hosts))
    return again(call, tx, row._replace(body=text_of(progress)))


def wanted_hosts(row: CertificateRow) -> tuple[str, ...]:
    """What the next chain is to be for."""
    return read_progress(row.body).next_hosts or read_hosts(row.hosts)


def add(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, kind: str, hosts: Sequence[str]
) -> CertificateRow:
    progress = text_of(Progress(since_us=call.now_us))
    row = CertificateRow(
        id=platform.new_id(),
        zone_id=zone_id,
        kind=kind,
        hosts=_encode(hosts).decode(),
        state=states.WANTED,
        due_us=call.now_us,
        body=progress,
        chain="",
        sealed=b"",
        next_sealed=b"",
        starts_us=0,
        ends_us=NEVER,
        created_us=call.now_us,
        modified_us=call.now_us,
    )
    certificates.insert(tx, row)
    return row


def is_wanted(reader: Reader, row: CertificateRow) -> bool:
    """Whether a certificate is to be renewed: a zone's own ends with its last proxied name."""
    zone = zones.zone(reader, row.zone_id)
    if zone is None:
        return False
    off = settings.one(reader, row.zone_id, SETTING)
    is_off = off is not None and off.value == OFF
    return row.kind != UNIVERSAL or (not is_off and certificates.has_proxied(reader, row.zone_id))


def ordered(
    call: Call,
    tx: Transaction,
    row: CertificateRow,
    directory: str,
    method: str,
    order_url: str,
    sealed: bytes,
) -> bool:
    """An authority took the order. `sealed` is the key that it will be for."""

    def change(progress: Progress) -> Progress:
        return msgspec.structs.replace(progress, directory=directory, method=method, order_url=order_url)

    return _move(call, tx, row._replace(next_sealed=sealed), states.ORDERED, change)


def proving(
    call: Call,
    tx: Transaction,
    platform: Platform,
    row: CertificateRow,
    wanted: Iterable[Proof],
) -> bool:
    """Serve what the authority asks for. DNS has it at the acknowledgement, the edge seconds later."""
    if not _move(call, tx, row, states.PROVING):
        return False
    for proof in wanted:
        certificates.put_proof(tx, row.zone_id, proofs.kept_as(proof), proof.value, row.id)
    _serve(call, tx, platform, row.zone_id, {name for name, _ in certificates.proofs_of(tx, row.id)})
    return True


def ready(call: Call, tx: Transaction, row: CertificateRow) -> bool:
    return _move(call, tx, row, states.READY)


def issued(
    call: Call, tx: Transaction, platform: Platform, row: CertificateRow, pair: Checked, renew_us: int
) -> bool:
    """Serve the new chain, and take the proofs away."""

    def change(progress: Progress) -> Progress:
        facts = pair.facts
        return Progress(
            directory=progress.directory,
            method=progress.method,
            issuer=facts.issuer,
            signature=facts.signature,
            since_us=call.now_us,
        )

    new = row._replace(
        hosts=_encode(wanted_hosts(row)).decode(),
        chain=pair.chain,
        sealed=row.next_sealed,
        next_sealed=b"",
        starts_us=pair.facts.starts_us,
        ends_us=pair.facts.ends_us,
        due_us=renew_us,
    )
    if not _move(call, tx, new, states.ISSUED, change, due_us=renew_us):
        return False
    take_proofs_away(call, tx, platform, row)
    served.changed(tx, call.now_us)
    return True


def postponed(call: Call, tx: Transaction, row: CertificateRow, due_us: int) -> bool:
    """Nothing to do until then; that is no failure."""
    return _move(call, tx, row, row.state, due_us=due_us)


def tried(call: Call, tx: Transaction, row: CertificateRow, error: str, due_us: int) -> bool:
    """A step in vain, to be tried again in its state."""

    def change(progress: Progress) -> Progress:
        return msgspec.structs.replace(progress, tries=progress.tries + 1, error=error)

    return _move(call, tx, row, row.state, change, due_us=due_us)


def failed(
    call: Call, tx: Transaction, platform: Platform, row: CertificateRow, error: str, due_us: int
) -> bool:
    """The order is given up, and its proofs go; what was served before goes on."""

    def change(progress: Progress) -> Progress:
        return msgspec.structs.replace(
            progress, failures=progress.failures + 1, error=error, order_url="", tries=0, since_us=call.now_us
        )

    if not _move(call, tx, row._replace(next_sealed=b""), states.FAILED, change, due_us=due_us):
        return False
    take_proofs_away(call, tx, platform, row)
    return True


def again(call: Call, tx: Transaction, row: CertificateRow) -> bool:
    """Order anew: the time of renewal has come, a pause is over, or an operator asked."""

    def change(progress: Progress) -> Progress:
        return msgspec.structs.replace(progress, order_url="", tries=0)

    return _move(call, tx, row._replace(next_sealed=b""), states.WANTED, change)


def remove(call: Call, tx: Transaction, platform: Platform, row: CertificateRow) -> None:
    take_proofs_away(call, tx, platform, row)
    certificates.delete(tx, row.id)
    served.changed(tx, call.now_us)


def take_proofs_away(call: Call, tx: Transaction, platform: Platform, row: CertificateRow) -> None:
    names = {name for name, _ in certificates.proofs_of(tx, row.id)}
    if names:
        certificates.forget_proofs(tx, row.id)
        _serve(call, tx, platform, row.zone_id, names)


def _move(
    call: Call,
    tx: Transaction,
    row: CertificateRow,
    state: str,
    change: Callable[[Progress], Progress] = lambda progress: progress,
    due_us: int | None = None,
) -> bool:
    """Into a state, whose step is due at once unless said otherwise. False: the row is another one by now."""
    there = certificates.one(tx, row.zone_id, row.id)
    if there is None or (there.state, there.modified_us) != (row.state, row.modified_us):
        return False
    progress = read_progress(row.body)
    if state != row.state:
        progress = msgspec.structs.replace(progress, tries=0, since_us=call.now_us)
    new = row._replace(
        state=state,
        due_us=call.now_us if due_us is None else due_us,
        body=text_of(change(progress)),
        modified_us=max(call.now_us, row.modified_us + 1),
    )
    certificates.update(tx, new)
    return True


def _serve(call: Call, tx: Transaction, platform: Platform, zone_id: str, names: Iterable[str]) -> None:
    found = list(names)
    if any(not proofs.is_name(name) for name in found):
        served.changed(tx, call.now_us)
    names = [name for name in found if proofs.is_name(name)]
    if names and zones.zone(tx, zone_id) is not None:
        edit = ZoneEdit(call, tx, platform, zone_id)
        edit.refresh(sorted(names))
        edit.finish()
