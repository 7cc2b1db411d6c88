"""What one control process asks the cluster's database, round by round.

Owns  the order of questions and what each answer changes.
Not   carrying them out (`postgres.incarnations`); time.

A round is a generator of questions: the process answers them from PostgreSQL, and a simulation from memory.
A question that fails, or whose outcome is unknown, is thrown in as `Failed`. Nothing here waits for anything
but the answers; renewals come first, so that no other question makes a lease end.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple

from edgestead.cluster.lease import LEASE_MS
from edgestead.cluster.members import Members, Row
from edgestead.cluster.office import Holder, Office, State, Step

GIVE_WAY_MS: Final = 10_000.0  # before a process claims what another one is wanted for


class Failed(Exception):
    """The database did not answer; what it was asked for may have been done."""


class Register(NamedTuple):
    """Insert a new row; answered with its number. Delete `former`, and the node's row that has the office:
    both are of a process that answers nothing. The latter stays where nodes may answer by its grants.
    """

    former: int | None


class Renew(NamedTuple):
    """Answered with whether the row is there and not fenced."""

    number: int


class Poll(NamedTuple):
    """Answered with a View."""


class Claim(NamedTuple):
    """Become the holder, if the holder is still this one and has not renewed; answered with whether."""

    number: int
    holder: Holder | None


class Admit(NamedTuple):
    """Let the row say that this process is admitted, if this leader has the office still, and the row is not
    fenced; answered with whether. Taking the office waits for it, or comes first.
    """

    number: int
    leader: int


class Fence(NamedTuple):
    """Let these rows be renewed no more, if the row of this leader is there."""

    leader: int
    numbers: tuple[int, ...]


class Delete(NamedTuple):
    """Delete these rows, unless they were renewed since, if the row of this leader is there.

    Answered with the numbers that are gone.
    """

    leader: int
    rows: Mapping[int, Row]


class Forget(NamedTuple):
    """Delete the rows of this node but one: processes of before, which are dead. They stay where nodes may
    answer by their grants.
    """

    number: int


class View(NamedTuple):
    holder: Holder | None
    rows: Mapping[int, Row]  # of all control processes
    address: str = ""  # of the holder
    wanted: int | None = None  # who is to have the office


Ask = Register | Renew | Poll | Admit | Claim | Fence | Delete | Forget
Round = Generator[Ask, Any, None]


class Seat:
    """`now_ms` is a clock that goes on while the machine sleeps."""

    def __init__(self, now_ms: Callable[[], float], lease_ms: float = LEASE_MS) -> None:
        self._now_ms, self._lease_ms = now_ms, lease_ms
        self.office = Office(lease_ms)
        self.members = Members(lease_ms)
        self.wanted = 0  # the newest entry of which a write waits for the members
        self.has_grants: Callable[[], bool] = lambda: False  # whether nodes may answer by its lease
        self._gives_way_since_ms: float | None = None  # another process is to claim the office first
        self.view = View(None, {})
        self._admission: int | None = None
        self._forgets = False

    def may_answer(self) -> bool:
        return self._now_ms() < self.office.answers_until_ms

    def admitted(self, leader: int) -> None:
        """The leader of this number has admitted this process, which has applied all there was then."""
        self._admission = leader

    @property
    def is_to_give_way(self) -> bool:
        """Whether this process leads, and another one that follows is wanted."""
        wanted = self.view.wanted
        return self.office.leads and wanted in self.view.rows and wanted != self.office.number

    def lost(self) -> None:
        """An append failed, or its outcome is unknown."""
        self.office.lost()

    def took_office(self) -> None:
        self.office.took_office()
        self._forgets = True

    def round(self) -> Round:
        """One every RENEW_MS."""
        if self.office.state is State.OUTSIDE:
            if self.has_grants() and self._now_ms() < self.office.granted_until_ms:
                return  # its row stays until nodes without control have stopped answering by it
            if not (yield from self._register()):
                return
        elif not (yield from self._renew()):
            return
        if self._admission is not None:
            yield from self._admit(self._admission)
        asked_ms = self._now_ms()
        try:
            view: View = yield Poll()
        except Failed:
            self.office.poll_failed()
            self.members.poll_failed()
            return
        self._look_at(view, asked_ms)
        if self.office.step(may_claim=self._may_claim(view)) is Step.CLAIM:
            yield from self._claim()
        elif self.office.state in (State.CLAIMING, State.LEADING):
            yield from self._tend(asked_ms)
        if self._forgets and self.office.number is not None:
            try:
                yield Forget(self.office.number)
                self._forgets = False
            except Failed:
                return

    def _register(self) -> Generator[Ask, Any, bool]:
        self._admission, sent_ms = None, self._now_ms()
        try:
            number: int = yield Register(self.office.number)
        except Failed:
            return False
        self.office.registered(number, sent_ms)
        return True

    def _renew(self) -> Generator[Ask, Any, bool]:
        """False when the row is gone or fenced. A failed question changes nothing: the lease will end."""
        number, sent_ms = self.office.number, self._now_ms()
        assert number is not None
        try:
            is_there: bool = yield Renew(number)
        except Failed:
            return True
        if self.office.state is State.OUTSIDE or self.office.number != number:
            return True  # it lost its place meanwhile
        if is_there:
            self.office.renewed(sent_ms)
        else:
            self.office.lost()
        return is_there

    def _admit(self, leader: int) -> Generator[Ask, Any, None]:
        number, self._admission = self.office.number, None
        assert number is not None
        if self.office.state is not State.JOINING:
            return
        try:
            is_admitted: bool = yield Admit(number, leader)
        except Failed:
            self.office.lost()  # its row may say so: it begins again with another one
            return
        if is_admitted and self.office.number == number:
            self.office.admitted()
            self._forgets = True

    def _look_at(self, view: View, asked_ms: float) -> None:
        now_ms = self._now_ms()
        self.view = view
        self.office.polled(view.holder, asked_ms, now_ms)
        others = {number: row for number, row in view.rows.items() if number != self.office.number}
        self.members.seen(others, asked_ms, now_ms)

    def _may_claim(self, view: View) -> bool:
        """The process that is wanted goes first, for a while."""
        if view.wanted in (None, self.office.number) or view.wanted not in view.rows:
            self._gives_way_since_ms = None
            return True
        if self._gives_way_since_ms is None:
            self._gives_way_since_ms = self._now_ms()
        return self._now_ms() - self._gives_way_since_ms > GIVE_WAY_MS

    def _claim(self) -> Generator[Ask, Any, None]:
        number, holder = self.office.number, self.view.holder
        assert number is not None
        self.members = Members(self._lease_ms)
        try:
            has_it: bool = yield Claim(number, holder)
        except Failed:
            self.office.claim_failed()
            return
        if not has_it:
            self.office.claim_failed()
        elif self.office.number == number and self.office.state is not State.OUTSIDE:
            self.office.claimed()

    def _tend(self, asked_ms: float) -> Generator[Ask, Any, None]:
        """Fence members that a write waits for in vain, and delete rows whose lease is over."""
        members, leader = self.members, self.office.number
        assert leader is not None
        late = tuple(members.to_fence(self.wanted, self._now_ms()))
        try:
            if late:
                yield Fence(leader, late)
                for number in late:
                    members.fenced(number)
            silent = {n: self.view.rows[n] for n in members.to_delete(asked_ms) if n in self.view.rows}
            if silent:
                gone: list[int] = yield Delete(leader, silent)
                members.deleted(gone)
        except Failed:
            return
