"""TSIG keys of an account: made, shown, changed, and told to those who answer DNS.

Owns  their shape and rules; sealing their secrets.
Not   signatures (`dns.tsig`).

A secret is sealed in the database and in the feed, with the key's name: a row that is called otherwise does
not open.
"""

import base64
import binascii
import secrets
from typing import Final

import msgspec

from edgestead.model import names, sealing, tsig
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.records import TYPES
from edgestead.model.refusals.tsig import (
    TooManyTsigs,
    TsigExists,
    TsigInUse,
    TsigNotFound,
    TsigRefused,
    TsigSealed,
)
from edgestead.model.times import six_digits
from edgestead.model.tsig import ALGORITHMS, KIND_KEY, SCOPE, SECRET_OCTETS_MAX, SECRET_OCTETS_MIN, ServedKey
from edgestead.store.control import Reader, Transaction
from edgestead.tables import tokens, tsig_keys
from edgestead.tables.tsig_keys import TsigRow
from edgestead.usecases import limits
from edgestead.usecases.access.authorise import Identity
from edgestead.usecases.lookup import account_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.record.updates import Rights
from edgestead.usecases.serving import followed
from edgestead.usecases.zone import secondary

_read_rights = msgspec.json.Decoder(Rights).decode
DEFAULT_ALGORITHM: Final = "hmac-sha256"
_SECRET_CHARACTERS_MAX: Final = 1_024  # SECRET_OCTETS_MAX in Base64, and some line ends


class UpdateBody(msgspec.Struct, frozen=True):
    """What a key may change by dynamic updates. Without names or types it is all of them."""

    token_id: str | None = None
    names: list[str] | None = None
    types: list[str] | None = None


class TsigBody(msgspec.Struct, frozen=True):
    """What is not sent is made, or stays."""

    name: str | None = None
    algo: str | None = None
    secret: str | None = None
    transfer: bool | None = None
    update: UpdateBody | msgspec.UnsetType | None = msgspec.UNSET


class TsigView(msgspec.Struct, frozen=True):
    """`secret` is Base64, empty for who may less than the key.

    `sealed`: nobody can open it with this data folder's seal; a new secret makes the key good again.
    `transfer`: the key may transfer the account's zones; `update`: and change these names and types, as far
    as the token may.
    """

    id: str
    name: str
    algo: str
    secret: str
    sealed: bool
    transfer: bool
    update: Rights | None
    created_on: str
    modified_on: str


def listed(reader: Reader, platform: Platform, identity: Identity, account_id: str) -> list[TsigView]:
    """By name. Raises AccountNotSeen."""
    account_of(reader, account_id)
    return [_view(platform, identity, row) for row in tsig_keys.all_of(reader, account_id)]


def show(reader: Reader, platform: Platform, identity: Identity, account_id: str, id_: str) -> TsigView:
    """Raises AccountNotSeen, TsigNotFound."""
    return _view(platform, identity, _row(reader, account_id, id_))


def create(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, account_id: str, body: TsigBody
) -> TsigView:
    """Raises AccountNotSeen, TsigRefused, TsigExists, TooManyTsigs."""
    account_of(tx, account_id)
    if len(tsig_keys.all_of(tx, account_id)) >= limits.TSIG_KEYS_MAX:
        raise TooManyTsigs(keys_max=limits.TSIG_KEYS_MAX)
    name, algorithm = _name(body.name), _algorithm(body.algo)
    secret = secrets.token_bytes(ALGORITHMS[algorithm]) if body.secret is None else _secret(body.secret)
    _check_free(tx, name, "")
    row = TsigRow(
        id=platform.new_id(),
        account_id=account_id,
        name=name,
        algorithm=algorithm,
        sealed=_sealed(platform, name, secret),
        transfer=int(body.transfer is not False),
        updates=_rights(tx, identity, account_id, None if body.update is msgspec.UNSET else body.update),
        created_us=call.now_us,
        modified_us=call.now_us,
    )
    tsig_keys.insert(tx, row)
    _tell(tx, row)
    return _view(platform, identity, row)


def update(
    call: Call,
    tx: Transaction,
    platform: Platform,
    identity: Identity,
    account_id: str,
    id_: str,
    body: TsigBody,
) -> TsigView:
    """Change what is sent. Raises AccountNotSeen, TsigNotFound, TsigRefused, TsigExists, TsigSealed."""
    row = _row(tx, account_id, id_)
    if not _may_hold(identity, row):
        raise TsigRefused(reason="it does what another token may; that one changes it.")
    name = row.name if body.name is None else _name(body.name)
    secret = _opened(platform, row) if body.secret is None else _secret(body.secret)
    _check_free(tx, name, id_)
    row = row._replace(
        name=name,
        algorithm=row.algorithm if body.algo is None else _algorithm(body.algo),
        sealed=_sealed(platform, name, secret),
        transfer=row.transfer if body.transfer is None else int(body.transfer),
        updates=row.updates
        if isinstance(body.update, msgspec.UnsetType)
        else _rights(tx, identity, account_id, body.update),
        modified_us=call.now_us,
    )
    tsig_keys.update(tx, row)
    _tell(tx, row)
    return _view(platform, identity, row)


def delete(tx: Transaction, account_id: str, id_: str) -> None:
    """It signs nothing from now on. Raises AccountNotSeen, TsigNotFound, TsigInUse."""
    row = _row(tx, account_id, id_)
    for peer in secondary.peers_of(tx, account_id).values():
        if peer.tsig_id == id_:
            raise TsigInUse(peer=peer.name)
    for catalog in followed.of_account(tx, account_id):
        if any(group.tsig_id == id_ for group in catalog.groups.values()):
            raise TsigInUse(peer=catalog.name)
    zone = secondary.zone_with_tsig(tx, account_id, id_)
    if zone is not None:
        raise TsigInUse(peer=zone)
    tsig_keys.delete(tx, row.id)
    tx.emit(SCOPE, KIND_KEY, row.id, None)


def _may_hold(identity: Identity, row: TsigRow) -> bool:
    """Whether the caller may have the secret: else who may read keys could do what the token behind may."""
    if not row.updates or identity.full:
        return True
    token_id = _read_rights(row.updates).token_id
    return bool(token_id) and token_id == identity.actor.token_id


def secret_of(platform: Platform, row: TsigRow) -> bytes:
    """For those who sign with it here. Raises TsigSealed."""
    return _opened(platform, row)


def _row(reader: Reader, account_id: str, id_: str) -> TsigRow:
    account_of(reader, account_id)
    row = tsig_keys.one(reader, account_id, id_)
    if row is None:
        raise TsigNotFound
    return row


def _check_free(reader: Reader, name: str, id_: str) -> None:
    found = tsig_keys.named(reader, name)
    if found is not None and found.id != id_:
        raise TsigExists(name=name, pointer="/name")


def _name(text: str | None) -> str:
    if not text:
        raise TsigRefused(reason="name is required.", pointer="/name")
    try:
        return names.text_from_wire(names.wire_from_text(text.strip()))
    except InvalidName as error:
        raise TsigRefused(reason=f"{error.reason}.", pointer="/name") from None


def _algorithm(text: str | None) -> str:
    algorithm = (text or DEFAULT_ALGORITHM).lower().rstrip(".")
    if algorithm not in ALGORITHMS:
        raise TsigRefused(reason=f"algo is one of {', '.join(ALGORITHMS)}.", pointer="/algo")
    return algorithm


def _secret(text: str) -> bytes:
    try:
        if len(text) > _SECRET_CHARACTERS_MAX:
            raise ValueError
        secret = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise TsigRefused(reason="secret is not Base64.", pointer="/secret") from None
    if not SECRET_OCTETS_MIN <= len(secret) <= SECRET_OCTETS_MAX:
        reason = f"secret has {SECRET_OCTETS_MIN} to {SECRET_OCTETS_MAX} octets behind its Base64."
        raise TsigRefused(reason=reason, pointer="/secret")
    return secret


def _rights(reader: Reader, identity: Identity, account_id: str, body: UpdateBody | None) -> str:
    """A key does what a token may: the caller's own one, or another for who may do everything anyway."""
    if body is None:
        return ""
    token_id = identity.actor.token_id if body.token_id is None else body.token_id
    if not identity.full and (not token_id or token_id != identity.actor.token_id):
        reason = "update.token_id is the token of this request, unless that may do everything."
        raise TsigRefused(reason=reason, pointer="/update/token_id")
    token = tokens.by_id(reader, token_id) if token_id else None
    if token_id and (token is None or (token.owner_kind == "account" and token.owner_id != account_id)):
        raise TsigRefused(reason="update.token_id is no token of this account.", pointer="/update/token_id")
    wanted, types = body.names or [], body.types or []
    if len(wanted) > limits.TSIG_NAMES_MAX:
        raise TsigRefused(
            reason=f"update.names are at most {limits.TSIG_NAMES_MAX}.", pointer="/update/names"
        )
    for type_ in types:
        if type_.upper() not in TYPES:
            raise TsigRefused(reason="update.types has a type that is not known.", pointer="/update/types")
    rights = Rights(
        token_id or "", tuple(map(_pattern, wanted)), tuple(sorted({one.upper() for one in types}))
    )
    return msgspec.json.encode(rights).decode()


def _pattern(text: str) -> str:
    """A name, or all names below one."""
    star = "*." if text.startswith("*.") else ""
    try:
        return star + names.text_from_wire(names.wire_from_text(text.removeprefix("*.").strip()))
    except InvalidName as error:
        raise TsigRefused(reason=f"update.names: {error.reason}.", pointer="/update/names") from None


def _sealed(platform: Platform, name: str, secret: bytes) -> bytes:
    return sealing.seal(platform.seal.derived(tsig.PURPOSE), secret, names.wire_from_text(name))


def _opened(platform: Platform, row: TsigRow) -> bytes:
    try:
        return sealing.unseal(platform.seal.derived(tsig.PURPOSE), row.sealed, names.wire_from_text(row.name))
    except ValueError:
        raise TsigSealed from None


def _tell(tx: Transaction, row: TsigRow) -> None:
    served = ServedKey(
        names.wire_from_text(row.name),
        row.algorithm,
        row.account_id,
        row.sealed,
        bool(row.transfer),
        bool(row.updates),
    )
    tx.emit(SCOPE, KIND_KEY, row.id, tsig.encode(served))


def _view(platform: Platform, identity: Identity, row: TsigRow) -> TsigView:
    try:
        secret, is_sealed = _opened(platform, row), False
    except TsigSealed:  # who has to make it anew must find it first
        secret, is_sealed = b"", True
    return TsigView(
        id=row.id,
        name=f"{row.name}.",
        algo=f"{row.algorithm}.",
        secret=base64.b64encode(secret).decode() if _may_hold(identity, row) else "",
        sealed=is_sealed,
        transfer=bool(row.transfer),
        update=_read_rights(row.updates) if row.updates else None,
        created_on=six_digits(row.created_us),
        modified_on=six_digits(row.modified_us),
    )
