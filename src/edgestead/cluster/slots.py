"""One objects process of a cluster: which slots it has, and what it asks the cluster's database for.

Owns  the states of a slot at this process; the order of questions, and what each answer changes.
Not   carrying questions out (`postgres.slots`); which worker is wanted (`placement`); running calls; time.

                claim, or given here                wanted elsewhere
    elsewhere ────────────────────────▶ owned ──────────────────────▶ giving ──nothing runs──▶ given
        ▲                                ▲ ▲                            │                        │
        │                                │ └─ HOLD_MS later, still busy ┘                        │
        │                                └──────── the other worker is gone ─────────────────────┤
        └───── the database says that another has it; or this process's row is gone ─────────────┘

    state       calls to its objects                   asked of the database
    elsewhere   go to whom the map names               claim, when nobody has it and this process is wanted
    owned       run; replies leave while a lease holds nothing
    giving      wait; those that run go on             nothing
    given       wait                                   give, again until its outcome is known

A worker has one row, its incarnation, and renews it; `cluster.lease` says what follows. A slot whose
incarnation is gone is free. Whoever saw that a row was not renewed for a whole lease deletes it, and claims
what it is wanted for in the same transaction. A process whose own row is gone ends; the next one of its place
gets another number, and what is left of its slots. `renewal` and `round` run beside one another, so that no
other question makes a lease end.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from edgestead.cluster.lease import LEASE_MS, Lease, Observed
from edgestead.cluster.placement import NO_REGIONS, REGION_SLOTS, SLOTS, Worker, region_of, wanted
from edgestead.cluster.seat import Failed

HOLD_MS: Final = 200  # that calls wait for others of their slot to end, until it is tried again later
AGAIN_MS: Final = 2_000  # after that
GIVE_MS: Final = 1_000 / 32  # between two slots that one worker gives away
GIVING_MAX: Final = 8  # at a time
LOOKS_MAX: Final = 3  # of one round: another worker may be faster


class State(Enum):
    ELSEWHERE = "elsewhere"
    OWNED = "owned"
    GIVING = "giving"
    GIVEN = "given"


class Held(NamedTuple):
    """A slot in the map: who has it, and since which version of the map."""

    holder: int | None
    version: int


class Giving(NamedTuple):
    """To whom, and the version since when the giver has it. What was asked before, and arrives late, does not
    move a slot that has come back since."""

    to: int
    version: int


class Register(NamedTuple):
    """Insert a row for this place; answered with its number. The slots of rows that the place had before are
    its own now, and these rows are deleted: their processes are dead."""


class Renew(NamedTuple):
    """Answered with whether the row is there."""

    number: int


class Poll(NamedTuple):
    """Answered with a View: the slots are those that changed after a version of the map."""

    after: int


class Claim(NamedTuple):
    """Delete the rows of `silent` unless they were renewed since, and have slots whose holder is this one
    still, and is gone; if the own row is there. Answered with the slots that are had, as they are now."""

    number: int
    slots: Mapping[int, int | None]
    silent: Mapping[int, int]  # number → renewed


class Give(NamedTuple):
    """Let other workers have slots, which are as they were, where both rows are there. Answered with those
    that are given, as they are now."""

    number: int
    slots: Mapping[int, Giving]


class View(NamedTuple):
    """At one moment: all workers, the slots whose holder changed, with the map's version, and the names of
    regions that have slots of their own."""

    workers: Mapping[int, Worker]
    slots: Mapping[int, Held]
    version: int
    regions: Mapping[int, str] = NO_REGIONS


Ask = Register | Renew | Poll | Claim | Give
Round = Generator[Ask, Any, None]


@dataclass(slots=True)
class _Move:
    to: int
    since_ms: float
    was_asked: bool = False


class Slots:
    """`now_ms` is a clock that goes on while the machine sleeps. `is_quiet` says whether nothing of a slot
    runs here and nothing is undecided. `left` is told of slots that others may have had since: nothing of
    them may stay in memory. `came` is told of slots that this process has now, `kept` of those that were
    about to be given away and stay.

    `renewal` may run on a thread of its own, everything else on one other.
    """

    def __init__(
        self,
        now_ms: Callable[[], float],
        *,
        is_quiet: Callable[[int], bool],
        left: Callable[[list[int]], None] = lambda _: None,
        came: Callable[[list[int]], None] = lambda _: None,
        kept: Callable[[list[int]], None] = lambda _: None,
        lease_ms: float = LEASE_MS,
        slots: int = SLOTS,
    ) -> None:
        self._now_ms, self._is_quiet, self._lease_ms = now_ms, is_quiet, lease_ms
        self._left, self._came, self._kept = left, came, kept
        self._lease = Lease(lease_ms)
        self._is_lost = False
        self.number: int | None = None
        self.version = -1
        self.workers: Mapping[int, Worker] = {}
        self.regions: Mapping[int, str] = NO_REGIONS
        self._everywhere = slots
        self._held = [Held(None, -1)] * slots  # and more with regions
        self._observed: dict[int, Observed] = {}
        self._giving: dict[int, _Move] = {}
        self._not_before: dict[int, float] = {}  # of slots that were busy
        self._next_give_ms = float("-inf")
        self._settled: object = None  # the map and the workers for which there is nothing to do

    # What others ask.

    def may_answer(self) -> bool:
        """Asked when a reply or an outgoing call leaves."""
        return not self._is_lost and self._lease.holds(self._now_ms())

    def state(self, slot: int) -> State:
        if self._is_lost or self.number is None or self._holder(slot) != self.number:
            return State.ELSEWHERE
        giving = self._giving.get(slot)
        if giving is None:
            return State.OWNED
        return State.GIVEN if giving.was_asked else State.GIVING

    def owns(self, slot: int) -> bool:
        """Whether a call to one of its objects may begin here."""
        return self.state(slot) is State.OWNED

    def holder(self, slot: int) -> Worker | None:
        """Who has it, as far as is known; None while nobody has."""
        number = self._holder(slot)
        return None if number is None else self.workers.get(number)

    def version_of(self, slot: int) -> int:
        """The first version of the map that has what is known of a slot, which may have been given since."""
        return max(self.version, self._held[slot].version if slot < len(self._held) else -1)

    def _holder(self, slot: int) -> int | None:
        return self._held[slot].holder if slot < len(self._held) else None

    def away(self, slot: int) -> str | None:
        """The name of the slot's region when no worker of it is known."""
        name = self.regions.get(region_of(slot))
        is_there = name is None or any(worker.region == name for worker in self.workers.values())
        return None if is_there else name

    @property
    def held(self) -> list[int]:
        """The slots that this process has."""
        return [slot for slot in range(len(self._held)) if self.state(slot) is not State.ELSEWHERE]

    @property
    def is_giving(self) -> bool:
        return bool(self._giving)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def lost(self) -> None:
        """The row is gone, or the outcome of an append is unknown: this process answers nothing more."""
        held = self.held
        self._is_lost = True
        self._lease.end()
        self._giving.clear()
        self._left(held)

    # Rounds.

    def register(self) -> Generator[Ask, Any, bool]:
        """Before anything else; again when it is False."""
        sent_ms = self._now_ms()
        try:
            self.number = yield Register()
        except Failed:
            return False
        self._lease.renewed(sent_ms)
        return True

    def renewal(self) -> Generator[Ask, Any, bool]:
        """One every RENEW_MS. False: the row is gone, and `lost` has to be called."""
        assert self.number is not None
        sent_ms = self._now_ms()
        try:
            is_there: bool = yield Renew(self.number)
        except Failed:
            return True
        if is_there and not self._is_lost:
            self._lease.renewed(sent_ms)
        return is_there

    def round(self) -> Round:
        """One every RENEW_MS, or sooner when somebody knows a newer map."""
        for _ in range(LOOKS_MAX):
            asked_ms = self._now_ms()
            try:
                view: View = yield Poll(self.version)
            except Failed:
                for one in self._observed.values():
                    one.failed()
                return
            if self._is_lost:
                return
            self._look_at(view, asked_ms)
            silent = {n: w.renewed for n, w in view.workers.items() if self._is_over(n, asked_ms)}
            live = [worker for n, worker in view.workers.items() if n not in silent]
            seen = (view.version, [(worker.number, worker.is_draining) for worker in live])
            if seen == self._settled and not silent:
                return
            targets = wanted(live, self._everywhere, self.regions)
            if self.number is None or self.number not in view.workers or targets is None:
                return  # a renewal will say that the row is gone
            claims = self._claims(targets, silent)
            if silent or claims:
                try:
                    taken: dict[int, Held] = yield Claim(self.number, claims, silent)
                except Failed:
                    return
                self._note(taken)
                if silent or len(taken) < len(claims):
                    continue
            if not self._begin_giving(targets):
                self._settled = seen
            return

    def give(self) -> Round:
        """Whenever something of a slot that is given away has ended, and before HOLD_MS are over."""
        now_ms = self._now_ms()
        for slot in [s for s, g in self._giving.items() if not g.was_asked]:
            if self._is_quiet(slot):
                self._giving[slot].was_asked = True
            elif now_ms - self._giving[slot].since_ms >= HOLD_MS:
                self._not_before[slot] = now_ms + AGAIN_MS
                self._keep([slot])
        asked = {
            slot: Giving(giving.to, self._held[slot].version)
            for slot, giving in self._giving.items()
            if giving.was_asked
        }
        if not asked or self.number is None:
            return
        try:
            given: dict[int, Held] = yield Give(self.number, asked)
        except Failed:
            return  # what became of it a poll says, or the next answer
        self._note(given)

    # What answers change.

    def _look_at(self, view: View, asked_ms: float) -> None:
        now_ms = self._now_ms()
        self.workers, self.version, self.regions = view.workers, view.version, view.regions
        more = self._everywhere + REGION_SLOTS * max(view.regions, default=0) - len(self._held)
        self._held += [Held(None, -1)] * more
        for number, worker in view.workers.items():
            if number != self.number:
                one = self._observed.setdefault(number, Observed(self._lease_ms))
                one.seen(worker.renewed, asked_ms, now_ms)
        for number in self._observed.keys() - view.workers.keys():
            del self._observed[number]
        self._note(view.slots)
        # Deleting a worker waits for what is being given to it: when it is gone, no such gift lands.
        self._keep([slot for slot, giving in self._giving.items() if giving.to not in view.workers])

    def _is_over(self, number: int, asked_ms: float) -> bool:
        one = self._observed.get(number)
        return one is not None and one.is_over(asked_ms)

    def _claims(self, targets: list[int | None], silent: Mapping[int, int]) -> dict[int, int | None]:
        """The slots without a holder that this process is wanted for."""
        return {
            slot: holder
            for slot, ((holder, _), target) in enumerate(zip(self._held, targets, strict=True))
            if target == self.number and (holder not in self.workers or holder in silent)
        }

    def _note(self, slots: Mapping[int, Held]) -> None:
        """What the map has now. A slot with a newer version was away in between, though it may be back."""
        if self._is_lost:
            return
        left, came = [], []
        for slot, held in slots.items():
            before, self._held[slot] = self._held[slot], held
            if before == held:
                continue
            if before.holder == self.number:
                left.append(slot)
            if held.holder == self.number:
                came.append(slot)
        for slot in left:
            self._giving.pop(slot, None)
        self._left(left)
        self._came(came)

    def _begin_giving(self, targets: list[int | None]) -> bool:
        """Let go some slots that other workers are wanted for; returns whether there are any such."""
        now_ms = self._now_ms()
        misplaced = {
            slot: target
            for slot, ((holder, _), target) in enumerate(zip(self._held, targets, strict=True))
            if holder == self.number and target is not None and target != self.number
        }
        self._next_give_ms = max(self._next_give_ms, now_ms - GIVING_MAX * GIVE_MS)
        for slot, target in misplaced.items():
            if len(self._giving) >= GIVING_MAX or self._next_give_ms > now_ms:
                break
            if slot not in self._giving and self._not_before.get(slot, now_ms) <= now_ms:
                self._giving[slot] = _Move(target, now_ms)
                self._next_give_ms += GIVE_MS
        return bool(misplaced)

    def _keep(self, slots: Iterable[int]) -> None:
        """Give them away no more."""
        kept = [slot for slot in slots if self._giving.pop(slot, None) is not None]
        self._kept(kept)
