"""What of a rule set is the same for every request: found out once, by running it.

Owns  which rules only depend on constants, which variables are constant where a rule reads them.
Not   requests.

The rules are walked in the order in which they run. A rule that only reads TX variables known at its place,
and does nothing but set others and skip, is run here and left out: the defaults, the switches of application
packages with everything that they skip. Of the rest, conditions that are known to hold are left out, and a
rule with one that is known not to hold is left out whole.
"""

from collections.abc import Generator, Iterable, Iterator
from copy import copy

from edgestead.waf.limits import Meter
from edgestead.waf.load.compile import PHASES, CompiledRule, Link, RuleSet, Setter
from edgestead.waf.load.macros import Macro, Name
from edgestead.waf.run.interpreter import Run, settled, slot
from edgestead.waf.terms.targets import STATE_VARIABLES, Target

_KEYED = frozenset(("TX", "IP", "GLOBAL", "RESOURCE", "SESSION", "USER"))  # what setvar can change
CAPTURES = frozenset(b"%d" % digit for digit in range(10))


class Uses:
    """Variables of rules by slot, and what chooses more of them: beginnings of slots, patterns.

    `others`: also something that is not constant, such as the request.
    """

    __slots__ = ("keys", "others", "patterns", "prefixes")

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.prefixes: set[bytes] = set()
        self.patterns: set[Target] = set()  # of TX
        self.others = False

    def touches(self, keys: Iterable[bytes]) -> bool:
        """Whether one of the keys is among them."""
        if not self.keys.isdisjoint(keys):
            return True
        if not (self.prefixes or self.patterns):
            return False
        prefixes, patterns = tuple(self.prefixes), self.patterns
        return any(key.startswith(prefixes) or any(t.chooses(key) for t in patterns) for key in keys)

    def overlaps(self, other: "Uses") -> bool:
        """Whether both may mean the same variable."""
        if self.touches(other.keys) or other.touches(self.keys):
            return True
        # two open sets may always meet, except by beginnings that differ
        if (self.patterns and (other.patterns or other.prefixes)) or (other.patterns and self.prefixes):
            return True
        return any(a.startswith(b) or b.startswith(a) for a in self.prefixes for b in other.prefixes)

    def add(self, other: "Uses") -> None:
        self.keys |= other.keys
        self.prefixes |= other.prefixes
        self.patterns |= other.patterns


def reads(link: Link) -> Uses:
    """What a link's outcome and effects depend on."""
    uses = Uses()
    for target in (*link.targets.included, *link.targets.excluded):
        if target.variable not in _KEYED:
            # matched variables are the chain's own business: constant as far as the chain is
            uses.others |= target.variable not in STATE_VARIABLES or target.variable == "REQBODY_PROCESSOR"
        elif target.word and target.at_start and target.variable == "TX":
            uses.prefixes.add(target.word)
        elif target.pattern is not None and target.variable == "TX":
            uses.patterns.add(target)
        elif not target.key:
            uses.prefixes.add(slot(target.variable, b""))
        else:
            uses.keys.add(slot(target.variable, target.key))
    for macro in _macros(link):
        for variable, key in macro.names:
            if variable in _KEYED:
                uses.keys.add(slot(variable, key))
            else:
                uses.others |= variable not in STATE_VARIABLES or variable == "REQBODY_PROCESSOR"
    return uses


def writes(link: Link) -> Uses:
    """Which variables it may set."""
    uses = Uses()
    if link.capture:
        uses.keys |= CAPTURES
    for setter in link.setters:
        if setter.key.constant is not None:
            uses.keys.add(slot(setter.collection, setter.key.constant.lower()))
        else:
            uses.prefixes.add(slot(setter.collection, setter.key.prefix.lower()))
    return uses


def _macros(link: Link) -> Iterable[Macro]:
    yield link.argument
    for setter in link.setters:
        yield setter.key
        yield setter.value


def from_others(rule: CompiledRule) -> Uses:
    """What a rule reads that it has not set itself: a link may use what the links before it always set."""
    uses, own = Uses(), Uses()
    for link in rule.links:
        own.keys |= _captured(link)
        wanted = reads(link)
        wanted.keys -= own.keys
        uses.add(wanted)
        own.keys |= {
            slot(s.collection, s.key.constant.lower()) for s in link.setters if s.key.constant and s.op == "="
        }
    return uses


def _captured(link: Link) -> set[bytes]:
    """Captures that every match of a link sets."""
    if not link.capture or link.negated:
        return set()
    return {b"%d" % group for group in (0, *(link.pattern.sure_groups if link.pattern else ()))}


def _reads_matched(link: Link) -> bool:
    targets = any(target.variable.startswith("MATCHED") for target in link.targets.included)
    return targets or any(name.startswith("MATCHED") for macro in _macros(link) for name, _ in macro.names)


def acts(rule: CompiledRule) -> bool:
    """Whether a match does more than set variables and skip."""
    controls = any(not control.option.startswith("audit") for link in rule.links for control in link.controls)
    return rule.logged or controls or rule.rule.disruptive == "allow"


class Constants:
    """The rules left for one choice of rules, once `find` has ended. `tx` is where every request begins."""

    def __init__(self, rule_set: RuleSet, tx: dict[bytes, bytes]) -> None:
        self._rule_set = rule_set
        self._run = Run(rule_set.chains, tx, {}, Meter())
        self._unknown = Uses()  # may have been set by a rule that is left
        self._read = Uses()  # by a rule that is left: must not be set for good behind it
        self.left: dict[int, list[CompiledRule]] = {phase: [] for phase in PHASES}
        self.tx = self._run.tx

    def find(self, chosen: Iterable[CompiledRule]) -> Iterator[None]:
        """Walk the chosen rules, one in each step."""
        kept = {id(rule) for rule in chosen}
        for phase in PHASES:
            yield from self._phase([rule for rule in self._rule_set.phases[phase] if id(rule) in kept], phase)
        while (yield from self._drop_idle()):
            pass

    def _drop_idle(self) -> Generator[None, None, bool]:
        """Leave out rules that only set what no other rule reads; whether there were any."""
        wanted: dict[int, Uses] = {}
        for rule in (rule for rules in self.left.values() for rule in rules):
            wanted[id(rule)] = from_others(rule)
            yield
        dropped = False
        for phase, rules in self.left.items():
            busy = []
            for rule in rules:
                if not self._idle(rule, wanted):
                    busy.append(rule)
                yield
            dropped |= len(busy) < len(rules)
            self.left[phase] = busy
        return dropped

    def _idle(self, rule: CompiledRule, wanted: dict[int, Uses]) -> bool:
        if acts(rule) or rule.rule.skip_after or rule.rule.skip:
            return False
        effects = Uses()
        for link in rule.links:
            effects.add(writes(link))
        return not any(effects.overlaps(uses) for other, uses in wanted.items() if other != id(rule))

    def alone(self, rule: CompiledRule) -> bool:
        """Whether no other rule that is left sets what this one reads."""
        uses = from_others(rule)
        others = (other for rules in self.left.values() for other in rules if other is not rule)
        return not any(uses.overlaps(writes(link)) for other in others for link in other.links)

    def heard(self, rule: CompiledRule) -> bool:
        """Whether another rule that is left reads what this one sets before its last link holds, too."""
        others = [other for rules in self.left.values() for other in rules if other is not rule]
        return any(writes(link).overlaps(from_others(other)) for other in others for link in rule.links[:-1])

    def capturing(self) -> set[tuple[int, int]]:
        """The remaining rules whose captures are read, often only by the rule itself."""
        rules = [rule for rules in self.left.values() for rule in rules]
        if not any(from_others(rule).touches(CAPTURES) for rule in rules):
            rules = [rule for rule in rules if any(reads(link).touches(CAPTURES) for link in rule.links)]
        return {(rule.phase, rule.place) for rule in rules}

    def _phase(self, rules: list[CompiledRule], phase: int) -> Iterator[None]:
        resume_at = unsure_until = -1  # a rule that is left may skip to there
        for rule in rules:
            yield
            if rule.place < resume_at:
                continue
            settled = self._settle(rule)
            if settled is None:
                continue
            if settled is rule and rule.place >= unsure_until and self._folds(rule):
                resume_at = max(resume_at, self._end_of_skip(rule))
                continue
            self._keep(settled, phase)
            unsure_until = max(unsure_until, self._end_of_skip(rule))

    def _end_of_skip(self, rule: CompiledRule) -> int:
        if rule.rule.skip_after:
            return self._rule_set.markers[rule.phase][rule.rule.skip_after]
        return rule.place + rule.rule.skip + 1 if rule.rule.skip else -1

    def _settle(self, rule: CompiledRule) -> CompiledRule | None:
        """The rule itself when it matches every request, None when it matches none, else what is left."""
        trial = Run(self._rule_set.chains, self._run.tx, {}, Meter())
        trial.rule = rule
        unsure = Uses()  # what links with an open outcome set
        open_links: list[Link] = []
        for link in rule.links:
            uses = reads(link)
            open_ = (
                not self._known(uses) or uses.overlaps(unsure) or bool(open_links and _reads_matched(link))
            )
            if open_:
                open_links.append(link)
                unsure.add(writes(link))
            elif not settled(trial.holds(link)):
                before = rule.links[: rule.links.index(link)]
                return self._bound(rule, rule.links) if any(earlier.setters for earlier in before) else None
        if not open_links:
            return rule
        needed = any(_reads_matched(link) for link in rule.links)
        left = [a for a in rule.links if a in open_links or needed or a.setters or a.capture or a.controls]
        return self._bound(rule, tuple(left))

    def _known(self, uses: Uses) -> bool:
        return not uses.others and not uses.overlaps(self._unknown)

    def _folds(self, rule: CompiledRule) -> bool:
        """Run a rule that matches every request for good; False when it has to stay."""
        effects = Uses()
        for link in rule.links:
            effects.add(writes(link))
        if acts(rule) or effects.overlaps(self._read):
            return False
        settled(self._run.matches(rule))
        return True

    def _bound(self, rule: CompiledRule, links: tuple[Link, ...]) -> CompiledRule:
        """A copy with those links, macros of constants filled in."""
        bound = copy(rule)
        own = Uses()
        for link in links:
            own.add(writes(link))
        bound.links = tuple(self._filled(link, own) for link in links)
        return bound

    def _filled(self, link: Link, own: Uses) -> Link:
        """The link with macros of constants filled in, but none that its own rule sets."""

        def known(name: Name) -> bytes | None:
            return self._value(name, own)

        setters = tuple(
            Setter(each.collection, each.key.filled(known), each.op, each.value.filled(known))
            for each in link.setters
        )
        argument = link.argument.filled(known)
        filled = copy(link)
        filled.setters = setters
        if argument is not link.argument and argument.constant is not None:
            filled.bind(argument)
        return filled

    def _value(self, name: Name, own: Uses) -> bytes | None:
        uses = Uses()
        if name[0] not in _KEYED:
            return None
        uses.keys.add(slot(*name))
        known = self._known(uses) and not uses.overlaps(own)
        return self._run.tx.get(slot(*name), b"") if known else None

    def _keep(self, rule: CompiledRule, phase: int) -> None:
        self.left[phase].append(rule)
        for link in rule.links:
            self._read.add(reads(link))
            self._unknown.add(writes(link))
