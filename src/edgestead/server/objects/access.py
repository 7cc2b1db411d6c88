"""Whether a request to the objects' address may pass.

Owns  the order of the questions: who, usable now, permitted, and whether that is sure.
Not   the feed's connection; the states of an admission (`usecases.access.admission`).

What the feed has said is gone by only while that is sure (`feed.lease`): control tells nobody that a
token is dead before this process knows it, or sees that it lacks something, or has no lease. A request that
was let in before pays a comparison for as long as its admission holds.
"""

from collections.abc import Callable
from typing import NamedTuple

from edgestead.feed.lease import Lease
from edgestead.http1.messages import Request
from edgestead.model.refusals import EdgeError
from edgestead.model.refusals.object import Unsure
from edgestead.objects.runtime.bindings import Ask, Used, encode
from edgestead.rest import credentials
from edgestead.rest.guesses import Guesses
from edgestead.usecases.access.admission import Admission, State
from edgestead.usecases.access.authorise import PLATFORM, Identity, Target, check_usable, permits
from edgestead.usecases.access.identities import FedAccess


class _Admitted(NamedTuple):
    permission: str
    admission: Admission


class Gatekeeper:
    """Authenticates like the REST API. Objects belong to the server's account."""

    def __init__(self, fed: FedAccess, lease: Lease, now_us: Callable[[], int], guesses: Guesses) -> None:
        self._fed, self._lease, self._now_us, self._guesses = fed, lease, now_us, guesses
        self._uses_us: dict[str, int] = {}  # by token, since the last report

    def __call__(self, request: Request, permission: str) -> EdgeError | None:
        """The refusal, if there is one; `Unsure` when nobody can say, which may pass."""
        grant = self._lease.grant  # before the table is read: what it covers is not older
        epoch = self._fed.table.epoch  # before it, too
        before: _Admitted | None = request.admitted
        if before is not None and before.permission == permission:
            is_live = self._lease.holds(grant)
            state = before.admission.state(epoch, self._now_us, lease_is_live=is_live)
            if state is not State.STALE:
                return Unsure() if state is State.UNKNOWN else None
        try:
            identity = credentials.identify(dict(request.headers), self._fed.table, PLATFORM)
        except EdgeError as refused:  # counted once: who waits until it is sure comes here again
            sure = self._lease.holds(grant)
            return self._guesses.refusal(refused, request.client, self._now_us()) if sure else Unsure()
        refusal = self._judge(identity, request, permission)
        if refusal is None:
            request.admitted = _Admitted(permission, Admission(identity, epoch))
        return refusal if self._lease.holds(grant) else Unsure()

    def _judge(self, identity: Identity, request: Request, permission: str) -> EdgeError | None:
        try:
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
