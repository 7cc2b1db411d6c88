"""What one policy leaves of the rules, and which of them a request needs at all.

Owns  the tests that say without running a rule that it cannot match.
Not   the scan (`scan`), which names candidates among the rules it can gate.

A rule runs when one of these holds, each cheaper than running it:
- it is gated, and the scan met one of its patterns, or its link may match the joined texts;
- it only depends on variables of rules, and one of those has changed: unchanged, it was found to do nothing;
- all that it does is to keep a body, and there is one;
- its counts are right, and a value of each single target is not known to fail the test;
- none of that can be said of it.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator
from copy import copy
from itertools import islice
from typing import NamedTuple

from edgestead.waf.limits import Meter
from edgestead.waf.load.compile import PHASES, CompiledRule, Link, RuleSet
from edgestead.waf.load.patterns import either
from edgestead.waf.plan.constants import Constants, Uses, acts, reads, writes
from edgestead.waf.plan.gates import (
    ARGUMENT_VARIABLES,
    ARGUMENTS,
    Candidates,
    Gate,
    Places,
    Soft,
    Source,
    says_nothing,
    soft_gate,
    takes_line_ends,
)
from edgestead.waf.run.interpreter import Knowledge, Outcomes, Run, settled
from edgestead.waf.run.suspects import any_holds
from edgestead.waf.terms.operators import number
from edgestead.waf.terms.targets import STATE_VARIABLES, Target

NAME_UNITS = 10  # to look whether a changed variable wakes a rule
SEEN_VALUES_MAX = 4_096  # values whose candidate rules are remembered; all are forgotten at once
SEEN_VALUE_BYTES_MAX = 512  # longer values seldom come again
NOTED_MAX = 64  # values of one request and group that are noted
OFTEN = 3  # times a value came before it gets a look of its own
GateOf = Callable[[CompiledRule], Gate | None]
Quick = Callable[[Run], bool]
LookAt = Callable[[bytes], Candidates]
ValuesOf = Callable[[Run], list[bytes]]
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ge": int.__ge__,
    "gt": int.__gt__,
    "le": int.__le__,
    "lt": int.__lt__,
}
# Variables that may have any number of values for any client: evaluated again for each rule.
_MANY = frozenset(
    """ARGS ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES FILES FILES_NAMES FILES_SIZES
    FILES_TMPNAMES FILES_TMP_CONTENT MULTIPART_PART_HEADERS REQUEST_COOKIES REQUEST_COOKIES_NAMES
    REQUEST_HEADERS REQUEST_HEADERS_NAMES RESPONSE_HEADERS RESPONSE_HEADERS_NAMES XML REQUEST_BODY
    RESPONSE_BODY""".split()
)

_COMING_AGAIN = frozenset("REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_METHOD REQUEST_PROTOCOL".split())


class Rest:
    """What wakes a rule at rest; names of variables come again, so each is looked at once.

    Rules may have thousands of names: they are looked at as sets, which takes a hundredth of the time.
    """

    __slots__ = ("_quiet", "_uses", "_waking")

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._waking: set[bytes] = set()
        self._quiet: set[bytes] = set()

    def ends(self, dirty: set[bytes]) -> bool:
        if not self._waking.isdisjoint(dirty):
            return True
        fresh = dirty - self._quiet
        if not fresh:
            return False
        if self._uses.touches(fresh):
            self._keep(self._waking, {key for key in fresh if self._uses.touches((key,))})
            return True
        self._keep(self._quiet, fresh)
        return False

    @staticmethod
    def _keep(known: set[bytes], keys: set[bytes]) -> None:
        if len(known) + len(keys) > SEEN_VALUES_MAX:
            known.clear()
        known |= keys


class PhasePlan:
    """The rules of one phase by place."""

    def __init__(self, rules: list[CompiledRule], markers: dict[str, int], gate_of: GateOf) -> None:
        self.rules = {rule.place: rule for rule in rules}
        self.markers = markers
        self.gated: dict[int, Quick | None] = {}
        self.always: list[int] = []
        self.for_body: list[int] = []
        self.quick: list[tuple[int, Quick]] = []
        self.soft: list[Soft] = []
        self.state: list[tuple[int, Rest]] = []
        self.memories: dict[int, Outcomes] = {}
        self.capturing: set[int] = set()
        self._state_places: list[int] = []
        self._gate_of = gate_of

    def sort(self, tx: dict[bytes, bytes], rule_set: RuleSet) -> Iterator[None]:
        """Choose the test of each rule, one in each step."""
        for place, rule in self.rules.items():
            yield
            # headers that are seldom there are asked for first
            links = sorted(rule.links, key=_of_every_request)
            tests = [quick for link in links if (quick := _quick(link)) is not None]
            if self._gate_of(rule) is not None:
                self.gated[place] = _all(tests) if tests else None
            elif (uses := _rests(rule, tx, rule_set)) is not None:
                self.state.append((place, Rest(uses)))
            elif tests:
                self.quick.append((place, _all(tests)))
            elif (soft := soft_gate(rule)) is not None:
                self.gated[place] = None
                self.soft.append(soft)
            elif _only_forces_body(rule):
                self.for_body.append(place)
            else:
                self.always.append(place)
        self._state_places = [place for place, _ in self.state]

    def active(self, run: Run, candidates: set[int]) -> list[int]:
        """The places to run, in order; those of rules at rest are not among them (`woken`)."""
        places = [place for place, quick in self.quick if quick(run)]
        places += self.always
        if run.has_body:
            places += self.for_body
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
        after = bisect_left(self._state_places, end)
        run.meter.toil(NAME_UNITS * len(run.dirty) * (after - first))
        for place, rest in self.state[first:after]:
            if rest.ends(run.dirty):
                yield place


class Keyed(NamedTuple):
    """A link that is asked of the headers it names, each by itself."""

    rule: tuple[int, int]
    link: Link
    values: tuple[ValuesOf, ...]


class Asked(NamedTuple):
    """Links that are asked of joined texts; of several, `first` matches where any of them does."""

    first: Link
    each: tuple[Soft, ...]


def _asked(softs: list[Soft]) -> Iterator[Asked]:
    together: dict[tuple[object, ...], list[Soft]] = {}
    for soft in softs:
        link = soft.link
        alone = link.pattern is None or len(link.stages) > 1
        key = (link,) if alone else (link.stages, link.pattern and link.pattern.anchored)
        together.setdefault(key, []).append(soft)
    for each in together.values():
        yield Asked(_any_of([soft.link for soft in each]), tuple(each))


def _any_of(links: list[Link]) -> Link:
    if len(links) == 1:
        return links[0]
    first = copy(links[0])
    first.pattern = either(tuple(link.pattern.wide for link in links if link.pattern is not None))
    return first


class Scanned:
    """What is scanned of a group of values, and under which chains.

    `rules` are all that look at the group, `links` those of them that are searched for. `soft` links are
    asked of all values, as `asked` says; `keyed` ones only of the headers they name. `of_line_ends` are links
    whose patterns may take the ends between values for their own, by rule. `known` are values that came
    before, with all candidates that they can have. `variables` are what rules look at of the group,
    `by_phase` those of each phase.
    """

    __slots__ = (
        "_by_source",
        "_looking",
        "_times",
        "asked",
        "by_phase",
        "chains",
        "group",
        "keyed",
        "known",
        "links",
        "of_line_ends",
        "rules",
        "soft",
        "variables",
    )

    def __init__(self, group: str) -> None:
        self.group = group
        self.soft: list[Soft] = []
        self.asked: list[Asked] = []
        self.keyed: list[Keyed] = []
        self.by_phase: dict[int, set[str]] = {}
        self.of_line_ends: dict[tuple[int, int], Link] = {}
        self.known: dict[bytes, Candidates] = {}
        self._times: dict[bytes, int] = {}
        self._by_source: dict[Source, set[tuple[int, int]]] = {}
        self._looking: dict[Source, Places] = {}
        self.rules: set[tuple[int, int]] = set()
        self.links: set[Link] = set()
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
        self.links.add(gate.link.origin)
        self.variables = tuple(dict.fromkeys((*self.variables, *names)))
        if isinstance(gate, Soft):
            self.soft.append(gate)
            return
        self.chains = tuple(dict.fromkeys((*self.chains, *gate.link.stages)))
        if takes_line_ends(gate.link):
            self.of_line_ends[rule] = gate.link

    def settle(self) -> Iterator[None]:
        """Once all are added: join the soft links, which is to compile their patterns."""
        for asked in _asked(self.soft):
            self.asked.append(asked)
            yield

    def looking_at(self, variable: str, key: bytes) -> Places:
        """The rules that look there; `key` is empty but among headers, where it is in lower case."""
        source = variable, key
        known = self._looking.get(source)
        if known is None:
            if len(self._looking) >= SEEN_VALUES_MAX:
                self._looking.clear()
            both = {source, (variable, b"")}
            known = frozenset(rule for each in both for rule in self._by_source.get(each, ()))
            self._looking[source] = known
        return known

    def learn(self, values: dict[bytes, list[Source]], found: Candidates, look: LookAt) -> None:
        """Remember values that came before: what was found in all of them together is all that each can have.

        That is done where nobody looks for it at the value's place, else it would be run in vain each time;
        one such value that came often is looked at by itself.
        """
        times, looked = self._times, False
        if len(times) >= SEEN_VALUES_MAX:
            times.clear()
        for value in islice(values, NOTED_MAX):
            before = times.get(value, 0)
            if before and not (found and any(found & self.looking_at(*place) for place in values[value])):
                self._remember(value, found)
            elif before >= OFTEN and not looked:
                looked = True
                self._remember(value, look(value))
            elif len(value) <= SEEN_VALUE_BYTES_MAX:
                times[value] = before + 1

    def _remember(self, value: bytes, candidates: Candidates) -> None:
        if len(self.known) >= SEEN_VALUES_MAX:
            self.known.clear()
        self.known[value] = candidates


class Plan:
    """All phases for one choice of rules; `scanned` by group of values."""

    def __init__(self, tx: dict[bytes, bytes]) -> None:
        self.tx = tx
        self.phases: dict[int, PhasePlan] = {}
        self.scanned: dict[str, Scanned] = {ARGUMENTS: (arguments := Scanned(ARGUMENTS))}
        self.knowledge = Knowledge(arguments.links, ARGUMENT_VARIABLES, arguments.known)

    @classmethod
    def making(
        cls, rule_set: RuleSet, chosen: Iterable[CompiledRule], tx: dict[bytes, bytes], gate_of: GateOf
    ) -> Generator[None, None, "Plan"]:
        """The plan, after steps of about a millisecond: it is made while others are served."""
        constants = Constants(rule_set, tx)
        yield from constants.find(chosen)
        gate_of = _telling(gate_of)
        plan = cls(constants.tx)
        capturing = constants.capturing()
        for phase_number in PHASES:
            phase = plan.phases[phase_number] = PhasePlan(
                constants.left[phase_number], rule_set.markers[phase_number], gate_of
            )
            yield from phase.sort(plan.tx, rule_set)
            phase.capturing = {place for of, place in capturing if of == phase_number}
            for place, rule in phase.rules.items():
                if _remembers(rule, constants):
                    phase.memories[place] = Outcomes(heard=constants.heard(rule))
                yield
            gates: list[Gate | Soft] = [gate for gate in map(gate_of, phase.rules.values()) if gate]
            for each in gates + phase.soft:
                plan._add(each)
                yield
        for scanned in plan.scanned.values():
            yield from scanned.settle()
        return plan

    def _add(self, gate: Gate | Soft) -> None:
        for group, sources in gate.sources.items():
            self.scanned.setdefault(group, Scanned(group)).add(gate, sources)


def _telling(gate_of: GateOf) -> GateOf:
    """Only gates that say something."""

    def telling(rule: CompiledRule) -> Gate | None:
        gate = gate_of(rule)
        return None if gate is None or says_nothing(gate.link) else gate

    return telling


def _remembers(rule: CompiledRule, constants: Constants) -> bool:
    """Whether the outcome follows from a few values that come again with other requests."""
    names = {
        target.variable
        for link in rule.links
        for target in link.targets.included
        if target.variable not in STATE_VARIABLES
    }
    return bool(names) and names <= _COMING_AGAIN and constants.alone(rule)


def _only_forces_body(rule: CompiledRule) -> bool:
    """Whether it only says that REQUEST_BODY is to be kept: nothing to say to a request without a body."""
    options = {control.option for link in rule.links for control in link.controls}
    sets = any(link.setters or link.capture for link in rule.links)
    skips = rule.rule.skip_after or rule.rule.skip or rule.rule.disruptive == "allow"
    return options == {"forceRequestBodyVariable"} and not (rule.logged or sets or skips)


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
        if not settled(trial.holds(link)):
            held = False
            break
        uses.add(writes(link))  # set to what they were: needed again once something else has set them
    if trial.dirty or (held and (acts(rule) or rule.rule.skip_after or rule.rule.skip)):
        return None
    return uses


def _all(tests: list[Quick]) -> Quick:
    if len(tests) == 1:
        return tests[0]

    def quick(run: Run) -> bool:
        for test in tests:  # no generator: most end at the first
            if not test(run):
                return False
        return True

    return quick


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
            if found and not clean.issuperset(found) and any_holds(link, found, run.meter):
                return True
        return False

    return quick


def _of_every_request(link: Link) -> bool:
    return any(target.variable != "REQUEST_HEADERS" for target in link.targets.included)


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
