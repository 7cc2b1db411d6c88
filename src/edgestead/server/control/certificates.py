"""Certificates at control: what is stored reaches the edge, and the server's health.

Owns  looking whether they are others than before; opening keys for the memory that the edge reads.
Not   which of them a name gets (`usecases.serving.certificates`).
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from edgestead.edge.http.certificates import Kept as Served
from edgestead.edge.http.origin_tls import Vouching
from edgestead.health.checks import CERTIFICATE_WARN_DAYS
from edgestead.health.facts import DAY_US, Certificate, FailedOrder
from edgestead.server import certificate_memory
from edgestead.server.control.targets import Data
from edgestead.server.health.control_part import Kept
from edgestead.tables import certificates as rows
from edgestead.usecases.certificate import signing, states
from edgestead.usecases.certificate.states import read_progress
from edgestead.usecases.serving import certificates
from edgestead.usecases.serving.certificates import read_hosts
from edgestead.usecases.serving.keys import Seal
from edgestead.usecases.serving.proofs import HTTP, TLS_ALPN, Proof

SHOWN_MAX: Final = 100  # in the health of the server
LIFE_PARTS_WARN: Final = 4  # of a short life the last quarter: at two thirds a new one was to come
POLL_SECONDS: Final = 0.5  # how late the memory has a change; the edge looks every two seconds

_log = logging.getLogger("edgestead.server")


def _nobody(content: bytes) -> None:
    """No other machine follows."""


class CertificatesPart:
    """Make and `open` it on control's loop. `fd` is the memory that the edge processes read."""

    def __init__(
        self,
        data: Data,
        seal: Seal,
        fd: int,
        now_us: Callable[[], int],
        told: Callable[[bytes], None] = _nobody,
    ) -> None:
        """`told` gets what is in the memory, each time that it is other than before."""
        self._told = told
        self._data = data
        self._seal = seal
        self._fd = fd
        self._now_us = now_us
        self._version = -1
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._look()
        self._task = asyncio.create_task(self._watch())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def kept(self) -> Kept:
        """Those that end soon or have ended, and orders that failed, for the health of the server."""
        now_us = self._now_us()
        before_us = now_us + CERTIFICATE_WARN_DAYS * DAY_US
        ending = self._data.read(lambda reader: rows.ending(reader, before_us, SHOWN_MAX))
        failed = self._data.read(lambda reader: rows.failed(reader, states.FAILED, SHOWN_MAX))
        return Kept(
            tuple(
                Certificate(one.zone_name, f"of {', '.join(read_hosts(one.hosts)[:2])}", one.ends_us)
                for one in ending
                if one.ends_us - now_us < (one.ends_us - one.starts_us) // LIFE_PARTS_WARN
            ),
            tuple(
                FailedOrder(
                    one.zone_name, read_progress(one.body).error, one.has_chain and one.ends_us > now_us
                )
                for one in failed
            ),
        )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            with suppress(Exception):
                await self._look()

    async def _look(self) -> None:
        version = self._data.read(certificates.version)
        if version == self._version:
            return
        try:
            await asyncio.to_thread(self._write)
            self._version = version
            if content := certificate_memory.content_of(self._fd):
                self._told(content)
        except Exception:
            _log.exception("certificates did not reach the edge, which goes on with those it has")

    def _write(self) -> None:
        """On a thread: 10,000 keys take a second to open."""
        pairs, closed = self._data.read(lambda reader: certificates.pairs(reader, self._seal))
        if closed:
            _log.error(
                "%d certificates are not served: seal.key, which opens their keys, is another one",
                closed,
            )
        vouching = Vouching(*self._data.read(lambda reader: certificates.of_origins(reader, self._now_us())))
        shown = _shown(self._data.read(certificates.proofs_at_edge))
        if not certificate_memory.write(self._fd, [Served(*pair) for pair in pairs], vouching, shown):
            _log.error("the certificates are too many for the edge, which goes on with those it has")


def _shown(found: list[Proof]) -> certificate_memory.Proofs:
    """Proofs as the edge shows them."""
    pages = {f"{one.host}/{one.token}": one.value for one in found if one.method == HTTP}
    handshakes = []
    for one in found:
        if one.method == TLS_ALPN:
            chain, key = signing.alpn_pair(one.host, one.value)
            handshakes.append(Served((one.host,), chain.encode(), key))
    return certificate_memory.Proofs(pages, tuple(handshakes))
