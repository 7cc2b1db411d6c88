"""The addresses of a name outside our zones, asked of a recursive resolver.

Owns  how a question is asked, and which answers count.
Asks  the resolver of `--resolver`, or the system's, through dnspython.
Tells `server.upkeep`.
Not   when to ask; remembering answers (`services.flattening`).
"""

import asyncio
import time
from ipaddress import ip_address

import dns.asyncresolver
import dns.exception
import dns.rdatatype
import dns.resolver

from edgestead.config import Address
from edgestead.model.served import ServedRRset

QUESTION_SECONDS_MAX = 5.0
ADDRESSES_MAX = 64  # of one family in one answer; further ones are left out

Resolver = dns.asyncresolver.Resolver
_TYPES = (dns.rdatatype.A, dns.rdatatype.AAAA)


def resolver_at(address: Address | None) -> Resolver:
    """A resolver without a cache. None means the system's, whose file is read anew."""
    resolver = Resolver(configure=address is None)
    if address is not None:
        resolver.nameservers = [address.host]
        resolver.port = address.port
    resolver.lifetime = QUESTION_SECONDS_MAX
    return resolver


async def addresses(resolver: Resolver, name: str) -> tuple[ServedRRset, ...] | None:
    """A and AAAA of a name, with the TTL of the chain to them; none when it does not exist or has none.

    None: nobody could say.
    """
    try:
        found = await asyncio.gather(*(_of_type(resolver, name, kind) for kind in _TYPES))
    except (dns.exception.DNSException, OSError):
        return None
    return tuple(rrset for rrset in found if rrset is not None)


async def _of_type(resolver: Resolver, name: str, kind: dns.rdatatype.RdataType) -> ServedRRset | None:
    try:
        answer = await resolver.resolve(name + ".", kind, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN:
        return None
    if answer.rrset is None:
        return None
    packed = sorted(ip_address(record.address).packed for record in answer.rrset)[:ADDRESSES_MAX]
    seconds = max(0, int(answer.expiration - time.time()))
    return ServedRRset(int(kind), seconds, tuple(packed))
