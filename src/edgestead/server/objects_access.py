"""Whether a request to the objects' address may pass.

Owns  the order of the questions: who, usable now, permitted.
Asks  `api.credentials` for the forms of credentials, `services.identities` for who there is.
Tells the objects' HTTP handler, by the refusal.
Not   the feed's connection.
"""

from collections.abc import Callable

from edgestead.api import credentials
from edgestead.http1.messages import Request
from edgestead.model.errors import EdgeError
from edgestead.objects.bindings import Ask, Used, encode
from edgestead.services.access import PLATFORM, Target, check_usable, permits
from edgestead.services.identities import FedAccess


class Gatekeeper:
    """Authenticates like the REST API. Objects belong to the server's account."""

    def __init__(self, fed: FedAccess, now_us: Callable[[], int]) -> None:
        self._fed, self._now_us = fed, now_us
        self._uses_us: dict[str, int] = {}  # by token, since the last report

    def __call__(self, request: Request, permission: str) -> EdgeError | None:
        """The refusal, if there is one."""
        try:
            identity = credentials.identify(dict(request.headers), self._fed.table, PLATFORM)
            token_id = identity.actor.token_id
            if token_id is not None:
                now_us = self._now_us()
                check_usable(identity, now_us, request.client)
                self._uses_us[token_id] = now_us
            if identity.full:
                return None
        except EdgeError as refusal:
            return refusal
        targets = map(Target, self._fed.accounts)
        return None if any(permits(identity, permission, target) for target in targets) else PLATFORM.denied()

    async def report(self, ask: Ask) -> None:
        """Tell control which tokens were used; again the next time if it is away."""
        if not self._uses_us:
            return
        told, self._uses_us = self._uses_us, {}
        try:
            await ask(encode(Used(told)))
        except OSError:
            self._uses_us = told | self._uses_us
