"""The phase http_response_compression: which codings an answer may have.

Owns  the act of `compress_response`.
Not   whether an answer may be compressed at all, and compressing it (`exchanges.packing`).

The last rule that matches decides. Of its algorithms the first one that the client accepts is taken; `auto`
and `default` stand for any, `none` ends the list.
"""

from edgestead.edge.exchanges.exchange import Exchange
from edgestead.edge.exchanges.packing import CHOICE
from edgestead.edge.rules.rules import Act, Place, Rule, body_octets, compile_phase
from edgestead.edge.tools.phase import Step, Tools, ZoneRules
from edgestead.language import View

PHASE = "http_response_compression"


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(rules, PHASE, _compress)


def octets(rules: ZoneRules) -> int:
    return body_octets(rules, PHASE)


def _compress(rule: Rule, place: Place) -> Act | None:
    if rule.action != "compress_response":
        return None
    names = tuple(one["name"] for one in rule.action_parameters["algorithms"])

    def act(exchange: Exchange, view: View) -> None:
        if exchange.keep is None:
            exchange.keep = {}
        exchange.keep[CHOICE] = names

    return act
