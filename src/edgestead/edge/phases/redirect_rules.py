"""The phase http_request_dynamic_redirect: answers that send the client elsewhere.

Owns  the act of `redirect` with `from_value`.
Not   redirects from lists: there are none, such a rule never acts.
"""

from collections.abc import Callable
from typing import Any

from edgestead.edge.exchanges.exchange import Exchange, Response
from edgestead.edge.rules.acts import decision_of
from edgestead.edge.rules.rules import Act, Outcome, Place, Rule, body_octets, compile_phase
from edgestead.edge.tools import texts
from edgestead.edge.tools.phase import Silent, Step, Tools, ZoneRules
from edgestead.language import View, compile_value

PHASE = "http_request_dynamic_redirect"
STATUS_DEFAULT = 301


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(rules, PHASE, lambda rule, place: _redirect(rule, place, tools))


def octets(rules: ZoneRules) -> int:
    return body_octets(rules, PHASE)


def value_of(source: dict[str, Any], phase: str) -> Callable[[View], bytes | None]:
    """A static `value` or a computed `expression`. Raises FilterError."""
    if "expression" in source:
        return compile_value(source["expression"], phase)
    value = source["value"].encode()
    return lambda view: value


def _redirect(rule: Rule, place: Place, tools: Tools) -> Act | None:
    from_value = rule.action_parameters.get("from_value")
    if rule.action != "redirect" or from_value is None:
        return None
    target_of = value_of(from_value["target_url"], place.phase)
    status = from_value.get("status_code", STATUS_DEFAULT)
    keeps_query = from_value.get("preserve_query_string", False)
    decision = decision_of(rule, place, status)
    decided = tools.observer.decided if rule.logs else Silent().decided

    def act(exchange: Exchange, view: View) -> Outcome:
        target = target_of(view)
        if not target:  # computed from something that this request lacks
            return None
        if keeps_query and exchange.query:
            target = _with_query(target, exchange.query)
        decided(exchange, decision)
        return Response(status, [(b"location", texts.safe_location(target))])

    return act


def _with_query(target: bytes, query: bytes) -> bytes:
    url, hash_, fragment = target.partition(b"#")
    return b"%b%b%b%b%b" % (url, b"&" if b"?" in url else b"?", query, hash_, fragment)
