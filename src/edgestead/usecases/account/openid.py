"""A member who signs in with an OpenID provider: whose subject it is.

Owns  the rules in the transaction: which user, who is bound, that a pending invitation is accepted by it.
Not   what the provider said (`usecases.access.openid`), which is checked before; sessions (`signing_in`).

    subject that is bound                          ──► its user
    another one, with the address of a user        ──► bound to them, where nobody is yet
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
    _accept(call, tx, person)
    if not any(one.status == "accepted" for one in accounts.memberships(tx, person.user_id)):
        raise OpenIdRefused
    if openid.by_subject(tx, issuer, subject) is None:
        openid.insert(tx, SubjectRow(issuer, subject, person.user_id, call.now_us))
        signing_in.note(call, tx, where, person, "register", ("openid", person.user_id))
    return person, signing_in.sign_in(call, tx, platform, where, person, known(person.user_id))


def _bound(reader: Reader, issuer: str, subject: str) -> Person | None:
    row = openid.by_subject(reader, issuer, subject)
    return None if row is None else signing_in.person_of_id(reader, row.user_id)


def _accept(call: Call, tx: Transaction, person: Person) -> None:
    """An invitation that holds is accepted: the provider says that its address is theirs."""
    row = people.invitation_of(tx, person.user_id)
    if row is None or call.now_us >= row.expires_us:
        return
    for membership in accounts.memberships(tx, person.user_id):
        if membership.account_id == row.account_id and membership.status == "pending":
            accounts.set_membership_status(tx, membership.id, "accepted")
            people.delete_invitation(tx, person.user_id)
