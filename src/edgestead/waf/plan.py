"""What one policy leaves of the rules, and which of them a request needs at all.

Owns  the tests that say without running a rule that it cannot match.
Asks  `constants` for the rules left.
Tells `run` the places to run, in order.
Not   the scan (`scan`), which names candidates among the rules it can gate.

A rule runs when one of these holds, each cheaper than running it:
- it is gated, and the scan met one of its patterns, or its link may match the joined texts;
- it only depends on variables of rules, and one of those has changed: unchanged, it was found to do nothing;
- its counts are right, and a value of each single target is not known to fail the test;
- none of that can be said of it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from .compile import PHASES, CompiledRule, Link, RuleSet
from .constants import Constants, Uses, acts, reads, writes
from .gates import HEAD, Candidates, Gate, Places, Soft, Source, soft_gate, takes_line_ends
from .limits import Meter
from .operators import number
from .run import Outcomes, Run
from .suspects import any_holds
from .targets import STATE_VARIABLES, Target

SEEN_VALUES_MAX = 4_096
SEEN_VALUE_BYTES_MAX = 512
NOTED_MAX = 64  # values of one request and group that are noted
LEARNED_MAX = 4  # values of one request and group that are remembered: each costs a look of its own
GateOf = Callable[[CompiledRule], Gate | None]
Quick = Callable[[Run], bool]
ValuesOf = Callable[[Run], list[bytes]]
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ge": int.__ge__,
    "gt": int.__gt__,
    "le": int.__le__,
    "lt": int.__lt__,
}
# Variables with any number of values whoever the client: asked of each rule anew.
_MANY = frozenset(
    """ARGS ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES FILES FILES_NAMES FILES_SIZES
    FILES_TMPNAMES FILES_TMP_CONTENT MULTIPART_PART_HEADERS REQUEST_COOKIES REQUEST_COOKIES_NAMES
    REQUEST_HEADERS REQUEST_HEADERS_NAMES RESPONSE_HEADERS RESPONSE_HEADERS_NAMES XML REQUEST_BODY
    RESPONSE_BODY""".split()
)

_COMING_AGAIN = frozenset("REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_METHOD REQUEST_PROTOCOL".split())


class PhasePlan:
    """The rules of one phase by place."""

    def __init__(self, rules: list[CompiledRule], markers: dict[str, int], gate_of: GateOf) -> None:
        self.rules = {rule.place: rule for rule in rules}
        self.markers = markers
        self.gated: dict[int, Quick | None] = {}
        self.always: list[int] = []
        self.quick: list[tuple[int, Quick]] = []
        self.soft: list[Soft] = []
        self.state: list[tuple[int, Uses]] = []
        self.memories: dict[int, Outcomes] = {}
        self._state_places: list[int] = []
        self._gate_of = gate_of

    def sort(self, tx: dict[bytes, bytes], rule_set: RuleSet) -> None:
        """Choose the test of each rule."""
        for place, rule in self.rules.items():
            tests = [quick for link in rule.links if (quick := _quick(link)) is not None]
            if self._gate_of(rule) is not None:
                self.gated[place] = _all(tests) if tests else None
            elif (uses := _rests(rule, tx, rule_set)) is not None:
                self.state.append((place, uses))
            elif tests:
                self.quick.append((place, _all(tests)))
            elif (soft := soft_gate(rule)) is not None:
                self.gated[place] = None
                self.soft.append(soft)
            else:
                self.always.append(place)
        self._state_places = [place for place, _ in self.state]

    def active(self, run: Run, candidates: set[int]) -> list[int]:
        """The places to run, in order; those of rules at rest are not among them (`woken`)."""
        places = [place for place, quick in self.quick if quick(run)]
        places += self.always
        for place in self.gated.keys() & candidates:
            test = self.gated[place]
            if test is None or test(run):
                places.append(place)
        places.sort()
        return places

    def woken(self, run: Run, start: int, end: int) -> Iterator[int]:
        """Places after `start`, before `end`, of rules at rest whose variables have changed."""
        if not run.dirty:
            return
        first = bisect_left(self._state_places, start + 1)
        for place, uses in self.state[first : bisect_left(self._state_places, end)]:
            if uses.touches(run.dirty):
                yield place


class Memory:
    """Candidates of values that came more than once, as far as the value alone decides."""

    __slots__ = ("_seen", "known")

    def __init__(self) -> None:
        self.known: dict[bytes, Candidates] = {}
        self._seen: set[bytes] = set()

    def repeated(self, values: Iterable[bytes]) -> list[bytes]:
        """A few of those met before, which are to be remembered; the others are noted."""
        seen = self._seen
        if len(seen) >= SEEN_VALUES_MAX:
            seen.clear()
        again = []
        for value in islice(values, NOTED_MAX):
            if value in seen:
                again.append(value)
            elif len(value) <= SEEN_VALUE_BYTES_MAX:
                seen.add(value)
        return again[:LEARNED_MAX]

    def remember(self, value: bytes, candidates: Candidates) -> None:
        if len(self.known) >= SEEN_VALUES_MAX:
            self.known.clear()
        self.known[value] = candidates


class Keyed(NamedTuple):
    """A link that is asked of the headers it names, each by itself."""

    rule: tuple[int, int]
    link: Link
    values: tuple[ValuesOf, ...]


class Scanned:
    """What is scanned of a group of values, and under which chains.

    `rules` are all that look at the group. `soft` links are asked of all values, `keyed` ones only of the
    headers they name. `of_line_ends` are links whose patterns may take the ends between values for their own,
    by rule. `variables` are what rules look at of the group, `by_phase` those of each phase.
    """

    __slots__ = (
        "_by_source",
        "_looking",
        "by_phase",
        "chains",
        "group",
        "keyed",
        "memory",
        "of_line_ends",
        "rules",
        "soft",
        "variables",
    )

    def __init__(self, group: str) -> None:
        self.group = group
        self.soft: list[Soft] = []
        self.keyed: list[Keyed] = []
        self.by_phase: dict[int, set[str]] = {}
        self.of_line_ends: dict[tuple[int, int], Link] = {}
        self.memory = Memory()
        self._by_source: dict[Source, set[tuple[int, int]]] = {}
        self._looking: dict[Source, Places] = {}
        self.rules: set[tuple[int, int]] = set()
        self.variables: tuple[str, ...] = ()
        self.chains: tuple[int, ...] = ()

    def add(self, gate: Gate | Soft, sources: tuple[Source, ...]) -> None:
        rule = gate.phase, gate.place
        names = dict.fromkeys(name for name, _ in sources)
        self.by_phase.setdefault(gate.phase, set()).update(names)
        for source in sources:
            self._by_source.setdefault(source, set()).add(rule)
        if isinstance(gate, Soft) and all(key for _, key in sources):
            targets = [target for target in gate.link.targets.included if target.variable in names]
            self.keyed.append(Keyed(rule, gate.link, tuple(map(_values, targets))))
            return
        self.rules.add(rule)
        self.variables = tuple(dict.fromkeys((*self.variables, *names)))
        if isinstance(gate, Soft):
            self.soft.append(gate)
            return
        self.chains = tuple(dict.fromkeys((*self.chains, *gate.link.stages)))
        if takes_line_ends(gate.link):
            self.of_line_ends[rule] = gate.link

    def looking_at(self, variable: str, key: bytes) -> Places:
        """The rules that look there; a key counts among headers alone."""
        source = variable, key.lower() if self.group == HEAD else b""
        known = self._looking.get(source)
        if known is None:
            if len(self._looking) >= SEEN_VALUES_MAX:
                self._looking.clear()
            both = {source, (variable, b"")}
            known = frozenset(rule for each in both for rule in self._by_source.get(each, ()))
            self._looking[source] = known
        return known


class Plan:
    """All phases for one choice of rules; `scanned` by group of values."""

    def __init__(
        self, rule_set: RuleSet, chosen: Iterable[CompiledRule], tx: dict[bytes, bytes], gate_of: GateOf
    ) -> None:
        constants = Constants(rule_set, chosen, tx)
        self.tx = constants.tx
        self.phases: dict[int, PhasePlan] = {}
        self.scanned: dict[str, Scanned] = {}
        for phase in PHASES:
            plan = self.phases[phase] = PhasePlan(constants.left[phase], rule_set.markers[phase], gate_of)
            plan.sort(self.tx, rule_set)
            plan.memories = {
                place: Outcomes(heard=constants.heard(rule))
                for place, rule in plan.rules.items()
                if _remembers(rule, constants)
            }
            for gate in filter(None, map(gate_of, plan.rules.values())):
                for group, sources in gate.sources.items():
                    self._of_group(group).add(gate, sources)
            for soft in plan.soft:
                for group, sources in soft.sources.items():
                    self._of_group(group).add(soft, sources)

    def _of_group(self, group: str) -> Scanned:
        return self.scanned.setdefault(group, Scanned(group))


def _remembers(rule: CompiledRule, constants: Constants) -> bool:
    """Whether the outcome follows from a few values that come again with other requests."""
    names = {
        target.variable
        for link in rule.links
        for target in link.targets.included
        if target.variable not in STATE_VARIABLES
    }
    return bool(names) and names <= _COMING_AGAIN and constants.alone(rule)


def _rests(rule: CompiledRule, tx: dict[bytes, bytes], rule_set: RuleSet) -> Uses | None:
    """What a rule depends on that does nothing while its variables are as at the start; else None."""
    uses = Uses()
    for link in rule.links:
        wanted = reads(link)
        if wanted.others:
            return None
        uses.add(wanted)
    trial = Run(rule_set.chains, tx, {}, Meter())
    trial.rule = rule
    held = True
    for link in rule.links:
        if not trial.holds(link):
            held = False
            break
        uses.add(writes(link))  # set to what they were: needed again once something else has set them
    if trial.dirty or (held and (acts(rule) or rule.rule.skip_after or rule.rule.skip)):
        return None
    return uses


def _all(tests: list[Quick]) -> Quick:
    if len(tests) == 1:
        return tests[0]
    return lambda run: all(test(run) for test in tests)


def _quick(link: Link) -> Quick | None:
    """A test that is False only when the link cannot match; None when there is no cheap one."""
    included = link.targets.included
    if not included or any(target.variable in STATE_VARIABLES for target in included):
        return None
    if all(target.count for target in included):
        return _counts(link)
    if any(target.count or not _single(target) for target in included) or link.clean is None:
        return None
    values = [_values(target) for target in included]
    clean = link.clean

    def quick(run: Run) -> bool:
        for each in values:
            found = each(run)
            if not clean.issuperset(found) and any_holds(link, found, run.meter):
                return True
        return False

    return quick


def _single(target: Target) -> bool:
    """Whether there is one value, or few under one name that is not an argument's."""
    if target.variable == "REQUEST_HEADERS" and target.key:
        return True
    return target.variable not in _MANY and target.pattern is None and not target.key


def _values(target: Target) -> ValuesOf:
    if target.variable == "REQUEST_HEADERS":
        key = target.key
        return lambda run: run.headers.get(key, [])
    variable = target.variable
    return lambda run: [value for _, value in run.values.get(variable, ())]


def _counts(link: Link) -> Quick | None:
    compare, argument = _COMPARE.get(link.operator), link.argument.constant
    if compare is None or argument is None or link.steps or len(link.targets.included) != 1:
        return None
    target, wanted, negated = link.targets.included[0], number(argument), link.negated
    holds = compare
    if target.variable == "REQUEST_HEADERS" and target.key:
        key = target.key
        return lambda run: holds(len(run.headers.get(key, ())), wanted) != negated
    if target.key or target.pattern is not None:
        return lambda run: holds(int(target.select(run)[0].value), wanted) != negated
    variable = target.variable
    return lambda run: holds(len(run.values.get(variable, ())), wanted) != negated
