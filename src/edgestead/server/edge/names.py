"""Where the edge learns the addresses of CNAME origins.

Owns  whom to ask: our own DNS for names of our own zones, else the resolver of `--resolver` or the system's.
Not   remembering; aliases to proxied names, whose origins the edge knows itself.
"""

from ipaddress import ip_address

from edgestead.config import Address
from edgestead.edge.limits import ALIASES_FOLLOWED_MAX
from edgestead.edge.routing import Routes
from edgestead.model import names
from edgestead.server.control import resolving
from edgestead.server.control.resolving import NoResolver


class NameSource:
    """`own_dns` is where this server answers DNS; `resolver` None means the system's."""

    def __init__(self, routes: Routes, *, own_dns: tuple[str, int], resolver: tuple[str, int] | None) -> None:
        self._routes = routes
        self._own = Address(*own_dns)
        self._resolver = Address(*resolver) if resolver else None

    async def ask(self, name: str) -> tuple[tuple[str, ...], float] | None:
        """As `edge.http.resolving.Ask`."""
        answer = None
        for _ in range(ALIASES_FOLLOWED_MAX):  # our own DNS says an alias, not what it leads to outside
            is_ours = self._routes.zone_of(name.encode()) is not None
            try:
                resolver = resolving.resolver_at(self._own if is_ours else self._resolver)
            except NoResolver:
                return None
            answer = await resolving.addresses(resolver, name)
            if answer is None or answer.rrsets or not (is_ours and answer.aliases):
                break
            name = names.text_from_wire(answer.aliases[-1])
        if answer is None:
            return None
        found = [(rrset.ttl_seconds, rdata) for rrset in answer.rrsets for rdata in rrset.rdatas]
        ttl_seconds = min((ttl for ttl, _ in found), default=0)
        return tuple(str(ip_address(rdata)) for _, rdata in found), float(ttl_seconds)
