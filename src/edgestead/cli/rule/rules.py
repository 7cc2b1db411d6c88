"""`edgecli rule list|get|add|edit|move|remove`.

Owns  arguments, options and output; how a change becomes the whole rule that the API replaces.
Not   what is right: the server says, and `--dry-run` asks it without a change. Imports click and the standard
      library only.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import click

from edgestead.cli.dry_run import DRY_RUN as UNSENT
from edgestead.cli.failure import Failed, confirmed, listed
from edgestead.cli.rule.entrypoint import add_rule, ruleset_at
from edgestead.cli.rule.phases import PHASES, WORDS, full_name, word_of
from edgestead.cli.rule.target import JSON, ZONE, Command, Target, zone_target
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import ALREADY_JSON, YES, Json

_HEADS = ("phase", "place", "id", "on", "action", "expression", "description")
# What the server answers and does not take back.
_ANSWERED = ("id", "version", "last_updated", "categories")

RULE = click.argument("rule", metavar="RULE")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Let the server check it, and change nothing.")

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Found(NamedTuple):
    """A rule where it is. `place` counts from 1."""

    ruleset: Json
    rule: Json
    place: int


def _parameters(ctx: click.Context, param: click.Parameter, value: str | None) -> Json | None:
    if value is None:
        return None
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}.", ctx, param) from None
    if not isinstance(parsed, dict):
        raise click.BadParameter("is not a JSON object.", ctx, param)
    return parsed


def _members(command: Decorated) -> Decorated:
    """The members of a rule that an option sets."""
    for option in (
        click.option("--on/--off", "enabled", default=None, help="Whether it counts."),
        click.option("--ref", metavar="REF", help="A name for scripts, unique in the phase."),
        click.option("--description", metavar="TEXT", help="What it is for."),
        click.option(
            "--parameters",
            "action_parameters",
            metavar="JSON",
            callback=_parameters,
            help="The action's parameters, a JSON object.",
        ),
        click.option(
            "--ratelimit",
            metavar="JSON",
            callback=_parameters,
            help="Of a rate limit: what is counted, and how.",
        ),
    ):
        command = option(command)
    return command


def _place(command: Decorated) -> Decorated:
    for option in (
        click.option(
            "--place", metavar="N", type=click.IntRange(min=1), help="Make it the N-th of its phase."
        ),
        click.option("--after", metavar="RULE", help="Put it right behind this one."),
        click.option("--before", metavar="RULE", help="Put it right before this one."),
    ):
        command = option(command)
    return command


@click.command("list", cls=Command)
@click.argument("phase", metavar="[PHASE]", required=False)
@ZONE
@JSON
def list_rules(phase: str | None, zone: str | None, as_json: bool) -> None:
    """List the rules of a zone, or of one PHASE, in the order of evaluation.

    \b
      edgecli rule list custom --zone example.com
    """
    target = zone_target(zone)
    rows = [
        {"phase": found.ruleset["phase"], "place": found.place, **found.rule}
        for found in every_rule(target, full_name(phase) if phase else None)
    ]
    show_list(rows, _HEADS, _row, as_json=as_json)


@click.command("get", cls=Command)
@RULE
@ZONE
@ALREADY_JSON
def get(rule: str, zone: str | None) -> None:
    """Print a rule as JSON, by its id or ref.

    \b
      edgecli rule get bots
    """
    from edgestead.cli.output import echo_object

    echo_object(_find(zone_target(zone), rule).rule.items())


@click.command(
    "add",
    cls=Command,
    epilog="Phases: "
    + ", ".join(PHASES)
    + ". The action of `transform`, `request-headers` and `response-headers`"
    " is rewrite, of `origin` route, of `redirect` redirect.",
)
@click.argument("phase", metavar="PHASE")
@click.argument("action", metavar="ACTION")
@click.argument("expression", metavar="EXPRESSION", default="true")
@_members
@_place
@ZONE
@DRY_RUN
@JSON
def add(
    phase: str,
    action: str,
    expression: str,
    before: str | None,
    after: str | None,
    place: int | None,
    zone: str | None,
    dry_run: bool,
    as_json: bool,
    **members: Any,
) -> None:
    """Add a rule to PHASE: ACTION for requests that match EXPRESSION, all of them by default.

    \b
    Examples:
      edgecli rule add custom block 'http.request.uri.path eq "/admin" and ip.src ne 192.0.2.7'
      edgecli rule add custom managed_challenge 'http.user_agent contains "bot"' --description 'slow bots'
      edgecli rule add ratelimit block --ratelimit '{"characteristics": ["ip.src"], "period": 60,
        "requests_per_period": 100, "mitigation_timeout": 60}'
      edgecli rule add redirect redirect 'http.request.uri.path eq "/old"' --parameters
        '{"from_value": {"target_url": {"value": "/new"}, "status_code": 301}}'
    """
    target = zone_target(zone)
    entrypoint = _entrypoint(target, full_name(phase))
    body = {"action": action, "expression": expression, **_said(members)}
    position = _position(target, before, after, place)
    query = {"dry_run": "true"} if dry_run else None
    after_it, new = add_rule(target, full_name(phase), entrypoint, body, position, query)
    _tell("Added", Found(after_it, new, _place_of(after_it, new)), dry_run=dry_run, as_json=as_json)


@click.command("edit", cls=Command)
@RULE
@click.option("--action", metavar="ACTION", help="What it does.")
@click.option("--expression", metavar="EXPRESSION", help="Which requests it is for.")
@_members
@ZONE
@DRY_RUN
@JSON
def edit(rule: str, zone: str | None, dry_run: bool, as_json: bool, **members: Any) -> None:
    """Change some members of a rule; what is not named stays. `--description ''` clears the description.

    \b
      edgecli rule edit bots --expression 'http.user_agent contains "crawler"'
      edgecli rule edit bots --off --dry-run
    """
    said = _said(members)
    if not said:
        raise click.UsageError("Name what should change: --expression, --action, --on, --off …")
    target = zone_target(zone)
    _change(target, _find(target, rule), said, "Changed", dry_run=dry_run, as_json=as_json)


@click.command("move", cls=Command)
@RULE
@_place
@ZONE
@DRY_RUN
@JSON
def move(
    rule: str,
    before: str | None,
    after: str | None,
    place: int | None,
    zone: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give a rule another place in its phase; rules are looked at in their order.

    \b
      edgecli rule move bots --place 1
    """
    target = zone_target(zone)
    position = _position(target, before, after, place)
    if not position:
        raise click.UsageError("Say where: --before RULE, --after RULE or --place N.")
    _change(target, _find(target, rule), position, "Moved", dry_run=dry_run, as_json=as_json)


@click.command("remove", cls=Command)
@RULE
@ZONE
@YES
@UNSENT
@JSON
def remove(rule: str, zone: str | None, yes: bool, as_json: bool) -> None:
    """Remove a rule, after a y/n question. `edgecli rule edit RULE --off` keeps it for later.

    \b
      edgecli rule remove bots --yes
    """
    target = zone_target(zone)
    found = _find(target, rule)
    question = f"Remove the rule {_described(found)} of {target.name}?"
    if confirmed(question, yes=yes, verb="remove", quiet=as_json):
        target.api.call("DELETE", _path(target, found), repeat=False)
        show_lines(found.rule, f"Removed the rule {_described(found)}.", as_json=as_json)


def every_rule(target: Target, phase: str | None = None) -> Iterator[Found]:
    """The rules of a zone's entry points, in the order of evaluation. Raises Failed: no such phase."""
    rulesets = target.api.call("GET", target.path)["result"]
    here = {one["phase"]: one for one in rulesets if one["kind"] == "zone"}
    order = [*PHASES.values(), *sorted(here.keys() - WORDS.keys())]
    for name in order if phase is None else [phase]:
        entrypoint = _entrypoint(target, name) if name in here or name == phase else None
        for place, rule in enumerate((entrypoint or {}).get("rules", ()), 1):
            assert entrypoint is not None
            yield Found(entrypoint, rule, place)


def _entrypoint(target: Target, phase: str) -> Json | None:
    """The zone's ruleset of a phase; None while it has none. Raises Failed, Refused."""
    from edgestead.cli.http import Refused

    try:
        return ruleset_at(target.api, target.entrypoint(phase))
    except Refused as refusal:
        raise Failed(*refusal.messages, f"Phases: {', '.join(PHASES)}, or the full name of one.") from None


def _find(target: Target, rule: str) -> Found:
    """Raises Failed: none, or several of that ref."""
    found = [one for one in every_rule(target) if rule in (one.rule["id"], one.rule.get("ref"))]
    if not found:
        raise Failed(
            f"{target.name} has no rule {rule}.", "`edgecli rule list` shows its rules with their ids."
        )
    if len(found) > 1:
        phases = listed(word_of(one.ruleset["phase"]) for one in found)
        raise Failed(f"Rules of several phases have the ref {rule}: {phases}.", "Name one by its id.")
    return found[0]


def _position(target: Target, before: str | None, after: str | None, place: int | None) -> Json:
    """Raises click.UsageError, Failed."""
    if sum(one is not None for one in (before, after, place)) > 1:
        raise click.UsageError("--before, --after and --place exclude one another.")
    if before is not None:
        return {"position": {"before": _find(target, before).rule["id"]}}
    if after is not None:
        return {"position": {"after": _find(target, after).rule["id"]}}
    return {} if place is None else {"position": {"index": place}}


def _change(target: Target, found: Found, said: Json, verb: str, *, dry_run: bool, as_json: bool) -> None:
    """The API replaces a rule as a whole, so all that it says is sent again."""
    kept = {name: value for name, value in found.rule.items() if name not in _ANSWERED}
    if said.get("action", kept["action"]) != kept["action"]:
        kept.pop("action_parameters", None)  # of the old action
    query = {"if_version": found.rule["version"]} | ({"dry_run": "true"} if dry_run else {})
    path = _path(target, found)
    body = {**kept, **said}
    answered = target.api.call("PATCH", path, query=query, json_body=body, repeat=False)["result"] or {}
    now = next((one for one in answered.get("rules", ()) if one["id"] == found.rule["id"]), found.rule)
    _tell(verb, Found(answered, now, _place_of(answered, now)), dry_run=dry_run, as_json=as_json)


def _path(target: Target, found: Found) -> str:
    return f"{target.path}/{found.ruleset['id']}/rules/{found.rule['id']}"


def _place_of(ruleset: Json, rule: Json) -> int:
    return next(
        (n for n, one in enumerate(ruleset.get("rules", ()), 1) if one.get("id") == rule.get("id")), 0
    )


def _said(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}


def _tell(verb: str, found: Found, *, dry_run: bool, as_json: bool) -> None:
    if dry_run:
        click.echo("The server would take it. Nothing is changed.")
        return
    line = f"{verb} the rule {_described(found)}: number {found.place} of {word_of(found.ruleset['phase'])}."
    show_lines(found.rule, line, as_json=as_json)


def _described(found: Found) -> str:
    name = found.rule.get("description") or found.rule["expression"]
    return f"{found.rule['id']} ({found.rule['action']}: {name})"


def _row(rule: Json) -> tuple[object, ...]:
    phase = word_of(rule["phase"])
    members = (rule["id"], rule.get("enabled", True), rule["action"], rule["expression"])
    return (phase, rule["place"], *members, rule.get("description"))
