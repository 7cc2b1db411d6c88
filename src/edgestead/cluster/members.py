"""The control processes that a leader's writes wait for.

Owns  how far each is, and when one that does not keep up is waited for no longer.
Not   connections, rows, clocks: they are reported.

    joining ──link──▶ linked ──too slow, or its link lost──▶ fenced ──a lease later──▶ gone
                                                               ▲
    admitted by a leader before, and no link for PATIENCE ─────┘

A write is answered when each member has applied its entry or is gone. Members are the control processes that
have a link to this leader, and those whose row says that some leader has admitted them. Processes that only
join are none: they answer nothing. A member is gone when its row is: rows are deleted by their own process
when it has stopped answering, by its host when it has died, and by a leader that has seen the row fenced, or
not renewed, for a whole lease. A fenced row cannot be renewed, and its process cannot be admitted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from edgestead.cluster.lease import LEASE_MS, Observed

PATIENCE_MS: Final = 1_000  # without progress while a write waits for it


JOINING: Final = "joining"
ADMITTED: Final = "control"
FENCED: Final = "fenced"


class Row(NamedTuple):
    """An incarnation as a poll shows it."""

    renewed: int
    kind: str


@dataclass(slots=True, eq=False)
class _Member:
    observed: Observed
    since_ms: float
    applied: int = -1
    linked: bool = False
    fenced: bool = False
    late_ms: float | None = None  # since when a write waits for it without progress
    row: Row | None = field(default=None)


class Members:
    """Of one leader, from its claim on: `seen` has to be called before the first write is answered."""

    def __init__(self, lease_ms: float = LEASE_MS, patience_ms: float = PATIENCE_MS) -> None:
        self._lease_ms, self._patience_ms = lease_ms, patience_ms
        self._members: dict[int, _Member] = {}
        self._is_known = False

    @property
    def numbers(self) -> list[int]:
        return sorted(self._members)

    @property
    def positions(self) -> dict[int, int]:
        """The newest entry that each has applied, -1 where it has said of none."""
        return {number: member.applied for number, member in self._members.items()}

    @property
    def applied(self) -> float:
        """The newest entry that every member has applied; infinite without any."""
        if not self._is_known:
            return -1
        return min((member.applied for member in self._members.values()), default=float("inf"))

    def seen(self, rows: Mapping[int, Row], asked_ms: float, now_ms: float) -> None:
        """A poll, sent at `asked_ms`, shows the rows of all other control processes."""
        for number, row in rows.items():
            member = self._members.get(number)
            if member is None and row.kind == JOINING:
                continue
            if member is None:
                member = self._members[number] = _Member(Observed(self._lease_ms), now_ms)
            member.row = row
            member.fenced = member.fenced or row.kind == FENCED
            # Fencing starts no new count: it only keeps the holder from renewing once more, which would show.
            member.observed.seen(row.renewed, asked_ms, now_ms)
        for number in [n for n, m in self._members.items() if n not in rows and m.since_ms <= asked_ms]:
            del self._members[number]
        self._is_known = True

    def poll_failed(self) -> None:
        for member in self._members.values():
            member.observed.failed()

    def link(self, number: int, applied: int, now_ms: float) -> bool:
        """A process follows. False: it has to register again, because its row is being deleted."""
        member = self._members.get(number)
        if member is None:
            member = self._members[number] = _Member(Observed(self._lease_ms), now_ms)
        if member.fenced:
            return False
        member.linked, member.applied = True, max(member.applied, applied)
        return True

    def unlink(self, number: int) -> None:
        if member := self._members.get(number):
            member.linked = False

    def acked(self, number: int, applied: int) -> None:
        member = self._members.get(number)
        if member is not None and applied > member.applied:
            member.applied, member.late_ms = applied, None

    def to_fence(self, wanted: int, now_ms: float) -> list[int]:
        """Members without which entry `wanted` is not answered, and that made no progress for too long."""
        found = []
        for number, member in self._members.items():
            if member.applied >= wanted:
                member.late_ms = None
            elif member.late_ms is None:
                member.late_ms = now_ms
            elif now_ms - member.late_ms >= self._patience_ms and not member.fenced:
                found.append(number)
        return found

    def fenced(self, number: int) -> None:
        """Its row cannot be renewed any more."""
        if member := self._members.get(number):
            member.fenced, member.linked = True, False

    def to_delete(self, asked_ms: float) -> list[int]:
        """Those whose lease is over by the last poll, sent then. When the row is deleted they are gone."""
        return [n for n, m in self._members.items() if m.row is not None and m.observed.is_over(asked_ms)]

    def deleted(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._members.pop(number, None)
