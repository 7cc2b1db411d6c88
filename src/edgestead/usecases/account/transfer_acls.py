"""Ranges of addresses that an account lets ask for transfers of its zones.

Owns  their JSON shape and rules, and telling DNS of them.
Not   the zones that they open (`usecases.zone.outgoing`, `dns.outgoing`).
"""

from collections.abc import Callable
from typing import Final

import msgspec

from edgestead.model import transfers, tsig
from edgestead.model.addresses import plain_network
from edgestead.model.call import Call
from edgestead.model.refusals.outgoing import AclNotFound, AclRefused
from edgestead.model.transfers import KIND_ACL, ServedAcl
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.usecases import limits
from edgestead.usecases.lookup import account_of

ACLS: Final = "secondary_acls"
PREFIX_MIN: Final = {4: 24, 6: 64}  # as in the original API: a wider one opens zones to strangers by mistake


class Acl(msgspec.Struct, frozen=True):
    id: str
    name: str
    ip_range: str


class AclBody(msgspec.Struct, frozen=True):
    name: str | None = None
    ip_range: str | None = None


_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Acl).decode


def listed(reader: Reader, account_id: str) -> list[Acl]:
    """By name. Raises AccountNotSeen."""
    account_of(reader, account_id)
    found = (_read(stored.value) for stored in settings.family(reader, account_id, ACLS).values())
    return sorted(found, key=lambda acl: (acl.name, acl.id))


def show(reader: Reader, account_id: str, acl_id: str) -> Acl:
    """Raises AccountNotSeen, AclNotFound."""
    account_of(reader, account_id)
    stored = settings.one(reader, account_id, f"{ACLS}.{acl_id}")
    if stored is None:
        raise AclNotFound
    return _read(stored.value)


def create(call: Call, tx: Transaction, new_id: Callable[[], str], account_id: str, body: AclBody) -> Acl:
    """Raises AccountNotSeen, AclRefused."""
    if len(listed(tx, account_id)) >= limits.TRANSFER_ACLS_MAX:
        reason = f"an account has at most {limits.TRANSFER_ACLS_MAX} of them."
        raise AclRefused(reason=reason, pointer="")
    return _store(call, tx, account_id, new_id(), body)


def put(call: Call, tx: Transaction, account_id: str, acl_id: str, body: AclBody) -> Acl:
    """Raises AccountNotSeen, AclNotFound, AclRefused."""
    show(tx, account_id, acl_id)
    return _store(call, tx, account_id, acl_id, body)


def delete(tx: Transaction, account_id: str, acl_id: str) -> None:
    """Raises AccountNotSeen, AclNotFound."""
    show(tx, account_id, acl_id)
    settings.delete(tx, account_id, f"{ACLS}.{acl_id}")
    _tell(tx, account_id)


def _store(call: Call, tx: Transaction, account_id: str, acl_id: str, body: AclBody) -> Acl:
    if not body.name or len(body.name) > limits.PEER_NAME_CHARACTERS_MAX:
        reason = f"name is a text of 1 to {limits.PEER_NAME_CHARACTERS_MAX} characters."
        raise AclRefused(reason=reason, pointer="/name")
    acl = Acl(acl_id, body.name, _range(body.ip_range or ""))
    settings.put(tx, account_id, f"{ACLS}.{acl_id}", _encode(acl).decode(), call.now_us)
    _tell(tx, account_id)
    return acl


def _range(text: str) -> str:
    """As it was sent: clients compare it."""
    try:
        network = plain_network(text.strip())
    except ValueError:
        raise AclRefused(reason="ip_range is an address or a CIDR range.", pointer="/ip_range") from None
    shortest = PREFIX_MIN[network.version]
    if network.prefixlen < shortest:
        reason = f"ip_range is /{shortest} at the widest."
        raise AclRefused(reason=reason, pointer="/ip_range")
    return text.strip()


def _tell(tx: Transaction, account_id: str) -> None:
    ranges = tuple(acl.ip_range for acl in listed(tx, account_id))
    document = transfers.encode(ServedAcl(ranges)) if ranges else None
    tx.emit(tsig.SCOPE, KIND_ACL, account_id, document)
