"""A member who signs in with an OpenID provider: whose subject it is.

Owns  the rules in the transaction: which user, who is bound, that invitations are accepted by it.
Not   what the provider said (`usecases.access.openid`), which is checked before; sessions (`signing_in`).

    subject that is bound                          ──► its user
    another one, with the address of a user        ──► bound to them, where nobody is yet
    an address that is a user's                    ──► accepts their invitations that hold; where it does, a
                                                       password of before ends: it had another account's code
    all else                                       ──► refused: no account is made
"""

from collections.abc import Callable

from edgestead.model.call import Call
from edgestead.model.refusals.account import OpenIdRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, openid, people
from edgestead.tables.openid import SubjectRow
from edgestead.usecases.account import signing_in
from edgestead.usecases.account.signing_in import Person
from edgestead.usecases.audit import Where
from edgestead.usecases.platform import Platform


def sign_in(
    call: Call,
    tx: Transaction,
    platform: Platform,
    where: Where,
    said: tuple[str, str, str],
    known: Callable[[str], str | None],
) -> tuple[Person, str]:
    """`said` is issuer, subject and address. Who it is, and a secret as `signing_in.sign_in` gives it.

    Raises OpenIdRefused, SignInRefused.
    """
    issuer, subject, email = said
    person = _bound(tx, issuer, subject)
    if person is None:
        person = signing_in.person_of_email(tx, email)
        if person is None or openid.of_user(tx, person.user_id, issuer) is not None:
            raise OpenIdRefused
    person = _accept(call, tx, platform, person, email)
    if not any(one.status == "accepted" for one in accounts.memberships(tx, person.user_id)):
        raise OpenIdRefused
    if openid.by_subject(tx, issuer, subject) is None:
        openid.insert(tx, SubjectRow(issuer, subject, person.user_id, call.now_us))
        signing_in.note(call, tx, where, person, "register", ("openid", person.user_id))
    return person, signing_in.sign_in(call, tx, platform, where, person, known(person.user_id))


def _bound(reader: Reader, issuer: str, subject: str) -> Person | None:
    row = openid.by_subject(reader, issuer, subject)
    return None if row is None else signing_in.person_of_id(reader, row.user_id)


def _accept(call: Call, tx: Transaction, platform: Platform, person: Person, email: str) -> Person:
    """Invitations that hold are accepted: the provider says that their address is theirs.

    Whoever set a password before has shown the code of another account, and none of these.
    """
    if email.lower() != person.email.lower():
        return person
    rows = people.invitations_of(tx, person.user_id)
    held = {row.account_id for row in rows if call.now_us < row.expires_us}
    begun = [
        one
        for one in accounts.memberships(tx, person.user_id)
        if one.account_id in held and one.status == "pending"
    ]
    for one in begun:
        accounts.set_membership_status(tx, one.id, "accepted")
        people.delete_invitation(tx, person.user_id, one.account_id)
    if not begun:
        return person
    people.begin_nothing(tx, person.user_id)
    return signing_in.end_ways_in(call, tx, platform, person) if person.scrypt is not None else person
