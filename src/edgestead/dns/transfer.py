"""Full and incremental zone transfers to permitted secondaries (RFC 5936, RFC 1995).

Owns  which clients may transfer, by address or by key; the kind of answer, and the messages of a transfer.
Not   the connection (`tcp`); notifying secondaries (`notify`); which key may what (`keyring`).

A transfer works on references to the nodes as of one serial: nodes are immutable bytes, so a copy costs 16
octets a name and the zone can change meanwhile. Owners are written as their labels below the apex and a
pointer to the question, which is the apex; so is every name in older types' rdata that ends there. That is
most of what compression can save, without look-ups.
"""

import contextlib
import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import Final

from edgestead.dns import node, signed, tsig, wire
from edgestead.dns.counters import Slot, Tally
from edgestead.dns.journal import Journal, is_newer, serial_of
from edgestead.dns.keyring import Keyring
from edgestead.dns.outcome import AA, FORMERR, NOTAUTH, QR, REFUSED, SERVFAIL
from edgestead.dns.outgoing import Word
from edgestead.dns.query import Asked, read
from edgestead.dns.signed import Records
from edgestead.dns.table import Table
from edgestead.dns.tsig import Key, Signer, Verdict
from edgestead.dns.wire import BadMessage
from edgestead.dns.zone import Zone
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.table import DNS_TRANSFERS, DNS_TRANSFERS_ADDRESS
from edgestead.model.served import Owned, ServedRRset, ServedZone, decode_change

Network = IPv4Network | IPv6Network

MESSAGE_OCTETS: Final = 16 * 1024
"""Where a message ends, unless one record is larger: about half a millisecond of work."""
SETTLE_LOOKS_MAX: Final = 200
"""How often a transfer looks whether a change of its zone that has begun is complete."""

Transfer = Generator[bytes, None, None]
"""The messages of an answer, without ID. One that is not read to its end has to be closed."""
NOT_YET: Final = b""
"""In the place of a message: ask again in a moment."""

_AXFR: Final = wire.AXFR.to_bytes(2, "big") + b"\0\x01"
_IXFR: Final = wire.IXFR.to_bytes(2, "big") + b"\0\x01"
_ENDS: Final = (b"\0" + _AXFR, b"\0" + _IXFR)
_SOA: Final = wire.SOA.to_bytes(2, "big") + b"\0\x01"
_ONE_READY: Final = b"\1"
_HEAD: Final = struct.Struct("!HHHHH")
_HEAD_OCTETS: Final = 12
_ID_OCTETS: Final = 2
_OPCODE_AND_QR: Final = 0xF8
_OPT: Final = b"\0" + struct.pack("!HHIH", wire.OPT, 1232, 0, 0)
_RR_BODY_OCTETS: Final = 10
_SOA_OCTETS_MIN: Final = 2 + wire.SOA_NUMBERS_OCTETS


def may_be_transfer(query: bytes) -> bool:
    """A cheap filter without false negatives; other queries that contain these octets also match."""
    return _ENDS[0] in query or _ENDS[1] in query


class Transfers:
    """The transfers of one process, on the loop that also applies changes."""

    def __init__(
        self,
        table: Table,
        journal: Journal,
        tally: Tally,
        networks: Sequence[Network],
        ledger: Ledger | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._keyring = keyring or Keyring()
        self._running = Levels(ledger or Ledger(), DNS_TRANSFERS_ADDRESS, DNS_TRANSFERS)
        self._table = table
        self._journal = journal
        self._counts = tally.counts
        self._networks = networks

    def begin(
        self, query: bytes, peer: str, *, carried: bool = True, private: bool = False
    ) -> Transfer | None:
        """The messages for a request of the client at address `peer`; None when it requests no transfer.

        The request is without its ID. `carried`: the way that it came may carry a zone at all; `private`:
        nobody on that way can read it.
        """
        if query[0] & _OPCODE_AND_QR:
            return None
        try:
            sender = self._keyring.judge(query)
            query = sender.message[_ID_OCTETS:]
            asked = read(query)
            kind = asked.question[-4:]
            if kind not in (_AXFR, _IXFR) or (asked.opt is not None and asked.opt.version):
                return None
            serial = _client_serial(query, asked) if kind == _IXFR else None
        except BadMessage:
            return self._refusal(_bare(query), FORMERR)
        if sender.error:
            return self._disbelief(sender)
        head, apex = _Head(query, asked), asked.question[:-4].lower()
        if carried and self._is_allowed(peer, sender.key, apex, private=private):
            transfer = self._run(head, apex, serial, network_of(peer))
        else:
            transfer = self._refusal(head, REFUSED)
        return transfer if sender.key is None else self._signed(transfer, sender)

    def _is_allowed(self, peer: str, key: Key | None, apex: bytes, *, private: bool) -> bool:
        address = ip_address(peer.partition("%")[0])
        if not isinstance(address, IPv4Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        keyring = self._keyring
        word = keyring.outgoing.says(apex, address, keyring.id_of(key), private=private)
        if word in (Word.OPEN, Word.REFUSED):
            return word is Word.OPEN
        if word is Word.UNSAID and keyring.may_transfer(key, apex):
            return True
        return any(address in network for network in self._networks)

    def _disbelief(self, sender: Verdict) -> Transfer:
        self._counts[Slot.TRANSFERS_REFUSED] += 1
        yield tsig.refusal(sender, self._keyring.now_s())[_ID_OCTETS:]

    def _signed(self, transfer: Transfer, sender: Verdict) -> Transfer:
        """The same messages, each signed as the request was."""
        signer = Signer(sender)
        with contextlib.closing(transfer):
            for message in transfer:
                if message == NOT_YET:
                    yield NOT_YET
                else:
                    yield signer.sign(bytes(_ID_OCTETS) + message, self._keyring.now_s())[_ID_OCTETS:]

    def _refusal(self, head: "_Head", rcode: int) -> Transfer:
        self._counts[Slot.TRANSFERS_REFUSED] += 1
        yield head.message((), rcode)

    def _run(self, head: "_Head", apex: bytes, serial: int | None, network: str) -> Transfer:
        if self._running.draw(network, 1) is not None:
            yield from self._refusal(head, SERVFAIL)
            return
        try:
            zone = None
            for _ in range(SETTLE_LOOKS_MAX):
                zone = self._table.transferable(apex)
                if zone is None or zone.settled:
                    break
                yield NOT_YET
            if zone is None:
                yield from self._refusal(head, NOTAUTH)
            elif not zone.settled:
                yield from self._refusal(head, SERVFAIL)
            else:
                yield from head.messages(self._records(zone, serial))
        finally:
            self._running.release(network, 1)

    def _records(self, zone: Zone, serial: int | None) -> Iterator[bytes]:
        """The records of the answer; `serial` is the client's for an incremental transfer."""
        newest = serial_of(zone.soa_rdata)
        if serial is not None and not is_newer(newest, serial):
            self._counts[Slot.TRANSFERS_CURRENT] += 1
            return _soa(zone)
        rows = None if serial is None else self._journal.since(zone.apex, serial, newest)
        if rows is None or sum(map(len, rows)) > max(MESSAGE_OCTETS, _octets_about(zone)):
            self._counts[Slot.TRANSFERS_WHOLE] += 1
            return _whole(zone)
        self._counts[Slot.TRANSFERS_CHANGES] += 1
        return _changes(zone, rows)


def _client_serial(query: bytes, asked: Asked) -> int:
    """The serial of the SOA in the authority section (RFC 1995 §3). Raises BadMessage: there is none."""
    at = wire.skip_name(query, _HEAD_OCTETS - 2 + len(asked.question))
    body = query[at : at + _RR_BODY_OCTETS]
    octets = int.from_bytes(body[8:], "big")
    if query[6:8] != b"\0\x01" or body[:4] != _SOA or octets < _SOA_OCTETS_MIN:
        raise BadMessage("the SOA of an IXFR")
    return serial_of(query[at + _RR_BODY_OCTETS : at + _RR_BODY_OCTETS + octets])


class _Head:
    """The beginning of all messages of one answer, and the end of the first one."""

    def __init__(self, query: bytes, asked: Asked) -> None:
        self._rd = query[0] & 1
        self._question = asked.question
        self._opt = b"" if asked.opt is None else _OPT

    def message(self, records: Sequence[bytes], rcode: int = 0) -> bytes:
        """One message without its ID; the first one carries the OPT record (RFC 5936 §2.2.5)."""
        flags = QR | self._rd << 8 | rcode | (AA if not rcode else 0)
        opt, self._opt = self._opt, b""
        counts = _HEAD.pack(flags, 1 if self._question else 0, len(records), 0, 1 if opt else 0)
        return b"".join((counts, self._question, *records, opt))

    def messages(self, records: Iterable[bytes]) -> Iterator[bytes]:
        """Fill messages up to MESSAGE_OCTETS; a larger record gets a separate one."""
        room = left = MESSAGE_OCTETS - _HEAD_OCTETS - len(self._question) - len(_OPT)
        waiting: list[bytes] = []
        for record in records:
            left -= len(record)
            if left < 0 and waiting:
                yield self.message(waiting)
                waiting, left = [], room - len(record)
            waiting.append(record)
        yield self.message(waiting)


def _bare(query: bytes) -> _Head:
    return _Head(query, Asked(b"", None))


def _octets_about(zone: Zone) -> int:
    """The size of the zone's nodes and signatures, estimated from every eighth name; larger changes are sent
    as a full transfer.
    """
    sample = list(zone.names.values())[::8]
    octets = sum(map(len, sample))
    if zone.signed and zone.signatures is not None:
        octets += sum(map(len, list(zone.signatures.entries.values())[::8]))
    return octets * len(zone.names) // max(1, len(sample))


def _soa(zone: Zone) -> Iterator[bytes]:
    rrset = node.rrset(zone.names[b""], _SOA)
    assert rrset is not None
    yield rrset[1]


def _whole(zone: Zone) -> Iterator[bytes]:
    """SOA, everything else, SOA (RFC 5936 §2.2)."""
    (soa,) = _soa(zone)
    names, nodes = list(zone.names), list(zone.names.values())
    signatures = _signatures_now(zone)
    yield soa
    for name, held in zip(names, nodes, strict=True):
        if held[:1] == _ONE_READY:  # most names of most zones: the hot path of large transfers
            yield name + held[node.READY :]
            continue
        for kind, count, rrs in node.rrsets(held):
            if kind != _SOA and not node.is_mark(kind):
                yield from _owned(zone.apex, name, kind, count, rrs)
    yield from signatures
    yield soa


def _signatures_now(zone: Zone) -> Iterator[bytes]:
    """What signing added, as of the call; nothing while queries get none of it either."""
    signatures = zone.signatures
    if signatures is None or not zone.signed:
        return iter(())
    return _signatures(signatures.soa, list(signatures.entries.items()))


def _signatures(soa: Records, entries: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    yield from _each(b"", *soa)
    for name, entry in entries:
        for _, count, rrs in signed.parts(entry):
            yield from _each(name, count, rrs)


def _each(name: bytes, count: int, rrs: bytes) -> Iterator[bytes]:
    """Ready records of a type that is not compressed, with `name` before each."""
    if count == 1:
        yield name + rrs
        return
    for number, ttl_seconds, rdata in wire.records(rrs) if count else ():
        yield name + wire.RR_HEAD.pack(wire.QUESTION_OWNER, number, wire.IN, ttl_seconds, len(rdata)) + rdata


def _changes(zone: Zone, rows: Iterable[bytes]) -> Iterator[bytes]:
    """The newest SOA around all changes; of each: old SOA, deleted, new SOA, added records (RFC 1995 §4)."""
    (soa,) = _soa(zone)
    apex = zone.apex
    yield soa
    for change in map(decode_change, rows):
        yield _soa_of(change.before)
        yield from _soa_signatures(change.before)
        yield from _owned_rrsets(apex, change.removed)
        yield _soa_of(change.after)
        yield from _soa_signatures(change.after)
        yield from _owned_rrsets(apex, change.added)
    yield soa


def _soa_of(served: ServedZone) -> bytes:
    return node.records_of(ServedRRset(wire.SOA, served.soa_ttl_seconds, (served.soa_rdata,)))


def _soa_signatures(served: ServedZone) -> Iterator[bytes]:
    yield from _each(b"", *signed.soa_records(served.soa_rrsigs, served.soa_ttl_seconds))


def _owned_rrsets(apex: bytes, owned: Iterable[Owned]) -> Iterator[bytes]:
    for owner, rrsets in owned:
        name = owner[: len(owner) - len(apex)]
        for rrset in rrsets:
            kind = rrset.type.to_bytes(2, "big") + b"\0\x01"
            yield from _owned(apex, name, kind, len(rrset.rdatas), node.records_of(rrset))


def _owned(apex: bytes, name: bytes, kind: bytes, count: int, rrs: bytes) -> Iterator[bytes]:
    """Ready records, which begin with a pointer to the question, with `name` before it."""
    compressible = int.from_bytes(kind[:2], "big") in wire.COMPRESSIBLE
    if count == 1 and not compressible:
        yield name + rrs
        return
    for number, ttl_seconds, rdata in wire.records(rrs):
        if compressible:
            rdata = wire.shortened(number, rdata, apex)
        head = wire.RR_HEAD.pack(wire.QUESTION_OWNER, number, wire.IN, ttl_seconds, len(rdata))
        yield name + head + rdata
