"""`edgecli waf suggest`: from requests known to be good, what lets them pass, ready for the API.

Owns  its arguments, the proposals as requests to the API, sending them.
Not   choosing rules (`cli.waf.tuning`). Imports click and the standard library only.
"""

from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from edgestead.cli.failure import Failed, warn
from edgestead.cli.rule.target import ZONE, Target, zone_target
from edgestead.cli.table import show
from edgestead.cli.target import JSON, Command
from edgestead.cli.waf.requests import CRS, FILE, all_samples, load_rules, name_of, total_bytes
from edgestead.cli.waf.zone import Deployed, find, threshold_of
from edgestead.model import managed_settings as deployed

if TYPE_CHECKING:
    from edgestead.cli.waf.tuning import Proposal, Suggester

MANAGED_ID = "4814384a9e5d4991b9815dcfc25d2f1f"  # where no zone is asked
_SAID = ("action", "expression", "action_parameters", "enabled")  # what of a rule makes a difference
Json = dict[str, Any]


class Place(NamedTuple):
    """The zone that is to be changed, and the rule of it that executes the managed ruleset."""

    target: Target
    found: Deployed


@click.command("suggest", cls=Command)
@FILE
@CRS
@click.option("--level", type=click.IntRange(1, 4), help="Paranoia level. Default: the zone's, else 4.")
@click.option("--threshold", metavar="N", callback=threshold_of, help="Default: the zone's, else 40.")
@ZONE
@click.option("--dry-run", is_flag=True, help="Ask the zone's server whether it would take all of it.")
@click.option("--apply", is_flag=True, help="Send all of it to the zone's server.")
@JSON
def suggest(
    file: BinaryIO,
    crs: str | None,
    level: int | None,
    threshold: int | None,
    zone: str | None,
    dry_run: bool,
    apply: bool,
    as_json: bool,
) -> None:
    """Print exceptions and overrides that let the requests of FILE pass, each with its evidence.

    FILE holds requests known to be good: a HAR file, an access log, or lines of JSON; - is standard input. A
    rule that is in the way on few paths is left out there, on many it is turned off. --json prints each
    change as the request to the API that makes it.

    \b
      edgecli waf suggest good.jsonl --zone example.com --dry-run
    """
    if dry_run and apply:
        raise click.UsageError("--dry-run and --apply exclude each other.")
    place = _place(zone) if zone is not None or dry_run or apply else None
    settings = _settings(place)
    suggester = _gathered(file, crs, level or settings[0], threshold or settings[1])
    proposals = suggester.proposals()
    changes = [_change(place, proposal) for proposal in proposals]
    show(_told(suggester, changes), lambda: _echo(suggester, proposals, changes), as_json=as_json)
    if place is not None and (dry_run or apply):
        for change in changes:
            _make(place, change, dry_run=dry_run, as_json=as_json)
        if not as_json:
            click.echo("The server would take all of it." if dry_run else "Done.")


def _gathered(file: BinaryIO, crs: str | None, level: int, threshold: int) -> "Suggester":
    from edgestead.cli.progress import Progress
    from edgestead.cli.waf.tuning import Judge, Suggester
    from edgestead.edge.tools.texts import normal_path

    judge, suggester, unread = Judge(load_rules(crs, fast=True).engine), Suggester(level, threshold), 0
    with Progress("Reading", "requests", total_bytes(file)) as progress:
        for sample, bytes_ in all_samples(file):
            if sample is None:
                unread += 1
            else:
                path = normal_path(sample.request.target.partition(b"?")[0]).decode("utf-8", "replace")
                suggester.add(sample.source, sample.request, path, judge.outcome(sample.request))
            progress.advance(bytes_, 1)
    if not suggester.requests:
        raise Failed(f"{name_of(file)} holds no request.")
    if unread:
        warn(f"{unread} lines hold no request and were passed over.")
    for reason, count in suggester.refused.items():
        warn(f"{count} requests cannot be inspected whole ({reason}); no exception helps them.")
    return suggester


def _place(zone: str | None) -> Place:
    target = zone_target(zone)
    found = find(target)
    if found.rule is None:
        raise Failed(
            f"{target.name} does not execute the managed ruleset.", "`edgecli waf level N --deploy` makes it."
        )
    return Place(target, found)


def _settings(place: Place | None) -> tuple[int, int]:
    """(level, threshold) that the zone has."""
    if place is None or place.found.rule is None:
        return deployed.LEVELS[-1], deployed.THRESHOLDS["medium"]
    settings = deployed.settings_of(place.found.rule, place.found.managed["rules"][-1])
    return settings.level or deployed.LEVELS[-1], settings.threshold


def _change(place: Place | None, proposal: "Proposal") -> Json:
    """A proposal as a request to the API, with its evidence."""
    from edgestead.crs.catalogue import entry_id

    ids = [entry_id(rule_id) for rule_id in proposal.rules]
    managed_id = place.found.managed["id"] if place else MANAGED_ID
    request = (
        _exception(place, managed_id, ids, proposal) if proposal.paths else _override(place, managed_id, ids)
    )
    evidence = [one._asdict() for one in proposal.evidence]
    return {
        "kind": "exception" if proposal.paths else "override",
        "rules": list(proposal.rules),
        "requests": proposal.requests,
        "evidence": evidence,
        "request": request,
    }


def _exception(place: Place | None, managed_id: str, ids: list[str], proposal: "Proposal") -> Json:
    body = {
        "action": "skip",
        "expression": path_expression(proposal.paths),
        "description": f"Good requests meet {', '.join(map(str, proposal.rules))}",
        "enabled": True,
        "action_parameters": {"rules": {managed_id: ids}},
        "position": {"before": ""},
    }
    path = (
        f"{place.target.path}/{place.found.ruleset_id}/rules"
        if place
        else "/zones/ZONE/rulesets/RULESET/rules"
    )
    return {"method": "POST", "path": path, "body": body}


def _override(place: Place | None, managed_id: str, ids: list[str]) -> Json:
    rule = place.found.rule if place else None
    body = deployed.with_rules_off(rule or deployed.new_rule(managed_id), ids)
    path = "/zones/ZONE/rulesets/RULESET/rules/RULE"
    if place and rule:
        path = f"{place.target.path}/{place.found.ruleset_id}/rules/{rule['id']}"
    return {"method": "PATCH", "path": path, "body": body}


def path_expression(paths: tuple[str, ...]) -> str:
    """The condition that a request's path is one of these."""
    quoted = ['"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' for path in paths]
    if len(quoted) == 1:
        return f"http.request.uri.path eq {quoted[0]}"
    return f"http.request.uri.path in {{{' '.join(quoted)}}}"


def _make(place: Place, change: Json, *, dry_run: bool, as_json: bool) -> None:
    """Send a change and say so at once: the next one may fail. What an earlier run made is not made again."""
    request = change["request"]
    named = f"the {change['kind']} for {', '.join(map(str, change['rules']))}"
    if any(_is_same(rule, request["body"]) for rule in place.found.rules):
        click.echo(f"{place.target.name} has {named} already.", err=as_json)
        return
    query = {"dry_run": "true"} if dry_run else {}
    place.target.api.call(
        request["method"], request["path"], query=query, json_body=request["body"], repeat=False
    )
    if not dry_run:
        click.echo(f"Made {named}.", err=as_json)


def _is_same(rule: Json, body: Json) -> bool:
    return all(rule.get(member) == body.get(member) for member in _SAID)


def _told(suggester: "Suggester", changes: list[Json]) -> Json:
    return {
        "level": suggester.level,
        "threshold": suggester.threshold,
        "requests": suggester.requests,
        "stopped": len(suggester.stopped),
        "changes": changes,
    }


def _echo(suggester: "Suggester", proposals: "list[Proposal]", changes: list[Json]) -> None:
    from edgestead.cli.table import words

    click.echo(
        f"{len(suggester.stopped)} of {suggester.requests} good requests would be stopped at level"
        f" {suggester.level}, threshold {suggester.threshold}."
    )
    for proposal, change in zip(proposals, changes, strict=True):
        where = ", ".join(map(words, proposal.paths)) or "everywhere"
        verb = "Leave out" if proposal.paths else "Turn off"
        click.echo(f"\n{verb} {', '.join(map(str, proposal.rules))}: {where}")
        click.echo(f"  helps {proposal.requests} requests, such as")
        for one in proposal.evidence:
            click.echo(
                f"    {words(one.source)}  {words(one.request)}  {words(one.variable)}: {words(one.matched)}"
            )
        if change["kind"] == "exception":
            click.echo(f"  when {words(change['request']['body']['expression'])}")
    if proposals:
        click.echo(f"\nStill stopped with all of it: {suggester.left(proposals)}.")
