"""Dynamic updates: control's end of the Unix socket on which DNS processes hand them over.

Owns  whom a key stands for, that a message counts once, the answer as an rcode.
Not   what an update does (`usecases.record.updates`); the client's message (`dns.update`).

The signature is judged here again: what a DNS process says of it is not asked. A message that comes again,
because its answer was lost or somebody else repeats it, gets the answer of the first time, unless that was
SERVFAIL: then it is tried again.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from edgestead.changes import NEWEST
from edgestead.dns import tsig, update
from edgestead.dns.tsig import FUDGE_SECONDS, Key
from edgestead.dns.wire import BadMessage
from edgestead.model import names
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.refusals import EdgeError, Unavailable
from edgestead.model.update import FORMERR, NOERROR, NOTAUTH, REFUSED, SERVFAIL, NotDone, Update
from edgestead.objects.runtime.wire import Answering
from edgestead.server.control.once import Once
from edgestead.server.control.signers import signer
from edgestead.server.control.store import ControlData
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, tokens, tsig_keys, zones
from edgestead.tables.tsig_keys import TsigRow
from edgestead.usecases import audit
from edgestead.usecases.access import lineage
from edgestead.usecases.access.authorise import check_usable, identity_of, permits, zone_target
from edgestead.usecases.audit import About, Before, Where
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import updates
from edgestead.usecases.record.updates import Rights

REMEMBERED_MAX: Final = 10_000  # messages of all keys; one is valid for twice the fudge
INTERFACE: Final = "dns"
_BACKLOG: Final = 16
_DNS_WRITE: Final = "DNS Write"
_read_rights = msgspec.json.Decoder(Rights).decode
log = logging.getLogger("edgestead.server")


class UpdateSocket:
    """`now_us` is microseconds since the epoch."""

    def __init__(
        self, data: ControlData, platform: Platform, profile: Profile, now_us: Callable[[], int]
    ) -> None:
        self._data, self._platform, self._profile, self._now_us = data, platform, profile, now_us
        self.pass_on: Callable[[bytes], Awaitable[bytes]] | None = (
            None  # to the process of a cluster that leads
        )
        self._running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._once = Once[int](REMEMBERED_MAX, 2 * FUDGE_SECONDS, lambda rcode: rcode == SERVFAIL)

    async def open(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: Answering(self.answer, self._running), sock=listener, backlog=_BACKLOG
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def answer(self, body: bytes) -> bytes:
        """The rcode for a client's address behind its length, and its message. Never raises."""
        try:
            return await (self.pass_on or self.act)(body)
        except Unavailable as error:
            log.info("an update did not reach the leader: %s", error)
            return bytes((SERVFAIL,))

    async def act(self, body: bytes) -> bytes:
        """The same, by this process."""
        client, message = body[1 : 1 + body[0]].decode(), body[1 + body[0] :]
        try:
            return bytes((await self._answer(client, message),))
        except Exception:
            log.exception("a dynamic update failed")
            return bytes((SERVFAIL,))

    async def _answer(self, client: str, message: bytes) -> int:
        now_s = self._now_us() // 1_000_000
        try:
            record = tsig.find(message, update.RECORDS_MAX)
            row = None if record is None else self._data.read(lambda reader: _key(reader, record.name))
            if record is None or row is None:
                return NOTAUTH
            key = signer(self._platform, row)
            asked = tsig.verify(message, {key.name: key}, now_s, records_max=update.RECORDS_MAX)
            if asked.key is None:
                return NOTAUTH
            wanted = update.read(asked.message)
        except BadMessage:
            return FORMERR
        return await self._once.run(now_s, key.name, asked.mac, lambda: self._act(client, key, wanted))

    async def _act(self, client: str, key: Key, wanted: Update) -> int:
        try:
            await self._data.write(lambda tx: self._write(tx, client, key, wanted))
        except NotDone as refusal:
            if str(refusal):
                log.info("an update of %s was refused: %s", names.text_from_wire(wanted.apex), refusal)
            return refusal.rcode
        except EdgeError as refusal:
            log.info("an update of %s was refused: %s", names.text_from_wire(wanted.apex), refusal)
            return SERVFAIL if refusal.status >= 500 else REFUSED
        return NOERROR

    def _write(self, tx: Transaction, client: str, key: Key, wanted: Update) -> None:
        """What the key and its token are in this transaction counts. `key` is what the message was signed
        with: another one that has its name by now did not sign it. Raises NotDone, EdgeError.
        """
        row = _key(tx, key.name)
        if row is None or signer(self._platform, row) != key:
            raise NotDone(NOTAUTH)
        if not row.updates:
            raise NotDone(REFUSED, "the key may change nothing")
        rights = _read_rights(row.updates)
        zone_id = zones.id_by_name(tx, names.text_from_wire(wanted.apex))
        if zone_id is None:
            raise NotDone(NOTAUTH)
        now_us = self._now_us()
        if zones.account_id(tx, zone_id) != row.account_id:
            raise NotDone(NOTAUTH)
        _check_token(tx, rights.token_id, zone_id, client, now_us)
        actor = Actor(
            kind="account", id=row.account_id, email=f"TSIG key {row.name}", token_id=rights.token_id or None
        )
        call = Call(
            actor=actor,
            as_of=NEWEST,
            profile=self._profile,
            now_us=now_us,
            request_id=self._platform.new_id(),
        )
        if updates.run(call, tx, self._platform, zone_id, wanted, rights) is not None:
            zone = zones.zone(tx, zone_id)
            about = About("update", "record", zone_id, row.account_id, zone_id, "zone")
            held = Before(row.account_id, zone.name if zone else None, None)
            audit.note(call, tx, Where(client, INTERFACE), about, held, None)


def _key(reader: Reader, name: bytes) -> TsigRow | None:
    return tsig_keys.named(reader, names.text_from_wire(name))


def _check_token(reader: Reader, token_id: str, zone_id: str, client: str, now_us: int) -> None:
    """A key that is bound to a token may what that one may now. Raises NotDone, EdgeError."""
    if not token_id:
        return
    token = tokens.by_id(reader, token_id)
    if token is None:
        raise NotDone(REFUSED, "the token that the key is bound to is gone")
    owner = accounts.user(reader, token.owner_id)
    above = tuple(map(identity_of, lineage.rows_above(reader, token)))
    identity = lineage.bounded(identity_of(token, owner.email if owner else None), above)
    check_usable(identity, now_us, client)
    if not permits(identity, _DNS_WRITE, zone_target(reader, zone_id)):
        raise NotDone(REFUSED, "the token that the key is bound to may not change this zone")
