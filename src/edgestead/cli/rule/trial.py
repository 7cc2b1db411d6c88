"""`edgecli rule test`: which rules of a zone a request would match.

Owns  the options, the line of each rule.
Not   the request and which rules match it (`edge.rules.trial`).
"""

from pathlib import Path

import click

from edgestead.cli.failure import Failed
from edgestead.cli.rule.phases import full_name, word_of
from edgestead.cli.rule.rules import Found, every_rule
from edgestead.cli.rule.target import JSON, ZONE, Command, zone_target
from edgestead.cli.table import show_list
from edgestead.cli.target import Json

_HEADS = ("phase", "place", "matches", "action", "expression", "description")


@click.command("test", cls=Command)
@click.argument("url", metavar="URL")
@click.option("-X", "--method", metavar="METHOD", default="GET", help="Its method; GET by default.")
@click.option(
    "headers", "-H", "--header", metavar="'NAME: VALUE'", multiple=True, help="One header; repeatable."
)
@click.option("--ip", metavar="ADDRESS", default="192.0.2.1", help="Its client; 192.0.2.1 by default.")
@click.option("--data", metavar="TEXT", help="Its body; @FILE reads one.")
@click.option("--phase", metavar="PHASE", help="Only the rules of this phase.")
@click.option(
    "expression", "--expression", metavar="EXPRESSION", help="Try this instead of the zone's rules."
)
@ZONE
@JSON
def try_request(
    url: str,
    method: str,
    headers: tuple[str, ...],
    ip: str,
    data: str | None,
    phase: str | None,
    expression: str | None,
    zone: str | None,
    as_json: bool,
) -> None:
    """Say which rules a request for URL would match, in the order of evaluation. No request is sent.

    Rules behind the first one that ends the request are shown, too, and marked. Skips, and what rate limits
    count, are not tried; `edgecli waf explain` tries the managed rules.

    \b
      edgecli rule test https://www.example.com/admin --ip 192.0.2.7
    """
    from edgestead.edge.rules import trial
    from edgestead.language import FilterError

    target = zone_target(zone)
    try:
        lines = [trial.header_of(line) for line in headers]
        request = trial.request_of(url, method=method.upper(), headers=lines, client=ip, body=_body(data))
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    wanted = full_name(phase) if phase else None
    if expression is not None:
        rules = [_own(expression, wanted or "http_request_firewall_custom")]
    else:
        rules = [found for found in every_rule(target, wanted) if not _needs_answer(found)]
    placed = [trial.Placed(found.ruleset["phase"], found.place, found.rule) for found in rules]
    rows: list[Json] = []
    try:
        for one in trial.tried(placed, request):
            said = {"phase": one.placed.phase, "place": one.placed.place}
            rows.append({**one.placed.rule, **said, "matches": one.matches, "reached": one.reached})
    except FilterError as error:
        raise Failed(f"{placed[len(rows)].rule['expression']}: {error}") from None
    show_list(rows, _HEADS, _row, as_json=as_json)


def _needs_answer(found: Found) -> bool:
    return str(found.ruleset["phase"]).startswith("http_response")


def _own(expression: str, phase: str) -> Found:
    return Found({"phase": phase}, {"action": "log", "expression": expression, "enabled": True}, 1)


def _body(data: str | None) -> bytes:
    if data is None:
        return b""
    if not data.startswith("@"):
        return data.encode()
    return Path(data[1:]).read_bytes()


def _row(rule: Json) -> tuple[object, ...]:
    matches = rule["matches"] if rule["reached"] or rule["matches"] != "yes" else "yes, not reached"
    phase = word_of(rule["phase"])
    return (phase, rule["place"], matches, rule["action"], rule["expression"], rule.get("description"))
