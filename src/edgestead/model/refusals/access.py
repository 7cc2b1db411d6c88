"""Refusals of credentials, and of what they may not do.

Owns  code, status and wording of each.
Not   which one a route answers: its family says so (`rest.routing.Family`).

    BadRequest (400)
    ├── NoCredentials              9106
    ├── MissingAuthEmail           9106
    ├── MissingAuthKey             9107
    ├── InvalidHeaders             6003
    ├── InvalidAuthorizationFormat 6111
    ├── InvalidAuthEmailFormat     6102
    └── InvalidAuthKeyFormat       6103
    Forbidden (403)
    ├── UnknownKeyPair      9103
    ├── InvalidAccessToken  9109
    ├── AuthenticationError 10000
    ├── TokenNotUsableNow   9109
    ├── TokenNotUsableHere  9109
    ├── UserNeeded          9109
    └── MembershipsNeedUser 9106
    Unauthenticated (401)
    └── InvalidApiToken 1000
    TooManyRequests (429)
    └── TooManyGuesses 10430
"""

from edgestead.model.refusals import BadRequest, Forbidden, TooManyRequests, Unauthenticated


class NoCredentials(BadRequest):
    code, wording = 9106, "Missing credentials: send X-Auth-Key and X-Auth-Email, or Authorization."


class MissingAuthEmail(BadRequest):
    code, wording = 9106, "Missing X-Auth-Email header"


class MissingAuthKey(BadRequest):
    code, wording = 9107, "Missing X-Auth-Key header"


class InvalidHeaders(BadRequest):
    """The header is malformed. The cause is in the error chain."""

    code, wording = 6003, "Invalid request headers"


class InvalidAuthorizationFormat(BadRequest):
    code, wording = 6111, "Invalid format for Authorization header"


class InvalidAuthEmailFormat(BadRequest):
    code, wording = 6102, "Invalid format for X-Auth-Email header"


class InvalidAuthKeyFormat(BadRequest):
    code, wording = 6103, "Invalid format for X-Auth-Key header"


class UnknownKeyPair(Forbidden):
    code, wording = 9103, "Unknown X-Auth-Key or X-Auth-Email"


class InvalidApiToken(Unauthenticated):
    """On the token routes, where the question is whether the token is good."""

    code, wording = 1000, "Invalid API Token"


class InvalidAccessToken(Forbidden):
    """On the routes of zones, accounts and users."""

    code, wording = 9109, "Invalid access token"


class AuthenticationError(Forbidden):
    """On the routes of what a zone or account holds. Tells neither unknown from unpermitted."""

    code, wording = 10000, "Authentication error"


class TooManyGuesses(TooManyRequests):
    """Unknown credentials from a network that sent many of them: `api-guesses`."""

    code = 10430
    wording = (
        "More than {limit} unknown credentials came from this address within a minute. "
        "Try again in {seconds} seconds; good credentials are taken meanwhile."
    )


class TokenNotUsableNow(Forbidden):
    """Disabled, expired, or before its first day."""

    code, wording = 9109, "The access token cannot be used: it is {state}."


class TokenNotUsableHere(Forbidden):
    """The token's address condition does not hold."""

    code, wording = 9109, "The access token cannot be used from address {address}."


class UserNeeded(Forbidden):
    """A token that an account owns, on a route about its user."""

    code, wording = 9109, "Valid user-level authentication not found"


class MembershipsNeedUser(Forbidden):
    code, wording = 9106, "Authentication failed: memberships belong to a user, not to an account's token."
