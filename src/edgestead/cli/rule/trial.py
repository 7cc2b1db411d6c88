"""`edgecli rule test`: what the rules of a zone would do with a request.

Owns  the options, the line of each rule.
Not   the request and what rules do with it (`edge.phases.trial`).
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.failure import Failed, listed
from edgestead.cli.rule.phases import full_name, word_of
from edgestead.cli.table import show_list
from edgestead.cli.target import JSON, ZONE, Command, Json, api, zone_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_HEADS = ("level", "phase", "place", "matches", "action", "expression", "description", "does")


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
    """Say what each rule would do with a request for URL, in the order of evaluation. No request is sent.

    Rules that a skip leaves out, or behind one that ends the request, are shown, too, with the reason. Rate
    limits are tried as if they had counted nothing yet, the managed rules as if they let everything pass;
    `edgecli waf explain` tries these. What the edge would answer is said at the end, on standard error.

    \b
      edgecli rule test https://www.example.com/admin --ip 192.0.2.7
    """
    from edgestead.edge.phases import trial
    from edgestead.language import FilterError

    try:
        lines = [trial.header_of(line) for line in headers]
        trial.request_of(url, client=ip)  # before anything is asked
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    server = api()
    found = zone_of(server, zone)
    wanted = full_name(phase) if phase else None
    if expression is not None:
        own = {"id": "own", "action": "log", "expression": expression, "enabled": True}
        entry = {"kind": "zone", "phase": wanted or "http_request_firewall_custom", "rules": [own]}
        gathered = trial.Gathered(trial.Rulesets([entry]), trial.NO_ZONE, [])
    else:
        gathered = _gathered(server, trial.gathering(found))
    request = trial.request_of(
        url, method=method.upper(), headers=lines, client=ip, body=_body(data), zone=gathered.facts
    )
    try:
        outcome = trial.tried(gathered.rulesets, request)
    except FilterError as error:
        raise Failed(f"{error}") from None
    rows = [
        {**one.rule, **{name: value for name, value in one._asdict().items() if name != "rule"}}
        for one in outcome.rows
        if wanted in (None, one.phase)
    ]
    show_list(rows, _HEADS, _row, as_json=as_json)
    if gathered.unseen:
        click.echo(
            f"Not looked at, as these credentials may not read them: {listed(gathered.unseen)}.", err=True
        )
    said = f"The edge answers {outcome.status}: " if outcome.status else "The origin is asked"
    click.echo(f"{said}{outcome.why}.", err=True)


def _gathered(server: "Api", asking: Generator[str, Any, Any]) -> Any:
    """Ask the server what it wants to know; what that refuses is unseen."""
    from edgestead.cli.http import Refused

    answer = None
    while True:
        try:
            path = asking.send(answer)
        except StopIteration as done:
            return done.value
        try:
            answer = server.call("GET", path)["result"]
        except Refused as refusal:
            if refusal.status not in (403, 404):
                raise
            answer = None


def _body(data: str | None) -> bytes:
    if data is None:
        return b""
    if not data.startswith("@"):
        return data.encode()
    return Path(data[1:]).read_bytes()


def _row(rule: Json) -> tuple[object, ...]:
    matches = rule["matches"] if rule["reached"] or rule["matches"] != "yes" else "yes, not reached"
    place = f"in {rule['place']}" if rule["by"] else rule["place"]
    what = (rule["action"], rule["expression"], rule.get("description"))
    return (rule["level"], word_of(rule["phase"]), place, matches, *what, rule["does"])
