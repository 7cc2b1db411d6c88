"""REST face of API tokens.

Owns  the route that tells whether a token is good.
Asks  `services.token_check`.
Tells nobody.
Not   the decision about any other request.
"""

from edgestead.api.context import AppContext
from edgestead.api.routing import Answer, route
from edgestead.model import envelope
from edgestead.model.envelope import Message
from edgestead.services import token_check
from edgestead.services.access import TOKENS, Identity

_VALID = Message(10000, "This API Token is valid and active")


@route("GET", "/user/tokens/verify", family=TOKENS, user_only=True)
def verify_token(api: AppContext, identity: Identity) -> Answer:
    """Tell whether the token that was sent is good, and until when."""
    state = token_check.verify(identity, api.now_us())
    return Answer(body=envelope.success(state, (_VALID,)))
