"""Refusals of accounts, their members and roles.

Owns  code, status and wording of each.
Not   credentials (`model.refusals.access`).

    Forbidden (403)
    ├── AccountNotSeen           9109
    └── AccountCreationForbidden 1002
    BadRequest (400)
    ├── AccountTypeIsFixed      1001
    ├── AccountFieldRefused     1001
    ├── LastMember              1001
    └── MembershipStatusRefused 1001
    NotFound (404)
    ├── MemberNotFound     1003
    ├── RoleNotFound       1003
    └── MembershipNotFound 1003
"""

from edgestead.model.refusals import BadRequest, Forbidden, NotFound


class AccountNotSeen(Forbidden):
    """An account that does not exist, or is not the caller's."""

    code, wording = 9109, "Unauthorized to access requested resource"


class AccountCreationForbidden(Forbidden):
    """The first start makes the one account of a server."""

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
