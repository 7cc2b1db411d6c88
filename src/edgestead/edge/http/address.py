"""Whose a request is: the client's address, and how the origin hears of it.

Owns  which proxies are trusted, the headers that name the client, the request's id and the edge itself.
Not   PROXY headers (`edge.http.listener`).

What a client says of itself is dropped (`heads.FORGEABLE`); only a trusted proxy in front may say who its
client is. `CDN-Loop` (RFC 8586) ends requests that come back to this server.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from edgestead.edge import limits
from edgestead.http1.head import Head, Refused
from edgestead.model.call import Profile

Network = IPv4Network | IPv6Network
_PEERS_KEPT_MAX = 4_096


def plain(address: str) -> str:
    """The address that is meant: IPv4 clients of a socket for both families come mapped (RFC 4291 §2.5.5.2).

    What is no address stays as it is.
    """
    if ":" not in address:
        return address
    try:
        mapped = IPv6Address(address).ipv4_mapped
    except ValueError:
        return address
    return address if mapped is None else str(mapped)


class Names(NamedTuple):
    """How headers of the edge's own are spelled. `ray_line` takes the ray."""

    client: bytes
    ray: bytes

    @property
    def ray_line(self) -> bytes:
        return self.ray + b": %b\r\n"


NAMES = {
    Profile.SPEC: Names(b"edge-connecting-ip", b"edge-ray"),
    Profile.CLIENTS: Names(b"cf-connecting-ip", b"cf-ray"),
}


class Trust:
    """Which peers are proxies that may speak for their clients."""

    def __init__(self, proxies: Sequence[Network]) -> None:
        self._proxies = tuple(proxies)
        self._known: dict[str, bool] = {}

    def trusts(self, address: str) -> bool:
        if not self._proxies:
            return False
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _PEERS_KEPT_MAX:
                self._known.clear()
            known = self._known[address] = self._look(address)
        return known

    def _look(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip.version == proxy.version and ip in proxy for proxy in self._proxies)


class Addresses:
    """`loop_token` names this server in CDN-Loop; it is the same in all its workers."""

    def __init__(self, trust: Trust, names: Names, loop_token: bytes) -> None:
        self._trust = trust
        self._token = loop_token
        self._lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n" + names.client + b": %b\r\n"
        # A gateway says in Via that it was there (RFC 9110 §7.6.3), behind what others said.
        pseudonym = loop_token.partition(b";")[0]
        self._lines += names.ray + b": %b\r\ncdn-loop: %b\r\nvia: %b " + pseudonym + b"\r\n"

    def of(
        self, peer: str, trusted: bool, scheme: bytes, read: Head, ray: bytes, version: bytes = b"1.1"
    ) -> tuple[str, bytes, bytes]:
        """The client's address, the scheme that it used, and what its origin is told.

        `version` is the client's, as in b"1.1". Raises Refused: the request was here before, or at too many
        others.
        """
        found = read.found
        loop = found.get(b"cdn-loop")
        loop = self._token if loop is None else self._longer(loop)
        client, chain = peer, peer.encode()
        if trusted:
            forwarded = found.get(b"x-forwarded-for")
            if forwarded is not None:
                client = self._client(forwarded, peer)
                chain = forwarded + b", " + chain
            stated = found.get(b"x-forwarded-proto")
            if stated is not None and stated.lower() in (b"http", b"https"):
                scheme = stated.lower()
        return client, scheme, self._lines % (chain, scheme, client.encode(), ray, loop, version)

    def _client(self, forwarded: bytes, peer: str) -> str:
        """The last address of the chain that no trusted proxy has; what is no address ends the search."""
        client = peer
        for entry in reversed(forwarded.split(b",")):
            if b"%" in entry:  # a scope may be any text, and is of no use to anybody elsewhere
                break
            try:
                address = plain(str(ip_address(entry.strip().decode("ascii"))))
            except ValueError:
                break
            client = address
            if not self._trust.trusts(address):
                break
        return client

    def _longer(self, loop: bytes) -> bytes:
        entries = [entry.strip() for entry in loop.split(b",")]
        if self._token in entries or len(entries) >= limits.LOOPS_HOPS_MAX:
            raise Refused(508, "it goes round in circles")
        return loop + b", " + self._token
