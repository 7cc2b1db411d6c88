"""The phase http_request_firewall_managed: requests are inspected, and the score decides.

Owns  the phase's name, `execute` of the managed ruleset, exceptions, what a verdict means for the request.
Not   inspecting (`waf`).

Of a multipart body that is larger than the inspected prefix the later fields are held back until they were
inspected, and what they score is added to what the request has scored so far.

No request passes uninspected: while the rules are not ready, or when a rule executes a ruleset that this
server does not have, or cannot be compiled, the zone's requests get 503. A body that cannot be inspected
whole is refused with the inspection's own status, unless the zone only logs.

Source: docs/explanation/crs.md; contract "Rulesets" §4 and §5.
"""

from collections.abc import Generator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgestead.crs import Overrides
from edgestead.crs.catalogue import ANOMALY_DESCRIPTION, entry_id
from edgestead.edge.challenge.challenges import challenge
from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.exchanges.late_body import LateBody
from edgestead.edge.exchanges.later import Later
from edgestead.edge.managed import answers
from edgestead.edge.managed.answers import look
from edgestead.edge.managed.bodies import DEFAULT, OVER, PACKED, Bounds, Seen, bounds_of, seen
from edgestead.edge.rules.acts import act_of
from edgestead.edge.rules.rules import (
    Act,
    Outcome,
    Place,
    Rule,
    all_rules,
    body_octets,
    compile_phase,
    rules_of,
)
from edgestead.edge.tools.clearance import KINDS
from edgestead.edge.tools.engines import overrides_of
from edgestead.edge.tools.phase import Silent, Step, Tools, ZoneRules
from edgestead.edge.tools.refusals import stopped
from edgestead.edge.tools.skips import skips_of
from edgestead.language import View
from edgestead.model.budgets.table import EDGE_INSPECTION_WORK
from edgestead.model.events import Contribution, Decision
from edgestead.model.ruleset_document import RulesetDocument
from edgestead.waf.bodies.json import NAMES_BYTES_MAX
from edgestead.waf.bodies.media_types import processor_of
from edgestead.waf.engine import Engine, Inspection
from edgestead.waf.limits import (
    BODY_BYTES_MAX,
    COOKIES_MAX,
    JSON_DEPTH_MAX,
    PART_HEADER_BYTES_MAX,
    PARTS_MAX,
    TOO_MUCH_WORK,
    XML_DEPTH_MAX,
    XML_NODES_MAX,
)
from edgestead.waf.transaction import Hit, Policy, Refused, Request, Verdict

PHASE = "http_request_firewall_managed"
BLOCK_STATUS = 403
UNAVAILABLE_STATUS = 503
DOCUMENTS_KEPT_MAX = 16_384  # whose executed rulesets are remembered
RETRY_SECONDS = b"5"  # rules from the cache are there sooner; compiled anew they take half a minute
UNINSPECTED = "The request cannot be inspected"
IN_PART = "The request was inspected in part"
_PASSED = {OVER: "its body is larger than the zone has inspected", PACKED: "its body is packed"}
NOT_UNDERSTOOD = "this release does not understand the rule"
_LIMITS = {  # what a refusal's reason means, for people
    "arguments": "it has more than {arguments:,} arguments",
    "body-size": "its body, or a field of it, is larger than {body_bytes:,} bytes",
    "charset": "its text is in a character set that hides ASCII",
    "content-encoding": "its body is packed",
    "content-types": "it has more than one type",
    "cookies": f"it has more than {COOKIES_MAX} cookies",
    "json-depth": f"its JSON is more than {JSON_DEPTH_MAX} deep",
    "json-names": f"the names in its JSON are more than {NAMES_BYTES_MAX:,} bytes",
    "json-syntax": "its body is no JSON",
    "multipart-syntax": "its parts can be read in more than one way",
    "part-headers": f"the headers of a part are more than {PART_HEADER_BYTES_MAX:,} bytes",
    "parts": f"it has more than {PARTS_MAX} parts",
    "transfer-encoding": "a part of it is encoded",
    TOO_MUCH_WORK: "to inspect it is too much work",
    "xml-depth": f"its XML is more than {XML_DEPTH_MAX} deep",
    "xml-entities": "its XML declares entities",
    "xml-nodes": f"its XML has more than {XML_NODES_MAX:,} elements and attributes",
    "xml-syntax": "its body is no XML",
}
_US = 1_000_000
_BLOCKED = "This request looks like an attack and was not let through."
_UNAVAILABLE = "This site's protection is not ready. Please try again in a moment."
_REFUSED = {
    400: "The request's body cannot be read as what it says it is.",
    415: "The request's body is packed or encoded, and cannot be checked.",
    413: "The request's body is too large or too deep to be checked.",
    414: "The request's address has too many arguments to be checked.",
    431: "The request has too many cookies to be checked.",
}


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(
        rules,
        PHASE,
        lambda rule, place: _make(rule, place, tools),
        instead=lambda rule, place: _refuse_all(rule, place, tools),
    )


def octets(rules: ZoneRules) -> int:
    """How much of a body is looked at: the inspected prefix where the managed ruleset may be executed."""
    if any(rule.action == "execute" for rule in all_rules(rules, PHASE)):
        # one more than is inspected: so it shows when a body is larger; packed ones are not so long
        bounds = bounds_of(rules.facts.settings)
        return (BODY_BYTES_MAX if bounds.packed == "unpack" else bounds.body_bytes) + 1
    return body_octets(rules, PHASE)


def executed_by(document: RulesetDocument) -> frozenset[str]:
    """Ids of the rulesets that a ruleset's enabled rules execute."""
    return _executed(document.id, document.version, bytes(document.rules))


@lru_cache(DOCUMENTS_KEPT_MAX)
def _executed(id_: str, version: str, rules: bytes) -> frozenset[str]:
    document = RulesetDocument(id_, "", PHASE, version, msgspec.Raw(rules))
    return frozenset(
        rule.action_parameters.get("id", "") for rule in rules_of(document) if rule.action == "execute"
    )


def _make(rule: Rule, place: Place, tools: Tools) -> Act | None:
    if rule.action == "execute":
        if not rule.logs:
            tools = tools._replace(observer=Silent())
        return _Execute(rule, place, tools, overrides_of(rule.action_parameters)).act
    return act_of(rule, place, tools, block_status=BLOCK_STATUS)


def _refuse_all(rule: Rule, place: Place, tools: Tools) -> Act | None:
    """In the place of an `execute` that cannot be compiled: whom it would have inspected nobody knows."""
    if rule.action != "execute":
        return None
    unready = _Execute(rule, place, tools, Overrides())
    ruleset_id = str(rule.action_parameters.get("id", ""))
    return lambda exchange, view: unready.unavailable(exchange, ruleset_id, NOT_UNDERSTOOD)


class _Execute(NamedTuple):
    """One rule that executes the managed ruleset."""

    rule: Rule
    place: Place
    tools: Tools
    overrides: Overrides

    def act(self, exchange: Exchange, view: View) -> Outcome:
        managed = self.tools.managed
        ruleset_id = self.rule.action_parameters["id"]
        skipped: frozenset[str] = frozenset()
        skips = skips_of(exchange, self.place.level)
        if skips is not None:
            if ruleset_id in skips.rulesets:
                return None
            skipped = frozenset(skips.rules.get(ruleset_id, ()))
        reason = managed.unusable(ruleset_id)
        if reason or managed.engine is None:
            return self.unavailable(exchange, ruleset_id, reason)
        policy = managed.policy(self.overrides, skipped)
        return Later(self._inspect(exchange, managed.engine, policy))

    def _inspect(
        self, exchange: Exchange, engine: Engine, policy: Policy
    ) -> Generator[None, None, Response | None]:
        managed = self.tools.managed
        bounds = bounds_of(exchange.zone.settings)
        body = seen(exchange, bounds)
        if bounds.packed == "unpack" and exchange.header(b"content-encoding") is not None:
            yield  # it may have taken some milliseconds: then others have their turn
        request = request_of(exchange, bounds, body)
        inspection = engine.inspect(request, policy)
        verdict = yield from inspection.request()
        managed.count(exchange.zone.id, self.rule.id)
        answer = self._answer(exchange, verdict, policy)
        if answer is not None or verdict.refused:
            return answer
        if body.passed:
            self.tools.observer.decided(exchange, self._in_part(verdict, body.passed))
        if managed.response_octets:
            observer = self.tools.observer
            look(exchange, inspection, managed.response_octets, observer, self._decision_on_answer)
        return (yield from self._watch(exchange, inspection)) if request.rest_follows else None

    def _answer(self, exchange: Exchange, verdict: Verdict, policy: Policy) -> Response | None:
        self.tools.managed.verdicts["refuse" if verdict.refused else verdict.action or "pass"] += 1
        if verdict.refused:
            return self._refused(exchange, verdict, policy)
        return self._decided(exchange, verdict) if verdict.action else None

    def _watch(self, exchange: Exchange, inspection: Inspection) -> Generator[None, None, Response | None]:
        """Have the later parts of a large multipart body inspected before they pass."""
        policy = inspection.policy

        def inspect(parts: bytes) -> Generator[None, None, Response | None]:
            verdict = yield from inspection.late(parts)
            return self._answer(exchange, verdict, policy)

        def refuse(refused: Refused) -> Response | None:
            verdict = Verdict(refused=refused.reason, status=refused.status, threshold=policy.threshold)
            return self._refused(exchange, verdict, policy)

        if exchange.late is None:
            try:
                exchange.late = LateBody((yield from inspection.late_parts()))
            except Refused as refused:
                return refuse(refused)
        exchange.late.add(inspect, refuse)
        return None

    def unavailable(self, exchange: Exchange, ruleset_id: str, reason: str) -> Response:
        decision = Decision(
            PHASE,
            "refuse",
            UNAVAILABLE_STATUS,
            ruleset_id=ruleset_id,
            rule_id=self.rule.id,
            reason=reason,
        )
        self.tools.observer.decided(exchange, decision)
        retry = [(b"retry-after", RETRY_SECONDS)]
        return stopped(exchange, UNAVAILABLE_STATUS, _UNAVAILABLE, retry)

    def _refused(self, exchange: Exchange, verdict: Verdict, policy: Policy) -> Response | None:
        """The inspection ended at a limit, or at a body that cannot be read."""
        if verdict.refused == TOO_MUCH_WORK and self.tools.ledger is not None:
            self.tools.ledger.refuse(EDGE_INSPECTION_WORK, exchange.client)
        action, status = ("log", 0) if policy.only_logs else ("refuse", verdict.status)
        decision = self._decision(verdict, action, status, self._counted(exchange))
        words = self._refusal(verdict.refused, bounds_of(exchange.zone.settings))
        self.tools.observer.decided(exchange, msgspec.structs.replace(decision, description=words))
        if policy.only_logs:
            return None
        return stopped(exchange, verdict.status, _REFUSED.get(verdict.status, _BLOCKED))

    def _decided(self, exchange: Exchange, verdict: Verdict) -> Response | None:
        action = verdict.action
        if action in KINDS:
            decision = self._decision(verdict, action, BLOCK_STATUS, self._counted(exchange))
            answer = challenge(exchange, self.tools, decision)
            return answer
        self.tools.observer.decided(
            exchange,
            self._decision(
                verdict, action, BLOCK_STATUS if action == "block" else 0, self._counted(exchange)
            ),
        )
        return stopped(exchange, BLOCK_STATUS, _BLOCKED) if action == "block" else None

    def _decision_on_answer(self, verdict: Verdict, action: str, status: int) -> Decision:
        self.tools.managed.verdicts[action] += 1
        return msgspec.structs.replace(
            self._decision(verdict, action, status),
            phase=answers.PHASE,
            rule_id=self.tools.managed.anomaly_rule_id,
            description=self._worded(answers.DESCRIPTION),
        )

    def _counted(self, exchange: Exchange) -> int:
        return self.tools.managed.counted(exchange.zone.id, self.rule.id)

    def _decision(self, verdict: Verdict, action: str, status: int, inspected: int = 0) -> Decision:
        managed = self.tools.managed
        acting = next((hit for hit in verdict.hits if hit.action == action), None)
        return Decision(
            PHASE,
            action,
            status,
            ruleset_id=managed.ruleset_id,
            rule_id=entry_id(acting.rule_id) if acting else managed.anomaly_rule_id,
            description=self._description(acting),
            reason=verdict.refused,
            score=verdict.score,
            threshold=verdict.threshold,
            contributions=tuple(map(_contribution, filter(_counts, verdict.hits))),
            inspected=inspected,
        )

    def _in_part(self, verdict: Verdict, reason: str) -> Decision:
        decision = self._decision(verdict, "log", 0)
        words = self._worded(f"{IN_PART}: {_PASSED[reason]}")
        return msgspec.structs.replace(decision, description=words, reason=reason)

    def _refusal(self, reason: str, bounds: Bounds) -> str:
        words = _LIMITS.get(reason, reason).format(arguments=bounds.arguments, body_bytes=bounds.body_bytes)
        return self._worded(f"{UNINSPECTED}: {words}")

    def _description(self, acting: Hit | None) -> str:
        return self._worded(ANOMALY_DESCRIPTION if acting is None else f"{acting.rule_id}: {acting.message}")

    def _worded(self, words: str) -> str:
        return f"{words} ({self.rule.description})" if self.rule.description else words


def _counts(hit: Hit) -> bool:
    return hit.score > 0 or hit.action != ""


def _contribution(hit: Hit) -> Contribution:
    return Contribution(
        rule_id=entry_id(hit.rule_id),
        description=f"{hit.rule_id}: {hit.message}",
        score=hit.score,
        variable=hit.variable,
        matched=hit.matched.decode("utf-8", "backslashreplace"),
    )


def request_of(exchange: Exchange, bounds: Bounds = DEFAULT, body: Seen | None = None) -> Request:
    """The request as it arrived, with the target that rules have rewritten, as its origin gets it."""
    body = body or seen(exchange, bounds)
    return Request(
        method=exchange.method,
        target=exchange.target,
        version=exchange.version,
        headers=tuple(exchange.headers),
        client_address=exchange.client,
        server_port=exchange.port,
        body=body.body,
        body_bytes_max=bounds.body_bytes,
        arguments_max=bounds.arguments,
        partial=body.partial,
        unpacked=body.unpacked,
        body_complete=exchange.body_complete,
        rest_follows=not (exchange.body_complete or body.unpacked or body.passed)
        and processor_of(exchange.header(b"content-type") or b"") == "MULTIPART",
        unique_id=exchange.ray.decode("latin-1"),
        time_epoch_seconds=exchange.arrived_us // _US,
    )
