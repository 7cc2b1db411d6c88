"""REST face of the addresses at which the edge answers.

Owns  /ips.
Not   the addresses by which the edge goes to origins: those the operating system chooses.
"""

import hashlib
from ipaddress import ip_address

import msgspec

from edgestead.rest.context import AppContext
from edgestead.rest.routing import route

_ETAG_DIGITS = 32


class EdgeIps(msgspec.Struct, frozen=True):
    """Each address is a network of its own. `etag` changes when they do."""

    etag: str
    ipv4_cidrs: list[str]
    ipv6_cidrs: list[str]


@route("GET", "/ips", public=True)
def list_ips(api: AppContext) -> EdgeIps:
    """The edge's addresses as networks, /32 and /128: what DNS answers for proxied names."""
    addresses = sorted({ip_address(text) for text in api.platform.edge_addresses}, key=lambda one: one.packed)
    networks = {
        version: [f"{one}/{one.max_prefixlen}" for one in addresses if one.version == version]
        for version in (4, 6)
    }
    digest = hashlib.sha256(" ".join(networks[4] + networks[6]).encode()).hexdigest()
    return EdgeIps(digest[:_ETAG_DIGITS], networks[4], networks[6])
