"""`edgecli waf`: show and set what a zone does with the managed ruleset; its events.

Owns  arguments, options and output of three commands.
Not   the API's rules. Imports click and the standard library only.
"""

from collections.abc import Callable
from typing import Any

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed
from edgestead.cli.rule.entrypoint import add_rule, ruleset_at
from edgestead.cli.rule.target import JSON, ZONE, Command, Target, zone_target
from edgestead.cli.table import show_one
from edgestead.cli.waf.events import events
from edgestead.cli.waf.explain import explain, replay
from edgestead.cli.waf.learn import learn
from edgestead.cli.waf.suggest import suggest
from edgestead.cli.waf.zone import PHASE, Deployed, find, threshold_of
from edgestead.model import managed_settings as deployed

DEPLOY = click.option(
    "--deploy", is_flag=True, help="Deploy the managed ruleset to the zone first, if it is not there."
)
Json = dict[str, Any]


@click.group(short_help="Show and set a zone's use of the managed OWASP ruleset; its security events.")
def waf() -> None:
    """Show and set what a zone does with the managed OWASP ruleset, and what became of requests."""


for command in (events, explain, learn, replay, suggest):
    waf.add_command(command)


@waf.command("show", cls=Command)
@ZONE
@JSON
def show(zone: str | None, as_json: bool) -> None:
    """Print paranoia level, score threshold and action, and whether the rule that acts is on.

    \b
      edgecli waf show --zone example.com
    """
    target = zone_target(zone)
    found = find(target)
    _print(target, found, as_json)


@waf.command("level", cls=Command)
@click.argument("level", metavar="N", type=click.IntRange(1, 4))
@ZONE
@DEPLOY
@DRY_RUN
@JSON
def set_level(level: int, zone: str | None, deploy: bool, as_json: bool) -> None:
    """Set the paranoia level to N, 1 to 4: rules of higher levels are off.

    Everything else that the zone's rule says stays as it is. A zone whose rule that acts is off is warned of.

    \b
      edgecli waf level 2 --deploy --zone example.com
    """
    _change(zone, deploy, lambda rule, _: deployed.with_level(rule, level), as_json=as_json)


@waf.command("threshold", cls=Command)
@click.argument("threshold", metavar="[N]", callback=threshold_of, required=False)
@click.option("--action", type=click.Choice(deployed.ACTIONS), help="What happens to such requests.")
@ZONE
@DEPLOY
@DRY_RUN
@JSON
def set_threshold(
    threshold: int | None, action: str | None, zone: str | None, deploy: bool, as_json: bool
) -> None:
    """Act on requests whose score is at least N: a number, or low (60), medium (40), high (25).

    The rule that acts is turned on if it was off. Everything else that the zone's rule says stays as it is.

    \b
      edgecli waf threshold 25 --action block
      edgecli waf threshold high --dry-run
    """
    if threshold is None and action is None:
        raise click.UsageError("N, --action or both are needed.")

    def change(rule: Json, anomaly: Json) -> Json:
        return deployed.with_threshold(rule, anomaly["id"], threshold, action)

    _change(zone, deploy, change, as_json=as_json)


def _change(zone: str | None, deploy: bool, change: Callable[[Json, Json], Json], *, as_json: bool) -> None:
    """Read the rule, change it, send all of it back, and show what it is now."""
    target = zone_target(zone)
    found = find(target)
    anomaly = found.managed["rules"][-1]
    if found.rule is None:
        if not deploy:
            raise Failed(
                f"{target.name} does not execute the managed ruleset.",
                "The same command with --deploy adds the rule that does.",
            )
        managed_id = found.managed["id"]
        rule = change(deployed.new_rule(managed_id), anomaly)
        there = ruleset_at(target.api, target.entrypoint(PHASE))
        add_rule(target, PHASE, there, rule, {}, rivals=lambda one: deployed.executes(one, managed_id))
    else:
        path = f"{target.path}/{found.ruleset_id}/rules/{found.rule['id']}"
        query = {"if_version": found.rule["version"]}
        target.api.call("PATCH", path, query=query, json_body=change(found.rule, anomaly))
    _print(target, find(target), as_json)


def _warn_if_idle(settings: deployed.Settings) -> None:
    """Somebody who sets a level wants protection: what keeps it from happening is said aloud."""
    if not settings.enabled:
        click.echo("Warning: the rule that executes the managed ruleset is disabled.", err=True)
    if not settings.acts:
        click.echo(
            "Warning: no request is acted on, because the overrides turn off the rule that acts on scores."
            " `edgecli waf threshold N` turns it on.",
            err=True,
        )


def _print(target: Target, found: Deployed, as_json: bool) -> None:
    managed = found.managed
    settings = None
    if found.rule is not None:
        settings = deployed.settings_of(found.rule, managed["rules"][-1])
    facts = {
        "zone": target.name,
        "ruleset": managed["id"],
        "version": managed["version"],
        "deployed": settings is not None,
        **(settings._asdict() if settings else {}),
    }
    ruleset = f"{managed['name']}, version {managed['version']}"
    shown = [("zone", target.name), ("ruleset", ruleset), *_members(settings)]
    show_one(facts, lambda _: shown, as_json=as_json)
    if settings is not None and not as_json:
        _warn_if_idle(settings)


def _members(settings: deployed.Settings | None) -> list[tuple[str, object]]:
    if settings is None:
        return [("deployed", "no")]
    off = ", ".join(map(str, settings.disabled_levels))
    return [
        ("deployed", "yes" if settings.enabled else "yes, but the rule is disabled"),
        ("level", f"all but {off}" if settings.level is None else settings.level or "none"),
        ("threshold", settings.threshold),
        ("action", settings.action if settings.acts else "none: the rule that acts on scores is off"),
    ]
