"""Notifying secondaries that a zone has changed (RFC 1996).

Owns  the messages, their targets, retries and giving up.
Not   transfers (`transfer`); what a change is.

A zone that changes often is announced once in GAP_SECONDS: the secondary fetches the newest version. At a
start all zones are announced once; batches of SENDS_PER_TURN_MAX keep thousands of them from becoming a
flood.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final

from edgestead.dns import node, tsig, wire
from edgestead.dns.counters import Counters, Slot
from edgestead.dns.keyring import Keyring
from edgestead.dns.table import Table
from edgestead.dns.wire import BadMessage
from edgestead.dns.zone import Zone
from edgestead.model import names

log = logging.getLogger(__name__)

Target = tuple[str, int]
"""Address and port."""

DELAY_SECONDS: Final = 0.02
"""From a change to its announcement: changes that come together are announced together."""
GAP_SECONDS: Final = 1.0
RETRY_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How long to wait for each answer; then the secondary is left to its refresh timer (RFC 1996 §3.6)."""
SENDS_PER_TURN_MAX: Final = 20  # then queries are answered
TURN_SECONDS: Final = 0.1

NOBODY: Final[Mapping[Target, bytes]] = MappingProxyType({})
_NOTIFY: Final = 4 << 11
_AA: Final = 0x0400
_QR_AND_OPCODE: Final = 0xF8
_RESPONSE: Final = 0x80 | 4 << 3
_HEAD: Final = struct.Struct("!HHHHHH")
_SOA: Final = wire.SOA.to_bytes(2, "big") + b"\0\x01"


Key = tuple[bytes, Target]


class _Due:
    """One zone and one secondary: planned, waiting for an answer, or idle until its gap is over.

    `changed` means that there is a change to announce; `tries` counts since the last answer; `id` and
    `sent_at` are of the last message, `at` is the planned time.
    """

    __slots__ = ("at", "changed", "id", "sent_at", "tries")

    def __init__(self) -> None:
        self.at = self.sent_at = float("-inf")
        self.changed = False
        self.id = -1
        self.tries = 0


class Notifier:
    """Create it and report changes to it on the thread of the loop that runs it.

    `targets` are told of every zone, the peers of a zone (`Keyring.outgoing`) of that one. `signed_by` are
    the names of the keys that sign what `targets` are sent. `seconds` is the loop's clock.
    Memory: one small object for each zone and target that is not done.
    """

    def __init__(
        self,
        table: Table,
        counters: Counters,
        targets: Sequence[Target],
        *,
        seconds: Callable[[], float],
        keyring: Keyring | None = None,
        signed_by: Mapping[Target, bytes] = NOBODY,
        random_id: Callable[[], int] = lambda: secrets.randbelow(1 << 16),
    ) -> None:
        self._table = table
        self._counters = counters
        self._keyring = keyring or Keyring()
        self._signed_by = {(str(ip_address(host)), port): name for (host, port), name in signed_by.items()}
        self._targets = tuple((str(ip_address(host)), port) for host, port in targets)
        self._seconds = seconds
        self._random_id = random_id
        self._due: dict[Key, _Due] = {}
        self._families: set[int] = set()
        self._queue: list[tuple[float, Key]] = []
        self._missed: set[bytes] = set()
        self._wake = asyncio.Event()
        self._transports: dict[int, asyncio.DatagramTransport] = {}

    def changed(self, apexes: Iterable[bytes]) -> None:
        """Announce these zones to every target, soon and once. A retry that is already planned keeps its
        time.
        """
        soon = self._seconds() + DELAY_SECONDS
        for apex in apexes:
            for target in (*self._targets, *self._keyring.outgoing.targets(apex)):
                key = apex, target
                due = self._due.setdefault(key, _Due())
                if not due.changed:
                    due.changed = True
                    if not due.tries:
                        self._plan(key, due, max(soon, due.sent_at + GAP_SECONDS))
        self._wake.set()

    def _plan(self, key: Key, due: _Due, at: float) -> None:
        """Plan the next check. An earlier plan stays in the queue and is skipped."""
        due.at = at
        heappush(self._queue, (at, key))

    async def run(self, bind_host: str = "") -> None:
        """Send until cancelled, from `bind_host` where it is an address of the target's family.

        Targets of an address family that this machine lacks fail and are given up like those that do not
        answer.
        """
        try:
            while True:
                await self._wait()
                for family in {_family(target[0]) for _, target in self._due} - self._families:
                    self._families.add(family)  # once, also where this machine lacks it
                    await self._open(family, bind_host)
                if self._send_due() == SENDS_PER_TURN_MAX:
                    await asyncio.sleep(TURN_SECONDS)
        finally:
            for transport in self._transports.values():
                transport.close()

    async def _open(self, family: int, bind_host: str) -> None:
        local = (bind_host, 0) if bind_host and _family(bind_host) == family else None
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Ears(self._heard), local_addr=local, family=family
            )
        except OSError as error:
            log.error("NOTIFY cannot be sent to %s: %s", socket.AddressFamily(family).name, error)
            return
        self._transports[family] = transport

    async def _wait(self) -> None:
        """Wait until something may be due."""
        self._wake.clear()
        seconds = max(0.0, self._queue[0][0] - self._seconds()) if self._queue else None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    def _send_due(self) -> int:
        """Send what is due, up to one batch; returns how many messages."""
        now, sent = self._seconds(), 0
        while self._queue and self._queue[0][0] <= now and sent < SENDS_PER_TURN_MAX:
            at, key = heappop(self._queue)
            due = self._due.get(key)
            if due is not None and due.at == at:
                sent += self._turn(key, due, now)
        return sent

    def _turn(self, key: Key, due: _Due, now: float) -> int:
        zone = self._table.view.zones.get(key[0])
        is_idle = not (due.changed or due.tries)  # its gap is over
        if zone is None or not zone.names or is_idle or not self._is_told(key):
            del self._due[key]
            return 0
        if due.tries == len(RETRY_SECONDS):
            if not due.changed:
                self._give_up(key)
                return 0
            due.tries -= 1
        due.changed, due.id, due.sent_at = False, self._random_id(), now
        transport = self._transports.get(_family(key[1][0]))
        if transport is not None:
            transport.sendto(self._message(due.id, zone, key[1]), key[1])
        self._plan(key, due, now + RETRY_SECONDS[due.tries])
        due.tries += 1
        return 1

    def _is_told(self, key: Key) -> bool:
        return key[1] in self._targets or key[1] in self._keyring.outgoing.targets(key[0])

    def _message(self, id_: int, zone: Zone, target: Target) -> bytes:
        message, name = _message(id_, zone), self._signed_by.get(target, b"")
        key_id = self._keyring.outgoing.targets(zone.apex).get(target, "")
        key = self._keyring.of_id(key_id) if key_id else self._keyring.keys.get(name)
        if key is not None:
            message, _ = tsig.sign(message, key, self._keyring.now_s())
        elif name and name not in self._missed:
            self._missed.add(name)
            log.warning("there is no TSIG key %s: NOTIFY is sent without it", _shown(name))
        return message

    def _give_up(self, key: Key) -> None:
        del self._due[key]
        self._counters.add(Slot.NOTIFIES_UNANSWERED, 1)
        apex, (host, port) = key
        log.warning("the secondary %s port %d does not answer NOTIFY of zone %s", host, port, _shown(apex))

    def _heard(self, response: bytes, source: Target) -> None:
        """Any answer from the right address with the right ID counts as received (RFC 1996 §3.6)."""
        try:
            name_end = wire.read_name(response, _HEAD.size)
        except BadMessage:
            return
        key = response[_HEAD.size : name_end].lower(), source
        due = self._due.get(key)
        if due is None or not due.tries or int.from_bytes(response[:2], "big") != due.id:
            return
        due.tries = 0
        self._counters.add(Slot.NOTIFIES_ANSWERED, 1)
        self._plan(key, due, max(self._seconds() + DELAY_SECONDS, due.sent_at + GAP_SECONDS))


class _Ears(asyncio.DatagramProtocol):
    def __init__(self, heard: Callable[[bytes, Target], None]) -> None:
        self._heard = heard

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        if len(data) > _HEAD.size and data[2] & _QR_AND_OPCODE == _RESPONSE:
            self._heard(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """The network reports that no server listens there: ignored until the next try."""


def _family(host: str) -> int:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _message(id_: int, zone: Zone) -> bytes:
    """With the SOA as a hint (RFC 1996 §3.7): a secondary with this serial need not query."""
    soa = node.rrset(zone.names[b""], _SOA)
    assert soa is not None
    return _HEAD.pack(id_, _NOTIFY | _AA, 1, 1, 0, 0) + zone.apex + _SOA + soa[1]


def _shown(apex: bytes) -> str:
    return ascii(names.text_from_wire(apex))
