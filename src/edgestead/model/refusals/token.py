"""Refusals of making and changing API tokens.

Owns  code, status and wording of each.
Not   a token that is used (`model.refusals.access`).

    NotFound (404)
    └── TokenNotFound 1003
    BadRequest (400)
    ├── TokenNameRefused      1001
    ├── TokenPoliciesRefused  1001
    ├── TokenConditionRefused 1001
    ├── TokenTimeRefused      1001
    ├── TokenQuota            1001
    └── LineageTooLong        1001
    Forbidden (403)
    ├── GrantsMore      9109
    ├── BoundsWider     9109
    └── WiderThanParent 9109
"""

from edgestead.model.refusals import BadRequest, Forbidden, NotFound


class TokenNotFound(NotFound):
    """No such token, or another owner's."""

    code, wording = 1003, "Token not found"


class TokenNameRefused(BadRequest):
    code, wording = (
        1001,
        "name must have a length from 1 to {limit} characters, none of them a control character",
    )


class TokenPoliciesRefused(BadRequest):
    code, wording = 1001, "Token policies are invalid: {reason}."


class TokenConditionRefused(BadRequest):
    code, wording = 1001, "Token condition is invalid: {reason}."


class TokenTimeRefused(BadRequest):
    code, wording = 1001, "{field} is invalid: {reason}."


class TokenQuota(BadRequest):
    code, wording = 1001, "There are {limit} tokens already, as many as there may be: delete one first."


class LineageTooLong(BadRequest):
    code, wording = (
        1001,
        "There are {limit} tokens in this line, each made by the one before: ask with one further up.",
    )


class GrantsMore(Forbidden):
    """To create, change, roll or delete a token the caller needs every permission that it grants."""

    code, wording = (
        9109,
        "A token cannot be made or changed by credentials that allow less than it: {group} on {resource}.",
    )


class BoundsWider(Forbidden):
    """A token is good at no time and from no address at which its maker's is not."""

    code, wording = (
        9109,
        "A token cannot be made or changed by credentials that are bound more tightly than it: {reason}.",
    )


class WiderThanParent(Forbidden):
    """Nobody gives a token more than the tokens have that it comes from."""

    code, wording = 9109, "A token stays within the tokens that it comes from, and token {id} allows less."
