"""The phase http_request_origin: where a request goes instead of where its record says.

Owns  the act of `route`.
Not   connecting, and which targets are refused.
"""

from typing import Any

from edgestead.edge.exchanges.exchange import Exchange
from edgestead.edge.rules.rules import Act, Place, Rule, body_octets, compile_phase
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.language import View

PHASE = "http_request_origin"


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(rules, PHASE, _route)


def octets(rules: ZoneRules) -> int:
    return body_octets(rules, PHASE)


def _route(rule: Rule, place: Place) -> Act | None:
    """Every rule that matches acts: what a later one names takes the place of what an earlier one did."""
    if rule.action != "route":
        return None
    parameters = rule.action_parameters
    origin = parameters.get("origin", {})
    named: dict[str, Any] = {
        "host_header": _octets(parameters.get("host_header")),
        "sni": _octets(parameters.get("sni", {}).get("value")),
        "host": _octets(origin.get("host")),
        "port": origin.get("port"),
    }
    changes = [(name, value) for name, value in named.items() if value is not None]

    def act(exchange: Exchange, view: View) -> None:
        choice = exchange.choose_origin()
        for name, value in changes:
            setattr(choice, name, value)

    return act


def _octets(text: str | None) -> bytes | None:
    return None if text is None else text.encode("ascii").lower()
