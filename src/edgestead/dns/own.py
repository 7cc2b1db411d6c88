"""The name servers' own names: answered with the server's addresses, unless a zone here contains them.

Owns  the records of such a name: its addresses, an SOA and an NS record.
Not   names of an account's or a zone's own name servers: their zones have the addresses.

A client that checks a zone at its name servers has to find these first. Each name is a separate zone, so that
nothing is claimed about sibling names and names below it, which may belong to another owner. The zone belongs
to no account: it has no transfer, notify or metric.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from edgestead.dns import wire
from edgestead.dns.zone import Zone
from edgestead.model import names
from edgestead.model.served import ServedRRset, ServedZone

TTL_SECONDS: Final = 3_600  # an hour until a name server's new address is seen
_TIMERS: Final = (
    1,
    10_000,
    2_400,
    604_800,
    300,
)  # serial, refresh, retry, expire, minimum (RFC 1035 §3.3.13)

OwnNames = Mapping[bytes, Zone]
NONE: Final[OwnNames] = {}


def own_names(nameservers: Sequence[str], addresses: Sequence[str]) -> OwnNames:
    """Names to their outcomes; empty where no address is known. Raises InvalidName, ValueError."""
    found = [ip_address(text) for text in addresses]
    rrsets = tuple(
        ServedRRset(kind, TTL_SECONDS, rdatas)
        for kind, version in ((wire.A, 4), (wire.AAAA, 6))
        if (rdatas := tuple(sorted({one.packed for one in found if one.version == version})))
    )
    owners = map(names.wire_from_text, nameservers) if rrsets else ()
    return {owner: _zone(owner, rrsets) for owner in owners}


def _zone(owner: bytes, rrsets: tuple[ServedRRset, ...]) -> Zone:
    zone = Zone(owner)
    zone.set_apex((ServedRRset(wire.NS, TTL_SECONDS, (owner,)), *rrsets))
    rname = names.wire_from_labels([b"hostmaster", *names.labels(names.parent(owner))])
    timers = b"".join(number.to_bytes(4, "big") for number in _TIMERS)
    zone.set_soa(ServedZone(owner, TTL_SECONDS, owner + rname + timers))
    return zone
