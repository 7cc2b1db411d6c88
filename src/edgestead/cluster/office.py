"""One control process of a cluster: whether it may answer, and whether it leads.

Owns  its states, and which step comes next.
Not   carrying a step out; the members that a leader waits for (`members`).

    outside ──register──▶ joining ──admitted──▶ following ──claim──▶ claiming ──took office──▶ leading
       ▲                     │                     │                    │                        │
       └─────────────────────┴──── its row is gone, fenced, or was given up ◀────────────────────┘

    state       its row   answers                                            steps
    outside     none      nothing                                            register
    joining     renewed   nothing: no leader waits for it yet                claim, when no process leads
    following   renewed   reads, while its lease holds                       claim, when the leader's is over
    claiming    renewed   nothing: it has the office, and applies the log    take office
    leading     renewed   everything, while its lease holds                  none

A process that follows was admitted by a leader: from then on every leader waits for it with each write, or
has seen its lease end. A process that loses its row, or does not know what became of an append, begins again
outside with a new number.
"""

from enum import Enum
from typing import NamedTuple

from edgestead.cluster.lease import LEASE_MS, Lease, Observed


class State(Enum):
    OUTSIDE = "outside"
    JOINING = "joining"
    FOLLOWING = "following"
    CLAIMING = "claiming"
    LEADING = "leading"


ANSWERING = (State.FOLLOWING, State.LEADING)


class Step(Enum):
    REGISTER = "register"  # delete the row of before, if there is one, and insert a new one
    CLAIM = "claim"  # delete the holder's row and become the holder, in one transaction
    TAKE_OFFICE = "take office"  # apply the rest of the log, and append to it


class Holder(NamedTuple):
    """Who has the office: the row of its incarnation. `renewed` None: the row is gone."""

    number: int
    renewed: int | None


class Office:
    """Make it, carry out what `step` says, and tell it what came of that."""

    def __init__(self, lease_ms: float = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._lease = Lease(lease_ms)
        self._observed = Observed(lease_ms)
        self._is_free = False  # by the last poll, the office has no holder that may answer
        self._has_answered = False  # with this number: what it lent others of its lease may still hold
        self.granted_until_ms = float(
            "-inf"
        )  # others may answer by it, after this process has lost its place
        self.state = State.OUTSIDE
        self.answers_until_ms = float("-inf")
        """When its lease is over: it lends nobody a longer one. In the past while it answers nothing. It is
        kept because it is read twice for each request.
        """
        self.number: int | None = None
        self.holder: Holder | None = None  # by the last poll

    @property
    def leads(self) -> bool:
        return self.state is State.LEADING

    def may_answer(self, now_ms: float) -> bool:
        """Asked when an answer leaves."""
        return now_ms < self.answers_until_ms

    def _enter(self, state: State) -> None:
        self.state = state
        self._has_answered |= state in ANSWERING
        self._reckon()

    def _reckon(self) -> None:
        """After each change of its state or its lease."""
        self.answers_until_ms = self._lease.until_ms if self.state in ANSWERING else float("-inf")

    def step(self, *, may_claim: bool = True) -> Step | None:
        """What to do next. Without `may_claim` another process goes first."""
        if self.state is State.OUTSIDE:
            return Step.REGISTER
        if self.state is State.CLAIMING:
            return Step.TAKE_OFFICE
        if self._is_free and may_claim and self.state is not State.LEADING:
            return Step.CLAIM
        return None

    def registered(self, number: int, sent_ms: float) -> None:
        """A row with this number was inserted by a statement that was sent then."""
        self.number, self._has_answered = number, False
        self._lease.end()
        self._lease.renewed(sent_ms)
        self._enter(State.JOINING)
        self._is_free = False

    def renewed(self, sent_ms: float) -> None:
        self._lease.renewed(sent_ms)
        self._reckon()

    def lost(self) -> None:
        """The row is gone or fenced, or an append failed: nothing may be answered any more."""
        self._enter(State.OUTSIDE)
        if self._has_answered:
            self.granted_until_ms = max(self.granted_until_ms, self._lease.until_ms)
        self._lease.end()
        self._is_free = False

    def polled(self, holder: Holder | None, asked_ms: float, now_ms: float) -> None:
        """A poll, sent at `asked_ms`, says who has the office."""
        self.holder = holder
        self._observed.seen(holder, asked_ms, now_ms)
        self._is_free = holder is None or holder.renewed is None or self._observed.is_over(asked_ms)
        if holder is not None and holder.number == self.number:
            self._is_free = False
            if self.state in (State.JOINING, State.FOLLOWING):
                self._enter(State.CLAIMING)  # the outcome of its claim was unknown

    def poll_failed(self) -> None:
        self._observed.failed()
        self._is_free = False

    def admitted(self) -> None:
        """A leader waits for this process, and its row says so: every later leader waits for it, too."""
        if self.state is State.JOINING:
            self._enter(State.FOLLOWING)

    def claimed(self) -> None:
        """This process has the office."""
        self._enter(State.CLAIMING)
        self._is_free = False

    def claim_failed(self) -> None:
        """Another process was faster, or it is unknown whether it worked: the next poll says."""
        self._is_free = False

    def took_office(self) -> None:
        if self.state is State.CLAIMING:
            self._enter(State.LEADING)
