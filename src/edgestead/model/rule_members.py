"""The members of a rule that its writer decides.

Owns  which members of a rule are sent back when it is replaced, exported or copied to another server.
Not   what a member may hold (`usecases.ruleset`); those that the server adds: id, version, last change.
"""

from typing import Any

RULE_MEMBERS = (
    "action",
    "expression",
    "description",
    "enabled",
    "ref",
    "action_parameters",
    "ratelimit",
    "logging",
    "exposed_credential_check",
)


def sent_back(rule: dict[str, Any]) -> dict[str, Any]:
    """What to send to keep a rule as it is: the API replaces a rule as a whole."""
    return {name: rule[name] for name in RULE_MEMBERS if name in rule}
