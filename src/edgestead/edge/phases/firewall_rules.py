"""The phase http_request_firewall_custom: what an operator's own rules stop, challenge, log or skip.

Owns  the phase's name and its step.
Not   rate limits, the managed ruleset.
"""

from edgestead.edge.rules.acts import act_of
from edgestead.edge.rules.rules import body_octets, compile_phase
from edgestead.edge.tools.phase import Step, Tools, ZoneRules

PHASE = "http_request_firewall_custom"
BLOCK_STATUS = 403


def compile_rules(rules: ZoneRules, tools: Tools) -> Step | None:
    return compile_phase(
        rules, PHASE, lambda rule, place: act_of(rule, place, tools, block_status=BLOCK_STATUS)
    )


def octets(rules: ZoneRules) -> int:
    """How much of a body the rules look at."""
    return body_octets(rules, PHASE)
