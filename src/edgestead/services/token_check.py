"""Use case: is this token good?

Owns  the answer of the verify routes.
Asks  nobody: the identity holds everything.
Tells `api.tokens`.
Not   making, changing or ending tokens.
"""

import msgspec

from edgestead.model.access_errors import InvalidApiToken
from edgestead.model.times import whole_seconds
from edgestead.services.access import Identity


class TokenState(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    status: str
    not_before: str | None = None
    expires_on: str | None = None


def verify(identity: Identity, now_us: int) -> TokenState:
    """Raises InvalidApiToken: the credentials are a key pair, which is no token."""
    token_id = identity.actor.token_id
    if token_id is None:
        raise InvalidApiToken
    return TokenState(
        token_id,
        identity.state_at(now_us),
        None if identity.not_before_us is None else whole_seconds(identity.not_before_us),
        None if identity.expires_us is None else whole_seconds(identity.expires_us),
    )
