"""Requests and rules for tests of phases, made from as little as a test has to say."""

from typing import Any

import msgspec

from edgestead.edge.exchanges.exchange import Exchange, ResponseHead, ZoneFacts
from edgestead.edge.phases.pipeline import Pipeline, compile_zone
from edgestead.edge.tools.phase import Tools, ZoneRules
from edgestead.http1.head import by_name
from edgestead.model.events import Decision
from edgestead.model.ruleset_document import RulesetDocument

ZONE_ID = "5" * 32
NOW_US = 1_700_000_000_250_000
BROWSER = [
    (b"user-agent", b"Browser/1.0"),
    (b"accept", b"text/html,application/xhtml+xml,*/*;q=0.8"),
    (b"accept-language", b"en"),
]


class Seen:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    def decided(self, exchange: Exchange, decision: Decision) -> None:
        self.decisions.append(decision)

    def refused(
        self, client: str, ray: bytes, status: int, reason: str, method: bytes, host: bytes, target: bytes
    ) -> None:
        self.decisions.append(Decision("http", "refuse", status, reason=reason))

    def failed(self, exchange: Exchange, status: int, reason: str) -> None:
        self.decisions.append(Decision("origin", "fail", status, reason=reason))

    @property
    def actions(self) -> list[str]:
        return [decision.action for decision in self.decisions]


def ask(target: str = "/", **about: Any) -> Exchange:
    """A GET of `target`, over http, by 192.0.2.7, of the test zone. `zone` are its settings."""
    settings = about.pop("zone", {})
    facts: dict[str, Any] = {
        "client": "192.0.2.7",
        "peer": "192.0.2.7",
        "scheme": b"http",
        "port": 8080,
        "version": b"HTTP/1.1",
        "method": b"GET",
        "target": target.encode("latin-1"),
        "headers": list(about.pop("headers", ())),
        "host": b"www.example.com",
        "zone": ZoneFacts(ZONE_ID, b"example.com", "a" * 32, "free", settings),
        "ray": b"ray-1",
        "arrived_us": NOW_US,
    }
    body = about.pop("body", None)
    facts.update(about)
    exchange = Exchange(**facts, by_name=by_name(facts["headers"]))
    if body is not None:
        exchange.body, exchange.body_length = body, len(body)
    return exchange


def answer(exchange: Exchange, status: int = 200, headers: Any = (), from_origin: bool = True) -> Exchange:
    """The same request, with an answer."""
    exchange.response = ResponseHead(status, list(headers), from_origin)
    return exchange


def rule(action: str, expression: str = "true", **more: Any) -> dict[str, Any]:
    return {"action": action, "expression": expression, "enabled": True, "version": "1", **more}


def ruleset(phase: str, rules: list[dict[str, Any]], kind: str = "zone", id_: str = "") -> RulesetDocument:
    """Rules without an id are numbered from 1: `r1`, `r2`."""
    numbered = [{"id": f"r{number}", **one} for number, one in enumerate(rules, 1)]
    return RulesetDocument(
        id_ or f"{kind}-{phase}", kind, phase, "1", msgspec.Raw(msgspec.json.encode(numbered))
    )


class Edge:
    """One zone's pipeline, and what it decided."""

    def __init__(self, tools: Tools, seen: Seen) -> None:
        self.tools = tools
        self.seen = seen
        self.pipeline: Pipeline

    def serve(
        self,
        phase: str = "http_request_firewall_custom",
        zone: list[dict[str, Any]] | None = None,
        account: list[dict[str, Any]] | None = None,
        custom: dict[str, list[dict[str, Any]]] | None = None,
        more: dict[str, list[dict[str, Any]]] | None = None,
        settings: dict[str, Any] | None = None,
    ) -> "Edge":
        """With these rules: the zone's and the account's in `phase`, the zone's in others (`more`)."""
        facts = ZoneFacts(ZONE_ID, b"example.com", "a" * 32, "free", settings or {})
        entrypoints = {} if zone is None else {phase: ruleset(phase, zone)}
        entrypoints |= {name: ruleset(name, rules) for name, rules in (more or {}).items()}
        self.pipeline = compile_zone(
            ZoneRules(
                facts,
                account={} if account is None else {phase: ruleset(phase, account, "root")},
                zone=entrypoints,
                by_id={id_: ruleset(phase, rules, "custom", id_) for id_, rules in (custom or {}).items()},
            ),
            self.tools,
        )
        return self

    def ask(self, target: str = "/", **about: Any) -> Any:
        """The edge's answer to a request, or what will be it later; None when it goes to the origin."""
        return self.pipeline.request(self._of_zone(target, about))

    def send(self, target: str = "/", **about: Any) -> Exchange:
        """A request that must go to the origin, as it goes."""
        exchange = self._of_zone(target, about)
        assert self.pipeline.request(exchange) is None
        return exchange

    def _of_zone(self, target: str, about: dict[str, Any]) -> Exchange:
        return ask(target, **{"zone": self.pipeline.facts.settings, **about})
