"""A member's passkeys: registered, used, removed.

Owns  the rules in the transaction: whose key, how many, its count of signatures; what the audit log says.
Not   checking answers (`usecases.access.webauthn`), which is done before; sessions (`signing_in`).

    answer that is good ──► the key is still there, and has signed more than ever ──► as after a password

A count that did not grow says that somebody else has the key, or that an answer came again. Authenticators
that do not count say 0 for ever (passkeys that devices share do).
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from edgestead.model.call import Call
from edgestead.model.refusals.account import PasskeyNotFound, PasskeyRefused, PasskeySignInRefused
from edgestead.model.times import whole_seconds
from edgestead.store.control import Reader, Transaction
from edgestead.tables import passkeys
from edgestead.tables.passkeys import PasskeyRow
from edgestead.usecases.account import signing_in
from edgestead.usecases.account.signing_in import Person
from edgestead.usecases.audit import Where
from edgestead.usecases.limits import PASSKEYS_PER_MEMBER_MAX, PROFILE_CHARACTERS_MAX
from edgestead.usecases.platform import Platform


class PasskeyView(msgspec.Struct, frozen=True):
    id: str
    name: str
    origin: str
    created_on: str
    last_used_on: str | None


class Named(NamedTuple):
    """How its member calls it, and the address at which it is good."""

    name: str
    origin: str


def listed(reader: Reader, user_id: str) -> list[PasskeyView]:
    return [_view(row) for row in passkeys.of_user(reader, user_id)]


def key_ids(reader: Reader, user_id: str) -> list[bytes]:
    return [row.key_id for row in passkeys.of_user(reader, user_id)]


def by_key(reader: Reader, key_id: bytes) -> PasskeyRow | None:
    return passkeys.by_key(reader, key_id)


def check_name(name: str) -> None:
    """Raises PasskeyRefused."""
    if not 1 <= len(name) <= PROFILE_CHARACTERS_MAX or not name.isprintable():
        raise PasskeyRefused(reason=f"its name has from 1 to {PROFILE_CHARACTERS_MAX} printable characters")


def register(
    call: Call,
    tx: Transaction,
    platform: Platform,
    where: Where,
    person: Person,
    named: Named,
    key: tuple[bytes, bytes, int],
) -> PasskeyView:
    """`key` is its identifier, its public half and its count. Raises PasskeyRefused, SignInRefused: gone."""
    key_id, public_key, count = key
    id_ = platform.new_id()
    row = PasskeyRow(id_, person.user_id, named.name, named.origin, key_id, public_key, count, call.now_us)
    signing_in.still(tx, person)
    present: Sequence[PasskeyRow] = passkeys.of_user(tx, person.user_id)
    if len(present) >= PASSKEYS_PER_MEMBER_MAX:
        raise PasskeyRefused(reason=f"there are {PASSKEYS_PER_MEMBER_MAX} already")
    if any(one.name == row.name for one in present):
        raise PasskeyRefused(reason="one has this name already")
    if passkeys.by_key(tx, row.key_id) is not None:
        raise PasskeyRefused(reason="it is registered already")
    passkeys.insert(tx, row)
    made = _view(row)
    signing_in.note(call, tx, where, person, "register", ("passkey", row.id), became=made)
    return made


def sign_in(
    call: Call,
    tx: Transaction,
    platform: Platform,
    where: Where,
    checked: PasskeyRow,
    sign_count: int,
    known: str | None,
) -> tuple[Person, str]:
    """After the answer was good: who it is, and the secret as `signing_in.sign_in` gives it.

    Raises PasskeySignInRefused, SignInRefused.
    """
    row = passkeys.by_key(tx, checked.key_id)
    if row is None or row.id != checked.id:
        raise PasskeySignInRefused
    if (sign_count or row.sign_count) and sign_count <= row.sign_count:
        raise PasskeySignInRefused
    person = signing_in.person_of_id(tx, row.user_id)
    if person is None:
        raise PasskeySignInRefused
    passkeys.set_used(tx, row.id, sign_count, call.now_us)
    return person, signing_in.sign_in(call, tx, platform, where, person, known)


def remove(call: Call, tx: Transaction, where: Where, person: Person, id_: str) -> None:
    """It signs nobody in with this commit; sessions go on. Raises PasskeyNotFound, also for another's."""
    signing_in.still(tx, person)
    for row in passkeys.of_user(tx, person.user_id):
        if row.id == id_:
            passkeys.delete(tx, id_)
            signing_in.note(call, tx, where, person, "remove", ("passkey", id_), was={"name": row.name})
            return
    raise PasskeyNotFound


def _view(row: PasskeyRow) -> PasskeyView:
    used = None if row.used_us is None else whole_seconds(row.used_us)
    return PasskeyView(row.id, row.name, row.origin, whole_seconds(row.made_us), used)
