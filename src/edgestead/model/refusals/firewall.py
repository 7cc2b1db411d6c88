"""Refusals of access rules, user agent rules, and of the interfaces that were before rulesets.

Owns  code, status and wording of each.
Not   what the custom rules behind them are refused for (`model.refusals.ruleset`).

    NotFound (404)
    ├── FirewallRuleNotFound    10001
    ├── AgentRuleNotFound       10001
    └── OlderRuleNotFound       10001
    BadRequest (400)
    ├── FirewallRuleExists      10009
    ├── FirewallRuleRefused     10014
    ├── AgentRuleExists         10009
    ├── AgentRuleRefused        10014
    └── OlderRuleRefused        10014

Programs that ban addresses compare the words about access rules; what helps people is in their remarks.
"""

from edgestead.model.refusals import BadRequest, NotFound


class FirewallRuleNotFound(NotFound):
    code, wording = 10001, "firewallaccessrules.api.not_found"


class FirewallRuleExists(BadRequest):
    """The target has a rule."""

    code, wording = 10009, "firewallaccessrules.api.duplicate_of_existing"


class FirewallRuleRefused(BadRequest):
    code, wording = 10014, "firewallaccessrules.api.validation_error: {reason}"


class AgentRuleNotFound(NotFound):
    code, wording = 10001, "No such user agent rule."


class AgentRuleExists(BadRequest):
    code, wording = 10009, "The rule {rule_id} is about the same user agent."


class AgentRuleRefused(BadRequest):
    code, wording = 10014, "The user agent rule is invalid: {reason}."


class OlderRuleNotFound(NotFound):
    """`family` is what the older interface called them: filters, firewallrules, ratelimit and so on."""

    code, wording = 10001, "{family}.api.not_found"


class OlderRuleRefused(BadRequest):
    code, wording = 10014, "{family}.api.validation_error: {reason}"
