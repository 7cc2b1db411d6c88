"""A zone's use of the managed ruleset, as the commands of `edgecli waf` find it.

Owns  finding the ruleset and the rule that executes it; how a threshold is written.
Not   changing anything. Imports click and the standard library only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from edgestead.cli.failure import Failed
from edgestead.cli.rule.entrypoint import ruleset_at
from edgestead.cli.rule.target import Target
from edgestead.model import managed_settings as deployed

PHASE = "http_request_firewall_managed"
Json = dict[str, Any]


def threshold_of(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A score, or one of the named sensitivities."""
    if value is None:
        return None
    if value in deployed.THRESHOLDS:
        return deployed.THRESHOLDS[value]
    if value.isascii() and value.isdigit() and len(value) <= 7 and int(value) > 0:
        return int(value)
    words = ", ".join(deployed.THRESHOLDS)
    raise click.BadParameter(f"{value!r} is neither a score from 1 on nor one of {words}.", ctx, param)


class Deployed(NamedTuple):
    """The managed ruleset, and where the zone executes it; `rule` None where it does not.

    `rules` are all of the phase.
    """

    managed: Json
    ruleset_id: str | None
    rule: Json | None
    rules: Sequence[Json] = ()


def find(target: Target) -> Deployed:
    managed = managed_of(target)
    entrypoint = ruleset_at(target.api, target.entrypoint(PHASE))
    if entrypoint is None:
        return Deployed(managed, None, None)
    rules = [rule for rule in entrypoint["rules"] if deployed.executes(rule, managed["id"])]
    if len(rules) > 1:  # those that only log are scored beside the one that acts
        anomaly = managed["rules"][-1]
        rules = [rule for rule in rules if deployed.settings_of(rule, anomaly).action != "log"] or rules
    if len(rules) > 1:
        raise Failed(
            f"{target.name} executes the managed ruleset in {len(rules)} rules, each with its own settings.",
            f"`edgecli ruleset get {PHASE}` shows them; the API changes each by its id.",
        )
    return Deployed(managed, entrypoint["id"], rules[0] if rules else None, entrypoint["rules"])


def managed_of(target: Target) -> Json:
    listed = target.api.call("GET", target.account_path)["result"]
    for found in listed:
        if found["kind"] == "managed" and "OWASP" in found["name"]:
            whole: Json = target.api.call("GET", f"{target.account_path}/{found['id']}")["result"]
            return whole
    raise Failed(
        "The server has loaded no managed ruleset.",
        "Install modsecurity-crs on its machine (apt install modsecurity-crs), or start it with --crs PATH.",
    )
