"""How somebody becomes a session: by a password, or by an invitation that begins one.

Owns  what each does in its transaction, and what it leaves in the audit log.
Not   passkeys (`usecases.account.passkeys`), which end in the same `sign_in`; hashing
      (`usecases.access.passwords`), which takes too long for a transaction: it is done before, and the
      transaction looks whether that still holds; how often somebody may try (`web.people`).

    password, invitation ──► a secret of the member's token (`usecases.access.member_rights`)

The secret is the answer, for sessions in memory; its hash is what is kept. A new one ends all sessions.
"""

from typing import NamedTuple

import msgspec

from edgestead.model.call import Actor, Call
from edgestead.model.refusals.account import InvitationForMember, InvitationOver, SignInRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, passkeys, people, tokens
from edgestead.tables.accounts import UserRow
from edgestead.usecases import audit
from edgestead.usecases.access import member_rights
from edgestead.usecases.access.authorise import secret_hash
from edgestead.usecases.account.accounts import profile_of, set_profile
from edgestead.usecases.audit import About, Before, Where
from edgestead.usecases.platform import Platform


class Person(NamedTuple):
    """A user as the password was looked at. `scrypt` is the stored text, None where there is none."""

    user_id: str
    email: str
    scrypt: str | None


class Names(NamedTuple):
    """What somebody says of themself when they accept."""

    first: str = ""
    last: str = ""


def person_of_email(reader: Reader, email: str) -> Person | None:
    row = accounts.user_of_email(reader, email.strip().lower())
    return None if row is None else Person(row.id, row.email, people.password(reader, row.id))


def person_of_id(reader: Reader, user_id: str) -> Person | None:
    row = accounts.user(reader, user_id)
    return None if row is None else Person(row.id, row.email, people.password(reader, row.id))


def invited(reader: Reader, code: str, now_us: int) -> Person:
    """Whose password this code begins. Raises InvitationOver, InvitationForMember."""
    row = people.invitation(reader, secret_hash(code))
    user = None if row is None or now_us >= row.expires_us else accounts.user(reader, row.user_id)
    if row is None or user is None:
        raise InvitationOver
    if not row.sets_password:
        reason = "this address is in another account here; sign in, and give its code on the page You"
        raise InvitationForMember(reason=reason)
    return Person(user.id, user.email, people.password(reader, user.id))


def sign_in(
    call: Call, tx: Transaction, platform: Platform, where: Where, person: Person, known: str | None
) -> str:
    """After the password was right: the secret of the member's token, the `known` one while it is good.

    Raises SignInRefused: the password was changed meanwhile, or the user is gone.
    """
    still(tx, person)
    row = tokens.by_id(tx, member_rights.token_id_of(person.user_id))
    if known is None or row is None or row.hash != secret_hash(known):
        known = platform.new_secret()
    member_rights.open_session(call, tx, person.user_id, secret_hash(known))
    note(call, tx, where, person, "login")
    return known


def accept(
    call: Call, tx: Transaction, platform: Platform, where: Where, code: str, scrypt: str, names: Names
) -> tuple[Person, str]:
    """Use an invitation up: it sets the password, and accepts the membership. The secret of a session.

    Whatever signed in before is not the holder of this account's code: where it accepts the membership,
    passkeys, sessions and tokens of before end.

    Raises InvitationOver, InvitationForMember.
    """
    row = people.invitation(tx, secret_hash(code))
    person = invited(tx, code, call.now_us)
    assert row is not None
    for membership in accounts.memberships(tx, person.user_id):
        if membership.account_id == row.account_id and membership.status == "pending":
            accounts.set_membership_status(tx, membership.id, "accepted")
            if person.scrypt is not None:
                end_ways_in(call, tx, platform, person)
    if names.first or names.last:
        said = profile_of(tx, person.user_id)
        said = msgspec.structs.replace(said, first_name=names.first or None, last_name=names.last or None)
        set_profile(call, tx, person.user_id, said)
    people.delete_invitation(tx, person.user_id, row.account_id)
    people.begin_nothing(tx, person.user_id)
    return person, _renewed(call, tx, platform, where, person, scrypt, "accept")


def set_password(
    call: Call, tx: Transaction, platform: Platform, where: Where, person: Person, scrypt: str
) -> str:
    """Another password: every session ends, and the secret of a new one is returned. Raises SignInRefused."""
    still(tx, person)
    return _renewed(call, tx, platform, where, person, scrypt, "change_password")


def end_ways_in(call: Call, tx: Transaction, platform: Platform, person: Person) -> Person:
    """Password, passkeys, sessions and tokens end: whose they are is not known to an account that begins."""
    member_rights.end(call, tx, platform, person.user_id)
    people.delete_password(tx, person.user_id)
    passkeys.forget(tx, person.user_id)
    return person._replace(scrypt=None)


def end_sessions(call: Call, tx: Transaction, platform: Platform, where: Where, person: Person) -> None:
    """End every session of a member; their tokens stay. Raises SignInRefused: the user is gone."""
    still(tx, person)
    member_rights.open_session(call, tx, person.user_id, secret_hash(platform.new_secret()))
    note(call, tx, where, person, "logout")


def _renewed(
    call: Call, tx: Transaction, platform: Platform, where: Where, person: Person, scrypt: str, action: str
) -> str:
    secret = platform.new_secret()
    people.set_password(tx, person.user_id, scrypt, call.now_us)
    member_rights.open_session(call, tx, person.user_id, secret_hash(secret))
    note(call, tx, where, person, action)
    return secret


def still(reader: Reader, person: Person) -> UserRow:
    """Who it still is: with the password that was looked at, and a membership. Raises SignInRefused."""
    row = accounts.user(reader, person.user_id)
    is_same = row is not None and people.password(reader, row.id) == person.scrypt
    if row is None or not is_same or not accounts.memberships(reader, row.id):
        raise SignInRefused
    return row


def note(
    call: Call,
    tx: Transaction,
    where: Where,
    person: Person,
    action: str,
    of: tuple[str, str] | None = None,
    *,
    was: dict[str, str] | None = None,
    became: object = None,
) -> None:
    """What a member did with their own way in; `of` is kind and id, else their session."""
    token_id = member_rights.token_id_of(person.user_id)
    actor = Actor(kind="user", id=person.user_id, email=person.email, token_id=token_id)
    by_them = msgspec.structs.replace(call, actor=actor)
    about = About(action, *(of or ("session", person.user_id)), scope="user")
    audit.note(by_them, tx, where, about, Before(None, None, was), became)
