"""How long a process of a cluster may answer, and when others may believe that it does not.

Owns  both ends of a lease: its holder's, and an observer's.
Not   the database in which it is renewed; what ownership is about.

A process has one row in the cluster's database, its incarnation, and renews it. Both ends count on their own
clock, so that no clocks are compared:

    holder      until LEASE after *sending* its last renewal that succeeded, less a margin
    observer    from LEASE after *seeing* a value first that has not changed since, in polls without a gap

A renewal is sent before it is seen, so the holder's end comes first. A failed poll starts the count again: an
outage of the database costs no process its ownership.
"""

from typing import Final

LEASE_MS: Final = 2_000  # of control and objects (a setting)
RENEW_MS: Final = 250  # between two renewals, and between two polls
MARGIN_MS: Final = 200  # by which a holder stops early: its answer has to leave, and clocks differ in speed


class Lease:
    """The holder's end."""

    def __init__(self, lease_ms: float = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._until_ms = float("-inf")

    def renewed(self, sent_ms: float) -> None:
        """A renewal that was sent then has succeeded."""
        self._until_ms = max(self._until_ms, sent_ms + self._lease_ms - MARGIN_MS)

    def end(self) -> None:
        self._until_ms = float("-inf")

    @property
    def until_ms(self) -> float:
        return self._until_ms

    def holds(self, now_ms: float) -> bool:
        return now_ms < self._until_ms


class Observed:
    """The observer's end, of one row."""

    def __init__(self, lease_ms: float = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._seen: object = None
        self._since_ms = self._polled_ms = float("-inf")

    def seen(self, value: object, asked_ms: float, now_ms: float) -> None:
        """A poll that was sent at `asked_ms` returned this value. None means that there is no row."""
        if value != self._seen or asked_ms - self._polled_ms > self._lease_ms / 2:
            self._seen, self._since_ms = value, now_ms
        self._polled_ms = now_ms

    def failed(self) -> None:
        """A poll failed: what was seen before it proves nothing."""
        self._seen = None
        self._polled_ms = float("-inf")

    def is_over(self, asked_ms: float) -> bool:
        """Whether the last poll, sent then, showed that its holder answers nothing more."""
        return self._seen is not None and asked_ms - self._since_ms >= self._lease_ms
