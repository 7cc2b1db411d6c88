"""A request from a head that was read, whatever version of HTTP it came in.

Owns  who is connected and how; the exchange that a head begins; the page for what cannot be read.
Not   parsing (`http1.head`, `http2.head`); what becomes of it (`machine`); connections.
"""

import asyncio
import os
import random
import time
from typing import TYPE_CHECKING

import msgspec

from edgestead.edge.exchanges import pages
from edgestead.edge.exchanges.exchange import Exchange, Response, TlsFacts
from edgestead.edge.http.address import plain
from edgestead.edge.http.hello import Hello
from edgestead.edge.routing import Route
from edgestead.http1.head import Head, Headers, Refused

if TYPE_CHECKING:
    from edgestead.edge.http.worker import Edge

_ray = random.Random(os.urandom(32)).getrandbits  # a name, no secret: no system call for each
# TRACE would show what the edge adds, and credentials that browsers hide (RFC 9110 §9.3.8). It is 501: a 405
# would have to say what is allowed instead, and only the origin knows.
NOT_PASSED = {b"TRACE": (501, "TRACE is not passed on here")}


class Caller(msgspec.Struct):
    """Who is connected: `peer`, where the edge was met, and what TLS agreed on."""

    peer: str
    port: int  # the edge's own
    server: str = ""  # the edge's own address; "" where that is unknown
    tls: TlsFacts | None = None
    is_trusted: bool = False  # a proxy that may speak for its clients

    @property
    def scheme(self) -> bytes:
        return b"http" if self.tls is None else b"https"


def calling(edge: "Edge", transport: asyncio.BaseTransport, known: Caller, hello: Hello | None) -> Caller:
    """Who a new connection is. `known` has the peer that a PROXY header named, or "", and the port."""
    peer = known.peer
    if not peer:
        found = transport.get_extra_info("peername")
        peer = plain(found[0]) if isinstance(found, tuple) else ""
    own = transport.get_extra_info("sockname")
    server = plain(own[0]) if isinstance(own, tuple) else ""
    tls = None if hello is None else tls_facts(transport, hello)
    return Caller(peer, known.port, server, tls, edge.trust.trusts(peer))


def tls_facts(transport: asyncio.BaseTransport, hello: Hello) -> TlsFacts:
    agreed = transport.get_extra_info("ssl_object")
    cipher = transport.get_extra_info("cipher")
    return TlsFacts(
        version=(agreed.version() or "").encode() if agreed is not None else b"",
        cipher=cipher[0].encode() if cipher else b"",
        server_name=hello.server_name,
        hello=hello.message,
    )


def begin(
    edge: "Edge", caller: Caller, scheme: bytes, protocol: bytes, method: bytes, headers: Headers, read: Head
) -> tuple[Exchange, Route, bytes]:
    """The exchange, where it leads, and what its origin is told beside. `protocol` as in b"HTTP/1.1".

    Raises Refused.
    """
    route = edge.routes.find(read.host)
    if route is None:
        raise Refused(530, "the host is not one that is proxied here")
    tls = caller.tls
    if tls is not None and route.facts.settings["min_tls_version"] == "1.3":
        _check_version(tls)
    ray = b"%016x" % _ray(64)
    client, scheme, added = edge.address.of(caller.peer, caller.is_trusted, scheme, read, ray, protocol[5:])
    exchange = Exchange(  # by position: by name it takes 0.65 µs, so 0.2
        client,
        caller.peer,
        scheme,
        caller.port,
        protocol,
        method,
        read.target,
        headers,
        read.found,
        read.host,
        route.facts,
        ray,
        time.time_ns() // 1000,
        caller.server,
        tls,
    )
    if read.length != 0:
        exchange.body_length, exchange.body_complete = read.length, False
    return exchange, route, added


def _check_version(tls: TlsFacts) -> None:
    """A connection that was made for another name may be on weaker terms than this one's zone asks for.

    Raises Refused.
    """
    if tls.version != b"TLSv1.3":
        raise Refused(421, "this host asks for TLS 1.3")


def refusal(
    edge: "Edge", caller: Caller, status: int, reason: str, head: tuple[bytes, bytes, Headers]
) -> tuple[Response, bytes]:
    """The page for what cannot be read, which is an event, too; and its ray. `head`: what is known of it."""
    method, target, headers = head
    ray = b"%016x" % _ray(64)
    host = next((value for name, value in headers if name == b"host"), b"")
    edge.tools.observer.refused(caller.peer, ray, status, reason, method, host, target)
    edge.count(status)
    accept = next((value for name, value in headers if name == b"accept"), None)
    page = pages.page(status, f"The request was refused: {reason}.", ray=ray, accept=accept)
    if edge.access is not None:
        assert isinstance(page.body, bytes)
        sent = 0 if method == b"HEAD" else len(page.body)
        edge.access.refused(caller.peer, ray, status, method, host, target, sent)
    return page, ray
