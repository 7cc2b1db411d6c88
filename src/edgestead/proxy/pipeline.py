"""What happens to a request between its head and its origin, and to an answer before its client: the list.

Owns  the order of phases, how a zone's rulesets and settings become its pipeline.
Asks  each phase's `compile` once per zone and change; `fields` for what expressions see.
Tells the listener: an answer of the edge's own, or None to go on to the origin.
Not   connections, bytes on a wire; what a phase does.

A phase compiles what concerns it into a step, or None when it has nothing to do in this zone: an empty phase
costs a request nothing. Steps are plain functions: whatever a phase knows, it has in memory.

A request meets `Pipeline.request` when its head, and of its body the first `body_octets` (or all of it), are
there and before its origin is contacted. The answer's head meets `Pipeline.response` before a byte of it is
sent; it may be changed in place, or replaced by returning another answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from edgestead.language import LazyView
from edgestead.model.ruleset_document import RulesetDocument
from edgestead.proxy.exchange import Exchange, Response, ZoneFacts
from edgestead.proxy.fields import LOADERS

Step = Callable[[Exchange], Response | None]


class Observer(Protocol):
    """Who hears of requests that no phase saw, and of their ends. Called on the loop: never waits."""

    def refused(self, client: str, ray: bytes, status: int, reason: str, host: bytes, target: bytes) -> None:
        """What could not be read, or names no zone of ours (`host` and `target` as far as they are known)."""

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        """The origin did not answer: the client gets an error page of the edge."""


class Silent:
    """An observer that keeps nothing."""

    def refused(self, client: str, ray: bytes, status: int, reason: str, host: bytes, target: bytes) -> None:
        pass

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        pass


class Tools(NamedTuple):
    """What a worker has, once, for all zones: what phases need beside their rules."""

    worker: int = 0
    workers: int = 1
    observer: Observer = Silent()


class ZoneRules(NamedTuple):
    """What a zone's pipeline is compiled from. Account rulesets act before the zone's own.

    `account` and `zone` are entry points by phase; `by_id` are all rulesets that `execute` may name.
    """

    facts: ZoneFacts
    account: Mapping[str, RulesetDocument] = {}
    zone: Mapping[str, RulesetDocument] = {}
    by_id: Mapping[str, RulesetDocument] = {}


class Phase(NamedTuple):
    """A row of the list. `body_octets` says how much of a body the compiled step wants to see."""

    name: str
    compile: Callable[[ZoneRules, Tools], Step | None]
    body_octets: Callable[[ZoneRules], int] = lambda rules: 0


def _always_use_https(rules: ZoneRules, tools: Tools) -> Step | None:
    if rules.facts.settings.get("always_use_https") != "on":
        return None

    def step(exchange: Exchange) -> Response | None:
        if exchange.scheme == b"https":
            return None
        where = b"https://" + exchange.host + exchange.raw_target
        return Response(301, [(b"location", where)])

    return step


REQUEST_PHASES: tuple[Phase, ...] = (Phase("always_use_https", _always_use_https),)
RESPONSE_PHASES: tuple[Phase, ...] = ()


class Pipeline:
    """The compiled phases of one zone. Rules of an account are part of it."""

    __slots__ = ("_request", "_response", "body_octets", "facts", "has_response")

    def __init__(self, facts: ZoneFacts, request: Sequence[Step], response: Sequence[Step], body_octets: int):
        self.facts = facts
        self._request = tuple(request)
        self._response = tuple(response)
        self.body_octets = body_octets
        self.has_response = bool(response)

    def request(self, exchange: Exchange) -> Response | None:
        """The edge's own answer; None when the origin is to be asked."""
        return _run(self._request, exchange)

    def response(self, exchange: Exchange) -> Response | None:
        """Another answer in the place of the one whose head is `exchange.response`; None to send that."""
        return _run(self._response, exchange)


def _run(steps: Sequence[Step], exchange: Exchange) -> Response | None:
    for step in steps:
        answer = step(exchange)
        if answer is not None:
            return answer
    return None


def view_of(exchange: Exchange) -> "LazyView[Exchange]":
    """What expressions see of an exchange; made when the first of them asks."""
    view = exchange.view
    if view is None:
        view = exchange.view = LazyView(exchange, LOADERS)
    return view


def compile_zone(rules: ZoneRules, tools: Tools) -> Pipeline:
    """A zone's pipeline. A paused zone has none of the phases."""
    if rules.facts.paused:
        return Pipeline(rules.facts, (), (), 0)
    return Pipeline(
        rules.facts,
        [step for phase in REQUEST_PHASES if (step := phase.compile(rules, tools)) is not None],
        [step for phase in RESPONSE_PHASES if (step := phase.compile(rules, tools)) is not None],
        max((phase.body_octets(rules) for phase in REQUEST_PHASES), default=0),
    )
