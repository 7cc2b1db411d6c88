"""What happens to a request between its head and its origin, and to an answer before its client: the list.

Owns  the order of phases, how a zone's rulesets and settings become its pipeline.
Not   connections, bytes on a wire; what a phase does.

A phase compiles what concerns it into a step, or None when it has nothing to do in this zone: an empty phase
costs a request nothing. Steps are plain functions: whatever a phase knows, it has in memory.

A request meets `Pipeline.request` when its head, and of its body the first `body_octets` (or all of it), are
there and before its origin is contacted. The answer's head, the origin's or of the edge's own, meets
`Pipeline.response` before a byte of it is sent; it may be changed in place, or replaced by another answer.
"""

from collections.abc import Sequence
from functools import partial

from edgestead.edge.challenge import challenges
from edgestead.edge.exchanges.exchange import Exchange, Response, ZoneFacts
from edgestead.edge.exchanges.later import Later, finish
from edgestead.edge.managed import rules as managed_rules
from edgestead.edge.phases import (
    acme_answers,
    compression_rules,
    firewall_rules,
    odd_paths,
    origin_rules,
    rate_rules,
    redirect_rules,
    security_header,
    transform_rules,
)
from edgestead.edge.tools.phase import Phase, Step, Tools, ZoneRules
from edgestead.model.events import Decision


def _always_use_https(rules: ZoneRules, tools: Tools) -> Step | None:
    if rules.facts.settings.get("always_use_https") != "on":
        return None
    decision = Decision("always_use_https", "redirect", 301, reason="the setting always_use_https is on")

    def step(exchange: Exchange) -> Response | None:
        """To our own port where the client named one: without, a port is what its network makes of 443."""
        if exchange.scheme == b"https":
            return None
        named = b":" in (exchange.header(b"host") or b"")
        port = b":%d" % tools.https_port if named and tools.https_port != 443 else b""
        where = b"https://" + exchange.host + port + exchange.raw_target
        tools.observer.decided(exchange, decision)
        return Response(301, [(b"location", where)])

    return step


REQUEST_PHASES: tuple[Phase, ...] = (
    Phase(acme_answers.SETTING, acme_answers.compile_answers),
    Phase(odd_paths.SETTING, odd_paths.compile_odd_paths),
    Phase("challenge_answers", challenges.compile_answers),
    Phase("always_use_https", _always_use_https),
    Phase(redirect_rules.PHASE, redirect_rules.compile_rules, redirect_rules.octets),
    Phase(transform_rules.REQUEST_PHASE, transform_rules.compile_request, transform_rules.octets),
    Phase(origin_rules.PHASE, origin_rules.compile_rules, origin_rules.octets),
    Phase(firewall_rules.PHASE, firewall_rules.compile_rules, firewall_rules.octets),
    Phase("security_level", challenges.compile_under_attack),
    Phase(rate_rules.PHASE, rate_rules.compile_rules, rate_rules.octets),
    Phase(managed_rules.PHASE, managed_rules.compile_rules, managed_rules.octets),
    Phase("clearance_cookies", challenges.compile_hiding),
)
RESPONSE_PHASES: tuple[Phase, ...] = (
    Phase(rate_rules.PHASE, rate_rules.compile_answers),
    Phase(security_header.SETTING, security_header.compile_header),
    Phase(transform_rules.RESPONSE_PHASE, transform_rules.compile_response),
    Phase(compression_rules.PHASE, compression_rules.compile_rules),
)


class Pipeline:
    """The compiled phases of one zone. Rules of an account are part of it."""

    __slots__ = ("_request", "_response", "body_octets", "facts", "has_response")

    def __init__(self, facts: ZoneFacts, request: Sequence[Step], response: Sequence[Step], body_octets: int):
        self.facts = facts
        self._request = tuple(request)
        self._response = tuple(response)
        self.body_octets = body_octets
        self.has_response = bool(response)

    def request(self, exchange: Exchange) -> Response | Later | None:
        """The edge's own answer; None when the origin is to be asked; `Later` where that takes time."""
        return _run(self._request, exchange)

    def response(self, exchange: Exchange) -> Response | None:
        """Another answer in the place of the one whose head is `exchange.response`; None to send that."""
        answer: Response | None = finish(_run(self._response, exchange))
        return answer


def _run(steps: Sequence[Step], exchange: Exchange) -> Response | Later | None:
    for step in steps:
        answer = step(exchange)
        if answer.__class__ is Later:
            return answer.then(partial(_go_on, steps[steps.index(step) + 1 :], exchange))
        if answer is not None:
            break
    else:
        answer = None
    # A view holds its request: together they would wait for the collector, at twice the cost of ten rules.
    exchange.view = None
    return answer


def _go_on(rest: Sequence[Step], exchange: Exchange, told: Response | None) -> Response | Later | None:
    return _run(rest, exchange) if told is None else told


def compile_zone(rules: ZoneRules, tools: Tools) -> Pipeline:
    """A zone's pipeline. A paused zone has none of the phases."""
    if rules.facts.paused:
        return Pipeline(rules.facts, (), (), 0)
    return Pipeline(
        rules.facts,
        [step for phase in REQUEST_PHASES if (step := phase.compile(rules, tools)) is not None],
        [step for phase in RESPONSE_PHASES if (step := phase.compile(rules, tools)) is not None],
        max((*(phase.body_octets(rules) for phase in REQUEST_PHASES), compression_rules.octets(rules))),
    )
