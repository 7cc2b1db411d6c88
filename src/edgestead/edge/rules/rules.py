"""From a phase's rulesets to one function that runs them.

Owns  reading the feed's documents, compiling conditions, the order account before zone, `execute` of custom
      rulesets, the ends of rulesets and phases.
Not   what an action does.

Everything happens once for each change; a request only calls closures. Conditions are kept by their text:
an account's rules stand before the rules of each of its zones, and compiling one takes 100 µs.

A rule that cannot be compiled here was checked by another release. It is left out and told to the operator:
the server goes on with the rules that it understands. Where that would let requests pass uninspected, the
phase says what acts in its place.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.exchanges.later import Later
from edgestead.edge.rules.fields import BODY_FIELDS, BODY_OCTETS_SEEN_MAX, SHORT, view_of
from edgestead.edge.tools.phase import Step, Watch, ZoneRules
from edgestead.edge.tools.skips import Level, add_skips, skips_of
from edgestead.language import Filter, FilterError, View, compile_filter, matching
from edgestead.model.ruleset_document import RulesetDocument, pinned_key

FILTERS_KEPT_MAX = 4_096  # compiled conditions, of all zones and accounts together

_log = logging.getLogger("edgestead.edge")


class End(Enum):
    """What an act ends, beside the request itself."""

    RULESET = "ruleset"
    PHASE = "phase"


Outcome = Response | End | Later | None
Act = Callable[[Exchange, View], Outcome]
Run = Callable[[Exchange], Outcome]


class Rule(msgspec.Struct, frozen=True):
    """A rule of a document; what other releases add is ignored."""

    id: str
    action: str
    expression: str
    version: str = "1"
    enabled: bool = True
    description: str = ""
    action_parameters: dict[str, Any] = {}
    logging: dict[str, bool] = {}
    ratelimit: dict[str, Any] = {}

    @property
    def logs(self) -> bool:
        return self.logging.get("enabled", True)


class Place(NamedTuple):
    """Where a rule stands; `by` is the rule that executes its ruleset, "" of an entry point."""

    level: Level
    phase: str
    ruleset_id: str
    by: str = ""


Make = Callable[[Rule, Place], Act | None]
"""What a phase makes of one rule; None for an action that it does not know. Raises FilterError."""

_BODY_NAMES = [name.encode() for name in BODY_FIELDS]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Rule]).decode


@lru_cache(FILTERS_KEPT_MAX)
def condition(text: str, phase: str, with_response: bool = False) -> Filter:
    """A compiled filter, shared by all rules of that text. Raises FilterError."""
    return compile_filter(text, phase, with_response=with_response)


def rules_of(document: RulesetDocument) -> list[Rule]:
    """The enabled rules. An unreadable document has none, and the operator is told."""
    try:
        return [rule for rule in _decode(document.rules) if rule.enabled]
    except msgspec.MsgspecError as error:
        _log.error("ruleset %s version %s cannot be read: %s", document.id, document.version, error)
        return []


def compile_phase(
    rules: ZoneRules,
    phase: str,
    make: Make,
    asked_for: Callable[[Rule], str] = lambda rule: rule.expression,
    instead: Make = lambda rule, place: None,
) -> Step | None:
    """The phase's rulesets as one step; None where no rule would ever act.

    `asked_for` is the condition under which a rule's act is called. `instead` makes an act for every request
    in the place of a rule that cannot be compiled.
    """
    compiler = _Compiler(rules, make, asked_for, instead)
    levels = tuple(
        (level, run)
        for level, document in _entrypoints(rules, phase)
        if (run := compiler.runner(document, Place(level, phase, document.id))) is not None
    )
    if not levels:
        return None

    def step(exchange: Exchange, todo: Sequence[tuple[Level, Run]] = levels) -> Response | Later | None:
        for level, run in todo:
            if exchange.keep is not None and _skips_phase(exchange, level, phase):
                continue
            outcome = run(exchange)
            if outcome.__class__ is Response:
                return outcome
            if outcome.__class__ is Later:
                return outcome.then(partial(go_on, exchange, todo[todo.index((level, run)) + 1 :]))
        return None

    def go_on(exchange: Exchange, rest: Sequence[tuple[Level, Run]], outcome: Outcome) -> Outcome:
        return outcome if outcome.__class__ is Response else step(exchange, rest)

    return step


def body_octets(rules: ZoneRules, *phases: str) -> int:
    """How much of a body the expressions of these phases look at."""
    asks = any(_asks_body(rule) for phase in phases for rule in all_rules(rules, phase))
    return BODY_OCTETS_SEEN_MAX if asks else 0


def _asks_body(rule: Rule) -> bool:
    """By the names alone, wherever they stand: one that is only mentioned costs a look at bodies."""
    text = _encode((rule.expression, rule.action_parameters, rule.ratelimit))
    return any(name in text for name in _BODY_NAMES)


def all_rules(rules: ZoneRules, phase: str) -> Iterator[Rule]:
    for _, document in _entrypoints(rules, phase):
        for rule in rules_of(document):
            yield rule
            if rule.action != "execute" or "id" not in rule.action_parameters:
                continue
            if (executed := _executed(rules, rule)) is not None:
                yield from rules_of(executed)


def _executed(rules: ZoneRules, rule: Rule) -> RulesetDocument | None:
    """The version that the rule names; the current one where only that is known."""
    id_, version = rule.action_parameters["id"], rule.action_parameters.get("version", "latest")
    return rules.by_id.get(pinned_key(id_, version)) or rules.by_id.get(id_)


def _entrypoints(rules: ZoneRules, phase: str) -> Iterator[tuple[Level, RulesetDocument]]:
    if (document := rules.account.get(phase)) is not None:
        yield "account", document
    if (document := rules.zone.get(phase)) is not None:
        yield "zone", document


def _skips_phase(exchange: Exchange, level: Level, phase: str) -> bool:
    skips = skips_of(exchange, level)
    return skips is not None and phase in skips.phases


_Ready = tuple[Filter, Act]


class _Compiler(NamedTuple):
    """What stays the same over all rulesets of one phase."""

    rules: ZoneRules
    make: Make
    asked_for: Callable[[Rule], str]
    instead: Make

    def runner(self, document: RulesetDocument, place: Place) -> Run | None:
        ready = list(self._ready(document, place))
        if not ready:
            return None
        conditions, all_acts = zip(*ready, strict=True)

        def run(exchange: Exchange, acts: Iterator[Act]) -> Outcome:
            for act in acts:
                outcome = act(exchange, view_of(exchange))
                if outcome is not None:
                    if outcome.__class__ is Later:
                        return outcome.then(partial(go_on, exchange, acts))
                    return None if outcome is End.RULESET else outcome
            return None

        def go_on(exchange: Exchange, acts: Iterator[Act], outcome: Outcome) -> Outcome:
            if outcome is not None:
                return None if outcome is End.RULESET else outcome
            return run(exchange, acts)

        return matching(conditions, all_acts, run, SHORT)

    def _ready(self, document: RulesetDocument, place: Place) -> Iterator[_Ready]:
        for rule in rules_of(document):
            try:
                act = self._execute(rule, place) if rule.action == "execute" else self.make(rule, place)
                if act is not None:
                    yield from self._asked(rule, place, act)
            except (FilterError, KeyError, TypeError, ValueError) as error:
                _log.error("rule %s of ruleset %s is left out: %s", rule.id, document.id, error)
                if (act := self.instead(rule, place)) is not None:
                    yield condition("true", place.phase), act

    def _asked(self, rule: Rule, place: Place, act: Act) -> Iterator[_Ready]:
        """The rule; before it, where somebody watches, what tells them that its turn has come."""
        asked, watch = condition(self.asked_for(rule), place.phase), self.rules.watch
        if watch is not None:
            yield condition("true", place.phase), _meet(rule, place, watch)
            act = _telling(rule, place, act, watch)
        yield asked, _unless_skipped(rule, place, act)

    def _execute(self, rule: Rule, place: Place) -> Act | None:
        """Run a custom ruleset. One inside of another is none that the API takes."""
        document = _executed(self.rules, rule)
        if document is None:
            return self.make(rule, place)  # a managed one, which is no document
        if document.phase != place.phase or document.kind != "custom":
            return None
        inner = self._replace(rules=self.rules._replace(by_id={}))
        run = inner.runner(document, place._replace(ruleset_id=document.id, by=rule.id))
        if run is None:
            return None
        ruleset_id = document.id

        def act(exchange: Exchange, view: View) -> Outcome:
            if exchange.keep is not None:
                skips = skips_of(exchange, place.level)
                if skips is not None and ruleset_id in skips.rulesets:
                    return None
            return run(exchange)

        return act


def _meet(rule: Rule, place: Place, watch: Watch) -> Act:
    matches = condition(rule.expression, place.phase).run

    def act(exchange: Exchange, view: View) -> None:
        watch.met(rule, place, exchange, matches(view))

    return act


def _telling(rule: Rule, place: Place, act: Act, watch: Watch) -> Act:
    def run(exchange: Exchange, view: View) -> Outcome:
        outcome = act(exchange, view)
        watch.acted(rule, place, exchange, outcome)
        return outcome

    return run


def _unless_skipped(rule: Rule, place: Place, act: Act) -> Act:
    """The act of a rule, where no `skip` has named it: asked only when its condition holds."""

    def run(exchange: Exchange, view: View) -> Outcome:
        if exchange.keep is not None and (skips := skips_of(exchange, place.level)) is not None:
            if rule.id in skips.rules.get(place.ruleset_id, ()):
                return None
        return act(exchange, view)

    return run


def skip(rule: Rule, place: Place, tell: Callable[[Exchange], None]) -> Act:
    """The act of a `skip` rule. `tell` hears of it where the rule logs."""
    parameters = rule.action_parameters
    lasting = parameters.keys() - {"ruleset"}
    end: End | None = End.RULESET if parameters.get("ruleset") == "current" else None
    if parameters.get("phase") == "current" or place.phase in parameters.get("phases", ()):
        end = End.PHASE

    def act(exchange: Exchange, view: View) -> Outcome:
        if lasting:
            add_skips(exchange, place.level, parameters, place.phase)
        tell(exchange)
        return end

    return act
