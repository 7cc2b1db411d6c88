"""Accepting clients that begin with TLS (RFC 7858, RFC 8484): the handshake, and what it may cost.

Owns  the listening sockets of encrypted transports; which certificate a client is shown, on what terms.
Not   connections once they are private (`tcp`, `https`); where certificates come from, which is a parameter.

Who accepts by itself counts before the first octet is read: a handshake costs far more than a query,
and until its end there is no connection that could be counted. A client need not say a name, nor know us
(RFC 9539 §4.2): whatever name it asks for, it is shown the certificate that is there for that, or another.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from edgestead.dns.counters import Slot, Tally
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger, Levels
from edgestead.model.budgets.networks import network_of

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS_MAX: Final = 10.0
"""From accepting a connection; RFC 7858 leaves it to us, and the slowest radio link needs one."""
SHUTDOWN_SECONDS_MAX: Final = 2.0
"""That a client has to answer the end of TLS."""
ACCEPTS_AT_ONCE: Final = 16
PAUSE_SECONDS: Final = 0.5  # when there are no descriptors left
DOT: Final = "dot"  # RFC 7858 §3.2, in IANA's registry of ALPN
HTTP_2: Final = "h2"
HTTP: Final = "http/1.1"

Contexts = Callable[[str, Sequence[str]], ssl.SSLContext | None]
"""What a client is served with who asks for a host ("": none), to speak one of the protocols, as ALPN names
them, the preferred one first; None when there is no certificate at all."""
Makers = Mapping[str, Callable[[], asyncio.Protocol]]
"""What is spoken, by its name in ALPN; the last one also where nothing was agreed on."""


class _Agreed(asyncio.Protocol):
    """A connection until its handshake has said what is spoken on it."""

    def __init__(self, makers: Makers) -> None:
        self._makers = makers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        make = self._makers.get(agreed) or tuple(self._makers.values())[-1]
        protocol = make()
        cast(asyncio.Transport, transport).set_protocol(protocol)
        protocol.connection_made(transport)


class Arrivals:
    """Used by one loop. Made once for all encrypted transports, so that they share the budget."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, ledger: Ledger, tally: Tally, contexts: Contexts
    ) -> None:
        self._loop, self._counts, self._contexts = loop, tally.counts, contexts
        self._arriving = Levels(ledger, table.DNS_ARRIVALS_ADDRESS, table.DNS_ARRIVALS)
        self._listening: list[socket.socket] = []
        self._greeting: set[asyncio.Task[None]] = set()
        self._has_told = False

    def listen(self, sock: socket.socket, makers: Makers) -> None:
        """One of `makers` is called for each client when its handshake is done."""
        sock.setblocking(False)
        self._listening.append(sock)
        self._loop.add_reader(sock, self._accept, sock, self._base(tuple(makers)), makers)

    def close(self) -> None:
        """Accept nothing more; who is within a handshake is dropped."""
        for sock in self._listening:
            self._loop.remove_reader(sock)
            sock.close()
        self._listening.clear()
        for task in tuple(self._greeting):
            task.cancel()

    def _base(self, protocols: Sequence[str]) -> ssl.SSLContext:
        """What every handshake begins with: it has no certificate, and looks for one when it knows the name.

        It is also what sessions are resumed by, so these outlive a change of certificates.
        """
        base = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        base.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8310 §9, RFC 8996
        base.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        base.set_alpn_protocols(list(protocols))

        def choose(session: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
            found = self._contexts((name or "").lower().removesuffix("."), protocols)
            if found is None:
                self._tell()
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            session.context = found
            return None

        base.sni_callback = choose
        return base

    def _tell(self) -> None:
        if not self._has_told:
            self._has_told = True
            log.error("DNS over TLS has no certificate to show: tls-dir needs one, `default` for any name")

    def _accept(self, sock: socket.socket, base: ssl.SSLContext, makers: Makers) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, peer = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors left: nobody is served better by trying at once
                log.error("no connection can be accepted: %s", error)
                self._loop.remove_reader(sock)
                self._loop.call_later(PAUSE_SECONDS, self._accept_again, sock, base, makers)
                return
            network = network_of(str(peer[0]).partition("%")[0])
            if self._arriving.draw(network, 1) is not None:
                accepted.close()
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._greet(accepted, network, base, makers))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    def _accept_again(self, sock: socket.socket, base: ssl.SSLContext, makers: Makers) -> None:
        if sock in self._listening:
            self._loop.add_reader(sock, self._accept, sock, base, makers)

    async def _greet(
        self,
        accepted: socket.socket,
        network: str,
        base: ssl.SSLContext,
        makers: Makers,
    ) -> None:
        outcome = Slot.HANDSHAKES_FAILED
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Agreed(makers),
                accepted,
                ssl=base,
                ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS_MAX,
            )
            outcome = Slot.HANDSHAKES_DONE
        except OSError:
            accepted.close()  # the handshake failed, or the client left: its own affair
        except asyncio.CancelledError:
            accepted.close()
            raise
        finally:
            self._counts[outcome] += 1
            self._arriving.release(network, 1)
