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
from collections.abc import Callable
from typing import Final

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
HTTP: Final = "http/1.1"

Contexts = Callable[[str, str], ssl.SSLContext | None]
"""What a client is served with who asks for a host ("": none), to speak the protocol of that ALPN; None when
there is no certificate at all."""


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

    def listen(self, sock: socket.socket, protocol: str, make: Callable[[], asyncio.Protocol]) -> None:
        """`make` is called for each client when its handshake is done."""
        sock.setblocking(False)
        self._listening.append(sock)
        self._loop.add_reader(sock, self._accept, sock, self._base(protocol), make)

    def close(self) -> None:
        """Accept nothing more; who is within a handshake is dropped."""
        for sock in self._listening:
            self._loop.remove_reader(sock)
            sock.close()
        self._listening.clear()
        for task in tuple(self._greeting):
            task.cancel()

    def _base(self, protocol: str) -> ssl.SSLContext:
        """What every handshake begins with: it has no certificate, and looks for one when it knows the name.

        It is also what sessions are resumed by, so these outlive a change of certificates.
        """
        base = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        base.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8310 §9, RFC 8996
        base.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        base.set_alpn_protocols([protocol])

        def choose(session: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
            found = self._contexts((name or "").lower().removesuffix("."), protocol)
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

    def _accept(
        self, sock: socket.socket, base: ssl.SSLContext, make: Callable[[], asyncio.Protocol]
    ) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, peer = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors left: nobody is served better by trying at once
                log.error("no connection can be accepted: %s", error)
                self._loop.remove_reader(sock)
                self._loop.call_later(PAUSE_SECONDS, self._accept_again, sock, base, make)
                return
            network = network_of(str(peer[0]).partition("%")[0])
            if self._arriving.draw(network, 1) is not None:
                accepted.close()
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._greet(accepted, network, base, make))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    def _accept_again(
        self, sock: socket.socket, base: ssl.SSLContext, make: Callable[[], asyncio.Protocol]
    ) -> None:
        if sock in self._listening:
            self._loop.add_reader(sock, self._accept, sock, base, make)

    async def _greet(
        self,
        accepted: socket.socket,
        network: str,
        base: ssl.SSLContext,
        make: Callable[[], asyncio.Protocol],
    ) -> None:
        outcome = Slot.HANDSHAKES_FAILED
        try:
            await self._loop.connect_accepted_socket(
                make,
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
