"""An admission: what let a caller in, and for how long the answer may be relied on.

Owns  the states of an admission, and the comparison that most requests pay.
Not   looking a caller up (`authorise`); waiting until the answer is known (`objects.runtime.admission`).

    UNKNOWN ──── the lease is live again ───┐
       ▲                                    ▼
       │ the lease is over          who? usable now? permitted? ─── no ──► refused, for good
       │                                    │ yes: stamped with the table's epoch
       │                                    ▼
       └──────────────────────────────── ADMITTED ──► committed; begun by an object
                                            │  ▲
       the epoch moved on, or the end came  │  │ yes: stamped again
                                            ▼  │
                                          STALE ── who? usable now? permitted? ── no ──► refused, for good

Whoever serves a request asks at its head, when its body is there, and where its effect begins: in the
transaction, or when an object's turn has come. REST has the table that follows each commit itself and needs
no lease; a process that follows the feed relies on its table only while its lease is live (`feed.lease`).
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from edgestead.usecases.access.authorise import Identity


class State(Enum):
    ADMITTED = "admitted"
    STALE = "stale"
    UNKNOWN = "unknown"


class Admission(msgspec.Struct, frozen=True, gc=False):
    """`identity` was permitted what it asked for when the table had this epoch.

    The epoch is read before the table: what a change in between adds is looked up once more, and what it
    takes away is never missed.
    """

    identity: Identity
    epoch: int

    def holds(self, epoch: int, now_us: Callable[[], int]) -> bool:
        """Whether it is ADMITTED still. The clock is read only for a token that ends by itself."""
        if epoch != self.epoch:
            return False
        ends_us = self.identity.expires_us
        return ends_us is None or now_us() < ends_us

    def state(self, epoch: int, now_us: Callable[[], int], *, lease_is_live: bool) -> State:
        """The same for a process that follows the feed."""
        if not lease_is_live:
            return State.UNKNOWN
        return State.ADMITTED if self.holds(epoch, now_us) else State.STALE
