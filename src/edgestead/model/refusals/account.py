"""Refusals of accounts, their members and roles.

Owns  code, status and wording of each.
Not   credentials (`model.refusals.access`).

    Forbidden (403)
    ├── AccountNotSeen           9109
    ├── AccountCreationForbidden 1002
    ├── RoleGrantsMore           9109
    ├── SignInRefused            9109
    ├── PasskeySignInRefused     9109
    └── OpenIdRefused            9109
    BadRequest (400)
    ├── AccountTypeIsFixed      1001
    ├── AccountFieldRefused     1001
    ├── AccountQuota            1001
    ├── InvitationForMember     1001
    ├── InvitationOver          1001
    ├── KeyHolderStays          1001
    ├── LastMember              1001
    ├── MemberExists            1001
    ├── MemberQuota             1001
    ├── MemberRefused           1001
    ├── PasswordRefused         1001
    ├── PasskeyRefused          1001
    └── MembershipStatusRefused 1001
    NotFound (404)
    ├── MemberNotFound     1003
    ├── RoleNotFound       1003
    ├── PasskeyNotFound    1003
    └── MembershipNotFound 1003
"""

from edgestead.model.refusals import BadRequest, Forbidden, NotFound


class AccountNotSeen(Forbidden):
    """An account that does not exist, or is not the caller's."""

    code, wording = 9109, "Unauthorized to access requested resource"


class AccountCreationForbidden(Forbidden):
    """Only who may do everything on the server makes another account."""

    code, wording = 1002, "Account creation is forbidden."


class AccountTypeIsFixed(BadRequest):
    code, wording = 1001, "An account's type cannot change."


class AccountFieldRefused(BadRequest):
    code, wording = 1001, "{field} is invalid: {reason}"


class MemberNotFound(NotFound):
    code, wording = 1003, "Member not found."


class RoleNotFound(NotFound):
    code, wording = 1003, "Role not found."


class MembershipNotFound(NotFound):
    code, wording = 1003, "Membership not found."


class LastMember(BadRequest):
    code, wording = 1001, "The last accepted member cannot leave an account."


class MembershipStatusRefused(BadRequest):
    code, wording = 1001, "A membership's status is accepted or rejected."


class RoleGrantsMore(Forbidden):
    """To give a role, to change or to take it, the caller needs every permission that it gives."""

    code, wording = (
        9109,
        "A role cannot be given or taken by credentials that allow less than it: {group} on {resource}.",
    )


class AccountQuota(BadRequest):
    code, wording = 1001, "There are {limit} accounts already, as many as there may be."


class MemberExists(BadRequest):
    code, wording = 1001, "{email} is a member of this account already."


class MemberQuota(BadRequest):
    code, wording = 1001, "There are {limit} members already, as many as an account may have."


class MemberRefused(BadRequest):
    code, wording = 1001, "{field} is invalid: {reason}."


class KeyHolderStays(BadRequest):
    """The user of the credentials file, whose key may do everything whatever their roles say."""

    code, wording = 1001, "The server's own user stays a member, with every right."


class InvitationForMember(BadRequest):
    code, wording = 1001, "The invitation is not accepted: {reason}."


class InvitationOver(BadRequest):
    """One wording for all: who guesses learns nothing."""

    code, wording = 1001, "This invitation was used already, has ended, or was replaced by another."


class PasswordRefused(BadRequest):
    code, wording = 1001, "The password is refused: {reason}."


class SignInRefused(Forbidden):
    """An unknown e-mail address, or another password: nobody learns which."""

    code, wording = 9109, "The e-mail address or the password is wrong."


class PasskeyRefused(BadRequest):
    code, wording = 1001, "The passkey is refused: {reason}."


class PasskeyNotFound(NotFound):
    code, wording = 1003, "Passkey not found."


class PasskeySignInRefused(Forbidden):
    """One wording for all: an unknown or removed passkey, another's, an answer that comes twice or late."""

    code, wording = (
        9109,
        "This passkey signs nobody in here, or it took too long. Try again, or use the password.",
    )


class OpenIdRefused(Forbidden):
    """One wording for all: an unknown address, another subject than the one that is bound, a bad token."""

    code, wording = (
        9109,
        "This sign-in is nobody's here. Who was invited by the address that it names can sign in so.",
    )
