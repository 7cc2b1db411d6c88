"""A parsed program to rules that run: names resolved, patterns compiled, paranoia gates taken out.

Owns  `CompiledRule`, `Link`, `RuleSet`; which rule is of which paranoia level.
Not   running (`run`), what a policy leaves of it (`plan`).

A paranoia gate is a rule that skips to a marker below a level. It says the same for every request, so each
rule behind it gets the gate's level, and the gate is gone.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from edgestead.crs import Catalogue, Marker, Program, Rule, Variable
from edgestead.crs.catalogue import outbound_increment
from edgestead.waf.load.macros import Macro
from edgestead.waf.load.patterns import Pattern
from edgestead.waf.terms import libinjection
from edgestead.waf.terms.operators import ABSENT, Test, make_test
from edgestead.waf.terms.targets import Target, TargetSet
from edgestead.waf.terms.transformations import TRANSFORMATIONS
from edgestead.waf.terms.variants import Chain, Chains

PHASES: Final = (1, 2, 3, 4, 5)
CLEAN_VALUES_MAX = 1_024  # values of one link remembered as not matching
CLEAN_VALUE_BYTES_MAX = 512  # longer values seldom come again, and are not remembered
_GATES = frozenset(("DETECTION_PARANOIA_LEVEL", "EXECUTING_PARANOIA_LEVEL"))
# Operators whose test on joined values fails whenever it fails on each of them.
JOINABLE = frozenset(
    "contains pm pmFromFile strmatch validateByteRange validateUrlEncoding validateUtf8Encoding".split()
)


class Setter:
    """One ``setvar``."""

    __slots__ = ("collection", "key", "op", "value")

    def __init__(self, collection: str, key: Macro, op: str, value: Macro) -> None:
        self.collection, self.key, self.op, self.value = collection, key, op, value


class Control:
    """One ``ctl``. `target` for those that take a target away."""

    __slots__ = ("option", "target", "value")

    def __init__(self, option: str, value: str, target: Target | None) -> None:
        self.option, self.value, self.target = option, value, target


class Link:
    """One condition of a chain, and what it does.

    `stages` are numbers of chains: one, or with multiMatch every beginning of it. `kind` says how many values
    are tested at once: rx, joined, sqli, xss, each, always. `test` is None where the argument has macros.
    `clean` remembers values known not to match, where nothing but the value counts. `origin` is the link that
    this one is a copy of, with macros filled in; else itself.
    """

    __slots__ = (
        "argument",
        "capture",
        "clean",
        "controls",
        "kind",
        "negated",
        "operator",
        "origin",
        "pattern",
        "phrases",
        "rule",
        "setters",
        "stages",
        "steps",
        "targets",
        "test",
    )

    def __init__(self, rule: Rule, targets: TargetSet, chains: Chains) -> None:
        self.rule = rule
        self.origin = self
        self.targets = targets
        self.operator = rule.operator.name
        self.negated = rule.operator.negated
        self.capture = rule.capture
        self.stages = tuple(chains.numbers[chain] for chain in stages_of(rule))
        self.steps = tuple(TRANSFORMATIONS[name] for name in rule.transformations)
        self.argument = Macro(_bytes(rule.operator.argument))
        self.phrases = tuple(_bytes(phrase) for phrase in rule.operator.phrases)
        self.setters = tuple(
            Setter(s.collection, Macro(_bytes(s.key)), s.op, Macro(_bytes(s.value))) for s in rule.set_vars
        )
        self.controls = tuple(
            Control(c.option, c.value, None if c.target is None else Target(c.target)) for c in rule.controls
        )
        self.pattern: Pattern | None = None
        self.test: Test | None = None
        self.clean: set[bytes] | None = None
        self.bind(self.argument)

    def bind(self, argument: Macro) -> None:
        """Settle the operator for an argument; once more when its macros turn out to be constant."""
        self.argument = argument
        self.kind = _kind(self.operator, self.negated, bool(self.rule.variables))
        if argument.constant is None:
            self.kind = "each"
            return
        if self.operator in ("rx", "rxGlobal"):
            self.pattern = Pattern(argument.constant)
        else:
            self.test = make_test(self.operator, argument.constant, self.phrases)
        self.clean = set()

    def test_for(self, argument: bytes) -> Callable[[bytes], Any]:
        """The test of an expanded argument."""
        if self.operator in ("rx", "rxGlobal"):
            return Pattern(argument).search
        return make_test(self.operator, argument, self.phrases)


def _kind(operator: str, negated: bool, looks: bool) -> str:
    if not looks or operator == "unconditionalMatch":
        return "always"
    if negated:
        return "each"
    if operator in ("rx", "rxGlobal"):
        return "rx"
    if operator in JOINABLE:
        return "joined"
    return {"detectSQLi": "sqli", "detectXSS": "xss"}.get(operator, "each")


def stages_of(rule: Rule) -> tuple[Chain, ...]:
    chain = rule.transformations
    return tuple(chain[:count] for count in range(len(chain) + 1)) if rule.multi_match else (chain,)


class CompiledRule:
    """A rule of a phase.

    `place` is its position among the rules and markers of its phase, `bit` its place in policies' masks: -1
    when it does not score. `level` 0 runs at every level. `outbound` is what a rule on answers adds.
    """

    __slots__ = (
        "bit",
        "increment",
        "level",
        "links",
        "logged",
        "outbound",
        "phase",
        "place",
        "rule",
        "score_level",
    )

    def __init__(self, rule: Rule, links: tuple[Link, ...], place: int, level: int) -> None:
        self.rule = rule
        self.links = links
        self.phase = rule.phase
        self.place = place
        self.level = level
        self.logged = rule.log is not False
        self.bit = -1
        self.increment = 0
        self.outbound = outbound_increment(rule)
        self.score_level = 0

    def __repr__(self) -> str:
        return f"CompiledRule({self.rule.id})"


class RuleSet:
    """All rules of a program by phase, in order; markers by phase and name.

    `notes` are sentences for the operator of the process: what of the rules cannot work here.
    Raises: ValueError for an unusable regular expression, with its rule's number.
    """

    def __init__(self, program: Program, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.settings = program.settings
        self.chains = Chains(
            chain for rule in program.rules for link in rule.links for chain in stages_of(link)
        )
        self._sets: dict[tuple[Variable, ...], TargetSet] = {}
        self.phases: dict[int, list[CompiledRule]] = {}
        self.markers: dict[int, dict[str, int]] = {}
        for phase in PHASES:
            self.phases[phase], self.markers[phase] = self._phase(program.items, phase)
        self._number_scores()
        self.notes = tuple(_notes(program))

    @property
    def rules(self) -> Iterable[CompiledRule]:
        return (rule for phase in PHASES for rule in self.phases[phase])

    def _phase(self, items: Iterable[Rule | Marker], phase: int) -> tuple[list[CompiledRule], dict[str, int]]:
        rules: list[CompiledRule] = []
        markers: dict[str, int] = {}
        gates: dict[str, int] = {}  # level by the marker where it ends
        place = 0
        for item in items:
            if isinstance(item, Marker):
                markers[item.name] = place
                gates.pop(item.name, None)
            elif item.phase == phase:
                if level := _gate(item):
                    gates[item.skip_after] = max(level, gates.get(item.skip_after, 0))
                    continue
                rules.append(self._rule(item, place, max(gates.values(), default=0)))
            else:
                continue
            place += 1
        return rules, markers

    def _rule(self, rule: Rule, place: int, level: int) -> CompiledRule:
        try:
            links = tuple(Link(link, self._targets(link.variables), self.chains) for link in rule.links)
        except ValueError as error:
            raise ValueError(f"rule {rule.id}: {error}") from None
        return CompiledRule(rule, links, place, level)

    def _targets(self, variables: tuple[Variable, ...]) -> TargetSet:
        known = self._sets.get(variables)
        if known is None:
            known = self._sets[variables] = TargetSet(len(self._sets), variables)
        return known

    def _number_scores(self) -> None:
        entries = {entry.crs_id: entry for entry in self.catalogue.entries[:-1]}
        self.bits: dict[int, CompiledRule] = {}
        for rule in self.rules:
            entry = entries.get(rule.rule.id)
            if entry is not None:
                rule.bit = len(self.bits)
                rule.increment = entry.increment or 0
                rule.score_level = entry.paranoia_level or 1
                self.bits[rule.bit] = rule


def _gate(rule: Rule) -> int:
    """The level below which the rule skips, 0 when it is no paranoia gate."""
    if rule.operator.name != "lt" or rule.operator.negated or not rule.skip_after or rule.chain:
        return 0
    if len(rule.variables) != 1 or rule.variables[0].name != "TX":
        return 0
    argument = rule.operator.argument
    if rule.variables[0].selector.upper() not in _GATES or not argument.isdigit() or rule.set_vars:
        return 0
    return int(argument)


def _notes(program: Program) -> Iterable[str]:
    used: dict[str, list[int]] = {}
    for rule in program.rules:
        for link in rule.links:
            used.setdefault(link.operator.name, []).append(rule.id)
    for name, reason in ABSENT.items():
        if name in used:
            yield f"@{name} never matches, {reason}: rules {', '.join(map(str, sorted(set(used[name]))))}"
    if ("detectSQLi" in used or "detectXSS" in used) and (state := libinjection.state()):
        yield state


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
