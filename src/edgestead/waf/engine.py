"""Requests in, verdicts out: a rule set with its scanner, policies, and inspections.

Owns  policies and their plans; the order of phases; scores.
Not   what happens to the request then (`edge`), where a compiled database is kept (`server`).

Scores count each rule once, whatever number of values it matched; the rule set's own counting goes on beside
it in TX, and its rules that deny by it are only logged here: the policy decides.

Source: spec "Managed ruleset configuration"; design note 0017.
"""

from collections.abc import Generator, Iterable
from typing import Final

import msgspec

from edgestead.crs import Effective
from edgestead.waf.bodies.body import content_type_of
from edgestead.waf.bodies.late_parts import LateParts
from edgestead.waf.limits import (
    HITS_MAX,
    LATE_WORK_UNITS_MAX,
    RESPONSE_WORK_UNITS_MAX,
    WORK_UNITS_MAX,
    Meter,
    at_once,
)
from edgestead.waf.load.compile import CompiledRule, RuleSet
from edgestead.waf.plan import scan
from edgestead.waf.plan.gates import ARGUMENTS, BODY, HEAD, RESPONSE
from edgestead.waf.plan.policies import Plan
from edgestead.waf.plan.scan import NoScanner, Scanner
from edgestead.waf.plan.search import Search
from edgestead.waf.run.collections import add_body, add_response_body, request_values, response_values
from edgestead.waf.run.interpreter import Found, Run
from edgestead.waf.terms.operators import number
from edgestead.waf.transaction import (
    PARANOIA_LEVELS,
    PASSING,
    Hit,
    Policy,
    Refused,
    Request,
    Response,
    Values,
    Verdict,
)

PLANS_MAX = 64  # choices of rules with a plan kept; zones that choose alike share one
_OF_REQUEST: Final = (ARGUMENTS, BODY, HEAD)
Steps = Generator[None, None, Verdict]
_Making = Generator[None, None, Plan]
_LEVEL_KEYS: Final = (
    b"detection_paranoia_level",
    b"blocking_paranoia_level",
    b"executing_paranoia_level",
    b"paranoia_level",
)
# The threshold of answers, as the rule set's setup file names it, and what the rule set takes without one.
_OUTBOUND_KEY, _OUTBOUND_DEFAULT = b"outbound_anomaly_score_threshold", b"4"


class Planning:
    """A plan, None until it is built: each waiting caller builds one step of it."""

    __slots__ = ("_making", "plan")

    def __init__(self, making: _Making) -> None:
        self._making = making
        self.plan: Plan | None = None

    def waiting(self) -> _Making:
        """Ends with the plan. Others may be waiting for it, too, and may leave before it is made."""
        while self.plan is None:
            try:
                next(self._making)
            except StopIteration as stop:
                if stop.value is None:  # an error ended it before, and would end it again
                    raise RuntimeError("these rules cannot be prepared") from None
                self.plan = stop.value
            else:
                yield
        return self.plan


class Engine:
    """One rule set for all zones. `notes` are sentences on what of it cannot work here.

    `stored` is a database of `scan.compile_database`; without it every rule is run for every request, with
    the same outcome, many times slower. `tx` are variables that hold before the first rule.

    Raises: ValueError for a damaged database, or one of other rules.
    """

    def __init__(
        self, rule_set: RuleSet, *, stored: bytes | None = None, tx: dict[bytes, bytes] | None = None
    ) -> None:
        self.rule_set = rule_set
        self.scanner: Scanner | NoScanner = (
            NoScanner() if stored is None else scan.load(self.rule_set, stored)
        )
        self.notes = rule_set.notes
        self._tx = tx or {}
        self._policies: dict[Policy, Policy] = {}
        self._plans: dict[tuple[int, int], Planning] = {}

    def policy(self, effective: Effective) -> Policy:
        """What a zone's overrides leave, as a mask."""
        enabled = level = 0
        actions = {}
        for bit, rule in self.rule_set.bits.items():
            if rule.rule.id in effective.increments:
                enabled |= 1 << bit
            elif rule.rule.id in effective.actions:
                enabled |= 1 << bit
                actions[bit] = effective.actions[rule.rule.id]
            else:
                continue
            level = max(level, rule.score_level)
        threshold = None if effective.anomaly_action is None else effective.score_threshold
        return Policy(
            enabled=enabled,
            level=level or 1,
            threshold=threshold,
            action=effective.anomaly_action or "",
            actions=actions,
        )

    def level_policy(self, level: int, threshold: int | None, action: str = "block") -> Policy:
        """All rules up to a paranoia level."""
        enabled = sum(1 << bit for bit, rule in self.rule_set.bits.items() if rule.score_level <= level)
        return Policy(enabled=enabled, level=level, threshold=threshold, action=action)

    def plan(self, policy: Policy) -> Plan:
        """The plan of a policy, without yielding to other tasks: see `planning`."""
        return at_once(self.planning(policy).waiting())

    def planning(self, policy: Policy) -> Planning:
        """The plan of a policy, made already or not: 50 to 80 ms for a choice of rules that was not met."""
        key = policy.enabled, policy.level
        planning = self._plans.get(key)
        if planning is None:
            if len(self._plans) >= PLANS_MAX:
                self._plans.pop(next(iter(self._plans)))
            tx = self._tx | dict.fromkeys(_LEVEL_KEYS, b"%d" % policy.level)
            making = Plan.making(self.rule_set, self._chosen(policy), tx, self.scanner.gate)
            planning = self._plans[key] = Planning(making)
        return planning

    def _chosen(self, policy: Policy) -> Iterable[CompiledRule]:
        for rule in self.rule_set.rules:
            if policy.enabled >> rule.bit & 1 if rule.bit >= 0 else rule.level <= policy.level:
                yield rule

    def inspect(
        self, request: Request, policy: Policy, *, work_units_max: int = WORK_UNITS_MAX
    ) -> "Inspection":
        return Inspection(self, request, policy, work_units_max)


class Inspection:
    """One request, and its response where that is looked at. Each generator ends with a verdict.

    An origin may answer while a late part of the body still waits for its turn: parts have runs and a budget
    of their own, and the response goes on with those of the request's start.
    """

    def __init__(self, engine: Engine, request: Request, policy: Policy, work_units_max: int) -> None:
        self._engine = engine
        self._request = request
        self.policy = policy
        self._planning = engine.planning(policy)
        self._meter = Meter(work_units_max)
        self._late_meter: Meter | None = None
        self._started: tuple[Run, Search] | None = None  # of the request's start
        self._found: list[Found] = []  # in the request so far, of each rule once

    def request(self) -> Steps:
        """Phases 1 and 2. Limits are verdicts, not exceptions."""
        return self._phases(self._request, self._meter)

    def _phases(self, request: Request, meter: Meter) -> Steps:
        run, trouble = None, None
        try:
            chains = self._engine.rule_set.chains
            plan = yield from self._planning.waiting()
            search = Search(chains, self._engine.scanner, plan, meter)
            values = yield from meter.toiling(request_values(request))
            run = Run(chains, plan.tx, values, meter, plan.knowledge)
            if self._started is None:
                self._started = run, search
            run.has_body = bool(request.body)
            run.values_changed()
            yield from search.look(run, _OF_REQUEST, early=1 if request.body else 0)
            yield from search.phase(run, 1)
            if request.body:
                processor = run.processor or _first(values, "REQBODY_PROCESSOR")
                reading = add_body(values, request, processor, run.force_body)
                trouble = yield from meter.toiling(reading)
                run.values_changed()
                yield from search.look(run, _OF_REQUEST)
            yield from search.phase(run, 2)
        except Refused as refused:
            trouble = refused
        if run is not None:
            known = {one.rule.rule.id for one in self._found}
            self._found += [one for one in run.found if one.rule.rule.id not in known]
        return self._verdict(meter, trouble)

    def late_parts(self) -> Generator[None, None, LateParts]:
        """The walk over what follows the body that `request` saw. Raises: Refused, as `LateParts`."""
        kind = content_type_of(self._request)
        return (yield from self._meter.toiling(LateParts.reading(kind, self._request.body)))

    def late(self, parts: bytes) -> Steps:
        """Parts of a multipart body that came after what `request` saw, as a small body of their own.

        The verdict is on all that came so far: a rule that matched earlier counts, and counts once. All calls
        together have a budget of work of their own. What rules make of several values together they make of
        these parts and the head alone.
        """
        assert self._started is not None, "the request comes first"
        if self._late_meter is None:
            self._late_meter = Meter(LATE_WORK_UNITS_MAX)
        body = msgspec.structs.replace(self._request, body=parts, body_complete=True, rest_follows=False)
        return self._phases(body, self._late_meter)

    def response(self, response: Response) -> Steps:
        """Phases 3 and 4, and 5 for what is only logged. After `request`, whose verdict let it pass.

        The score is the outbound one; its threshold is the rule set's own, as there is none in the API.
        """
        assert self._started is not None, "the request comes first"
        run, search = self._started
        of_request = len(run.found)
        self._meter.budget = self._meter.units + RESPONSE_WORK_UNITS_MAX
        try:
            run.values.update(response_values(response))
            run.values_changed()
            yield from search.look(run, (RESPONSE,), early=3)
            yield from search.phase(run, 3)
            if response.body:
                add_response_body(run.values, response)
                run.values_changed()
            yield from search.look(run, (RESPONSE,))
            for phase in (4, 5):
                yield from search.phase(run, phase)
        except Refused as refused:
            return self._outbound(run, of_request, refused)
        return self._outbound(run, of_request)

    def _outbound(self, run: Run, of_request: int, refused: Refused | None = None) -> Verdict:
        """What the rules on answers make of one. Actions are the policy's, as for requests."""
        found, policy = run.found[of_request:], self.policy
        threshold = None if policy.threshold is None else number(run.tx.get(_OUTBOUND_KEY, _OUTBOUND_DEFAULT))
        score = sum(one.rule.outbound for one in found)
        over = threshold is not None and score >= threshold
        return Verdict(
            action=policy.action if over else "",
            score=score,
            threshold=threshold,
            hits=tuple(_outbound_hit(one) for one in found[:HITS_MAX]),
            refused=refused.reason if refused else "",
            status=refused.status if refused else 403,
            work_units=self._meter.units,
        )

    def _verdict(self, meter: Meter, refused: Refused | None) -> Verdict:
        policy, score, levels = self.policy, 0, [0] * len(PARANOIA_LEVELS)
        hits: list[Hit] = []
        own = ""
        for one in self._found:
            hit = _hit(one, policy)
            score += hit.score
            levels[one.rule.score_level - 1] += hit.score
            if own in PASSING:  # what only logs hides nothing that stops
                own = hit.action or own
            if len(hits) < HITS_MAX:
                hits.append(hit)
        over = policy.threshold is not None and score >= policy.threshold
        return Verdict(
            action=(policy.action or own) if over and own in PASSING else own,
            score=score,
            threshold=policy.threshold,
            hits=tuple(hits),
            refused=refused.reason if refused else "",
            status=refused.status if refused else 403,
            level_scores=(levels[0], levels[1], levels[2], levels[3]),
            work_units=meter.units,
        )


def _first(values: Values, variable: str) -> str:
    pairs = values.get(variable)
    return pairs[0][1].decode("latin-1") if pairs else ""


def _hit(found: Found, policy: Policy) -> Hit:
    rule = found.rule
    action = policy.actions.get(rule.bit, "")
    scores = rule.bit >= 0 and not action
    return Hit(
        rule_id=rule.rule.id,
        phase=rule.phase,
        score=rule.increment if scores else 0,
        paranoia_level=rule.score_level or rule.level,
        variable=found.variable.decode("utf-8", "replace"),
        matched=found.matched,
        message=rule.rule.message,
        tags=rule.rule.tags,
        action=action,
    )


def _outbound_hit(found: Found) -> Hit:
    rule = found.rule
    return Hit(
        rule_id=rule.rule.id,
        phase=rule.phase,
        score=rule.outbound,
        paranoia_level=rule.level,
        variable=found.variable.decode("utf-8", "replace"),
        matched=found.matched,
        message=rule.rule.message,
        tags=rule.rule.tags,
    )


finish = at_once
