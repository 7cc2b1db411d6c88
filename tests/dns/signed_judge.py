"""A validating client: whether an answer proves what it says (RFC 4035 §5), by a simple model."""

from functools import lru_cache

import dns.dnssec
import dns.name
import dns.rdatatype
import dns.rrset
from dns.rdatatype import CNAME, DS, NS, NSEC, RRSIG, SOA

WILDCARD = dns.name.Name([b"*"])


class Judge:
    """Of the zones `keys`: their apexes and DNSKEY RRsets, None for a zone without signatures."""

    def __init__(self, keys, now):
        self.keys = keys
        self.now = now

    def zone_of(self, name, kind=0):
        """The apex of the signed zone that answers for a name; None where that is another one."""
        if kind == DS and name in self.keys:
            name = name.parent()
        found = max((apex for apex in self.keys if name.is_subdomain(apex)), key=len, default=None)
        return found if found is not None and self.keys[found] is not None else None

    def check(self, name, kind, secure, plain):
        """Whether `secure` says what `plain` does, and proves it."""
        assert secure.rcode() == plain.rcode()
        assert _own(secure.answer) == _own(plain.answer)
        assert _own(secure.authority) == _own(plain.authority)
        proofs = _Proofs(self, secure)
        denied = name
        for rrset in _own(secure.answer):
            if self.zone_of(rrset.name, kind) is None:
                return  # outside of what is signed
            self._check_signed(secure.answer, rrset, proofs)
            if rrset.rdtype == CNAME and kind != CNAME:
                denied = rrset[0].target
        if self.zone_of(denied, kind) is None:
            return
        referral = next((one for one in secure.authority if one.rdtype == NS), None)
        if referral is not None:
            proofs.check_referral(referral.name, secure.authority)
        elif not any(one.rdtype == kind and one.name == denied for one in secure.answer):
            if any(one.rdtype == SOA for one in secure.authority):
                proofs.check_denial(denied, kind, is_missing=secure.rcode() == 3)

    def _check_signed(self, section, rrset, proofs):
        labels = self.verify(section, rrset)
        if labels < len(rrset.name) - 1 - rrset.name.is_wild():
            proofs.check_covered(rrset.name)

    def verify(self, section, rrset):
        """Returns how many labels the signatures are for."""
        signatures = next(
            one
            for one in section
            if one.rdtype == RRSIG and one.covers == rrset.rdtype and one.name == rrset.name
        )
        assert signatures.ttl == rrset.ttl
        apex = signatures[0].signer
        assert apex in (self.zone_of(rrset.name), self.zone_of(rrset.name, DS))
        _validate(_texts(rrset), _texts(signatures), _texts(self.keys[apex]), self.now)
        return signatures[0].labels


class _Proofs:
    def __init__(self, judge, reply):
        self._nsecs = {}
        for rrset in reply.authority:
            if rrset.rdtype in (NSEC, DS) or (rrset.rdtype == SOA and judge.zone_of(rrset.name)):
                judge.verify(reply.authority, rrset)
            if rrset.rdtype == NSEC:
                assert len(rrset) == 1
                self._nsecs[rrset.name] = rrset[0]

    def check_covered(self, name):
        assert any(_covers(owner, nsec.next, name) for owner, nsec in self._nsecs.items()), (
            f"{name} not denied"
        )

    def check_denial(self, name, kind, *, is_missing):
        nsec = self._nsecs.get(name)
        if nsec is not None:
            assert not is_missing
            _check_lacks(nsec, kind)
            return
        self.check_covered(name)
        owner, nsec = next(one for one in self._nsecs.items() if _covers(one[0], one[1].next, name))
        if nsec.next.is_subdomain(name):
            assert not is_missing, f"{name} is an empty non-terminal"
            return
        encloser = max(_common(name, owner), _common(name, nsec.next), key=len)
        wildcard = WILDCARD + encloser
        if is_missing:
            self.check_covered(wildcard)
        elif wildcard in self._nsecs:
            _check_lacks(self._nsecs[wildcard], kind)
        else:  # an asterisk that is only above other names
            owner, nsec = next(one for one in self._nsecs.items() if _covers(one[0], one[1].next, wildcard))
            assert nsec.next.is_subdomain(wildcard)

    def check_referral(self, cut, authority):
        if any(one.rdtype == DS and one.name == cut for one in authority):
            return
        nsec = self._nsecs[cut]
        assert _has(nsec, NS)
        assert not _has(nsec, SOA)
        assert not _has(nsec, DS)


def _own(section):
    return [one for one in section if one.rdtype not in (RRSIG, NSEC, DS)]


def _covers(owner, next_owner, name):
    if owner < next_owner:
        return owner < name < next_owner
    return name > owner and name.is_subdomain(next_owner)  # the last one: its next is the apex


def _common(name, other):
    while not other.is_subdomain(name):
        name = name.parent()
    return name


def _check_lacks(nsec, kind):
    assert not _has(nsec, kind)
    assert not _has(nsec, CNAME)
    if _has(nsec, NS) and not _has(nsec, SOA):
        assert kind == DS, "the parent's side of a delegation denies nothing but a DS"


def _has(nsec, kind):
    for window, bits in nsec.windows:
        octet, bit = divmod(kind & 0xFF, 8)
        if window == kind >> 8 and octet < len(bits) and bits[octet] & 0x80 >> bit:
            return True
    return False


def _texts(rrset):
    return (
        rrset.name,
        rrset.ttl,
        rrset.rdtype,
        rrset.covers,
        tuple(sorted(rdata.to_text() for rdata in rrset)),
    )


@lru_cache(100_000)
def _validate(rrset, signatures, keys, now):
    covered, signed, known = (
        dns.rrset.from_text_list(name, ttl, "IN", kind, texts)
        for name, ttl, kind, _, texts in (rrset, signatures, keys)
    )
    dns.dnssec.validate(covered, signed, {known.name: known}, now=now)
