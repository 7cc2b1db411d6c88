"""The addresses of a name outside our zones, and the DS records of ours, asked of a recursive resolver.

Owns  how a question is asked, and which answers count.
Not   when to ask; remembering answers (`usecases.serving.flattening`, `usecases.zone.signing`).
"""

import asyncio
import time
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

import dns.asyncresolver
import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import dns.resolver

from edgestead.config import Address
from edgestead.model import names
from edgestead.model.served import ServedRRset
from edgestead.usecases.serving.flattening import Answer

QUESTION_SECONDS_MAX = 5.0  # for both types together, repetitions and TCP included
ADDRESSES_MAX = 64  # of one family in one answer; further ones are left out

Resolver = dns.asyncresolver.Resolver
NoResolver = dns.resolver.NoResolverConfiguration
_TYPES = (dns.rdatatype.A, dns.rdatatype.AAAA)


class _Said(NamedTuple):
    rrset: ServedRRset | None
    aliases: tuple[bytes, ...]


def resolver_at(address: Address | None) -> Resolver:
    """A resolver without a cache. None means the system's, whose file is read anew.

    Raises NoResolver: the system names none.
    """
    resolver = Resolver(configure=address is None)
    if address is not None:
        resolver.nameservers = [address.host]
        resolver.port = address.port
    resolver.lifetime = QUESTION_SECONDS_MAX
    return resolver


async def addresses(resolver: Resolver, name: str) -> Answer | None:
    """A and AAAA of a name, with the TTL of the chain to them; none when it does not exist or has none.

    None: nobody could say. When one type fails and the other has addresses, those count.
    """
    asked = dns.name.from_wire(names.wire_from_text(name), 0)[0]
    found = await asyncio.gather(*(_of_type(resolver, asked, kind) for kind in _TYPES))
    said = [one for one in found if one is not None]
    rrsets = tuple(one.rrset for one in said if one.rrset is not None)
    if len(said) < len(_TYPES) and not rrsets:
        return None
    unknown = next((int(kind) for kind, one in zip(_TYPES, found, strict=True) if one is None), None)
    return Answer(rrsets, max((one.aliases for one in said), key=len), unknown)


async def ds_records(resolver: Resolver, name: str) -> tuple[bytes, ...] | None:
    """The DS records that a zone has in the one above it, as RDATA; none when that says there is none.

    None: nobody could say.
    """
    asked = dns.name.from_wire(names.wire_from_text(name), 0)[0]
    try:
        answer = await resolver.resolve(asked, dns.rdatatype.DS, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return ()
    except (dns.exception.DNSException, OSError):
        return None
    return tuple(record.to_wire() or b"" for record in answer.rrset or ())


async def _of_type(resolver: Resolver, name: dns.name.Name, kind: dns.rdatatype.RdataType) -> _Said | None:
    try:
        answer = await resolver.resolve(name, kind, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN as refusal:
        return _Said(None, _aliases(refusal.kwargs["responses"][name]))
    except (dns.exception.DNSException, OSError):
        return None
    aliases = _aliases(answer.response)
    if answer.rrset is None:
        return _Said(None, aliases)
    packed = sorted(ip_address(record.address).packed for record in answer.rrset)[:ADDRESSES_MAX]
    seconds = max(0, int(answer.expiration - time.time()))
    return _Said(ServedRRset(int(kind), seconds, tuple(packed)), aliases)


def _aliases(response: dns.message.Message) -> tuple[bytes, ...]:
    """The targets on the way, in order (at most dnspython's MAX_CHAIN, 16)."""
    if not isinstance(response, dns.message.QueryMessage):
        return ()
    return tuple(_targets(response.resolve_chaining().cnames))


def _targets(cnames: Iterable[dns.rrset.RRset]) -> Iterable[bytes]:
    for rrset in cnames:
        yield (rrset[0].target.to_wire() or b"").lower()
