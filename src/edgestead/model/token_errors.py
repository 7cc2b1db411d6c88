"""Refusals of making and changing API tokens.

Owns  code, status and wording of each.
Asks  `model.errors` for the bases.
Tells `services.token_draft`, `services.grants` and `services.tokens`.
Not   refusals of a token that is used (`model.access_errors`).
"""

from edgestead.model.errors import BadRequest, Forbidden, NotFound


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


class GrantsMore(Forbidden):
    """Whoever makes, changes or rolls a token must hold all that it allows."""

    code, wording = 9109, "A token cannot allow more than your own credentials do: {group} on {resource}."
