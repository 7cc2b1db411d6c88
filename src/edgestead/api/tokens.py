"""REST face of API tokens.

Owns  /user/tokens/verify.
Asks  the identity that the pipeline found.
Tells clients.
Not   making and changing tokens.
"""

import msgspec

from edgestead.api.routing import Answer, route
from edgestead.model import envelope
from edgestead.model.access_errors import InvalidApiToken
from edgestead.model.envelope import Message
from edgestead.model.times import whole_seconds
from edgestead.services.access import TOKENS, Identity


class TokenStatus(msgspec.Struct, frozen=True):
    id: str
    status: str
    not_before: str | msgspec.UnsetType = msgspec.UNSET
    expires_on: str | msgspec.UnsetType = msgspec.UNSET


_GOOD = Message(10000, "This API token is valid and active.")


@route("GET", "/user/tokens/verify", family=TOKENS, user_only=True)
def verify_token(identity: Identity) -> Answer:
    """Whether the calling token is good. Every token may ask; a key pair is no token."""
    if identity.actor.token_id is None:
        raise InvalidApiToken
    status = TokenStatus(
        identity.actor.token_id,
        identity.status,
        _time(identity.not_before_us),
        _time(identity.expires_us),
    )
    return Answer(body=envelope.success(status, (_GOOD,)))


def _time(time_us: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if time_us is None else whole_seconds(time_us)
