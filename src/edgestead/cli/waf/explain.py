"""`edgecli waf explain` and `edgecli waf replay`: what would happen at each level and threshold.

Owns  their arguments and tables.
Not   the server: both work on files alone. Imports click and the standard library only.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from edgestead.cli.failure import Failed, warn
from edgestead.cli.table import show
from edgestead.cli.target import JSON, Command
from edgestead.cli.waf.requests import CRS, FILE, all_samples, load_rules, name_of, one_sample, total_bytes
from edgestead.model import managed_settings as deployed

if TYPE_CHECKING:
    from edgestead.cli.waf.tuning import Outcome, Table

RULES_SHOWN = 20
THRESHOLD = click.option(
    "thresholds",
    "--threshold",
    metavar="N",
    type=click.IntRange(1, 10_000_000),
    multiple=True,
    help="Another threshold to show; may be given several times.",
)
_NAMED = {score: name for name, score in deployed.THRESHOLDS.items()}


@click.command("explain", cls=Command)
@FILE
@CRS
@THRESHOLD
@JSON
def explain(file: BinaryIO, crs: str | None, thresholds: Sequence[int], as_json: bool) -> None:
    """Print what the managed ruleset makes of the request in FILE, at each level and threshold, and why.

    FILE is a request as it is sent: its line, headers, an empty line, a body; - is standard input. Nothing is
    sent anywhere, and no server is needed. Overrides and exceptions of a zone are not looked at.

    \b
      edgecli waf explain request.txt --threshold 25
    """
    from edgestead.cli.waf.tuning import Judge

    sample = one_sample(file)
    outcome = Judge(load_rules(crs, fast=False).engine).outcome(sample.request)
    shown = _columns(thresholds)
    show(_explained(outcome, shown), lambda: _echo_outcome(outcome, shown), as_json=as_json)


@click.command("replay", cls=Command)
@FILE
@CRS
@THRESHOLD
@JSON
def replay(file: BinaryIO, crs: str | None, thresholds: Sequence[int], as_json: bool) -> None:
    """Count how many requests of FILE would be stopped at each level and threshold.

    FILE is a HAR file, an access log in the combined format, or lines of JSON such as the server's own
    events; - is standard input. A log holds no bodies, so what it shows is the least that would be stopped.
    Each request is inspected once.

    \b
      edgecli waf replay access.har --threshold 25
    """
    from edgestead.cli.progress import Progress
    from edgestead.cli.waf.tuning import Judge, Table, titles

    rules = load_rules(crs, fast=True)
    judge, table, unread = Judge(rules.engine), Table(_columns(thresholds)), 0
    with Progress("Replaying", "requests", total_bytes(file)) as progress:
        for sample, bytes_ in all_samples(file):
            if sample is None:
                unread += 1
            else:
                table.add(judge.outcome(sample.request))
            progress.advance(bytes_, 1)
    if not table.requests:
        raise Failed(f"{name_of(file)} holds no request.")
    if unread:
        warn(f"{unread} lines hold no request and were passed over.")
    show(_replayed(table, unread), lambda: _echo_table(table, titles(rules.catalogue)), as_json=as_json)


def _columns(thresholds: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*deployed.THRESHOLDS.values(), *thresholds}))


def _heading(threshold: int) -> str:
    name = _NAMED.get(threshold)
    return f"{threshold} ({name})" if name else str(threshold)


def _echo_outcome(outcome: "Outcome", thresholds: Sequence[int]) -> None:
    from edgestead.cli.table import echo_table

    if outcome.refused:
        click.echo(f"Refused with {outcome.status}: {outcome.refused}. It cannot be inspected whole.\n")
    rows = [
        (level, score, *("stopped" if score >= threshold else "passes" for threshold in thresholds))
        for level, score in zip(deployed.LEVELS, outcome.scores, strict=True)
    ]
    echo_table(("level", "score", *map(_heading, thresholds)), rows)
    if not outcome.hits:
        click.echo("\nNo rule adds to the score.")
        return
    click.echo()
    echo_table(
        ("rule", "level", "score", "where", "what", "why"),
        (
            (hit.rule_id, hit.paranoia_level, hit.score, hit.variable, _text(hit.matched), hit.message)
            for hit in outcome.hits
        ),
    )


def _explained(outcome: "Outcome", thresholds: Sequence[int]) -> dict[str, Any]:
    return {
        "refused": outcome.refused or None,
        "status": outcome.status if outcome.refused else None,
        "levels": [
            {"level": level, "score": score, "stopped_at": [one for one in thresholds if score >= one]}
            for level, score in zip(deployed.LEVELS, outcome.scores, strict=True)
        ],
        "rules": [
            {
                "rule": hit.rule_id,
                "level": hit.paranoia_level,
                "score": hit.score,
                "variable": hit.variable,
                "matched": _text(hit.matched),
                "message": hit.message,
            }
            for hit in outcome.hits
        ],
    }


def _echo_table(table: "Table", titles: dict[int, str]) -> None:
    from edgestead.cli.table import echo_table

    click.echo(f"{table.requests} requests. Stopped at each level and threshold:\n")
    rows = [
        (level, *(_share(table.stopped[level, one], table.requests) for one in table.thresholds))
        for level in deployed.LEVELS
    ]
    echo_table(("level", *map(_heading, table.thresholds)), rows)
    for reason, count in table.refusals.most_common():
        click.echo(f"\nRefused at any level: {_share(count, table.requests)} ({reason})")
    if table.rules:
        click.echo()
        most = table.rules.most_common(RULES_SHOWN)
        echo_table(("rule", "requests", "title"), ((id_, n, titles.get(id_, "")) for id_, n in most))


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)" if count else "0"


def _replayed(table: "Table", unread: int) -> dict[str, Any]:
    return {
        "requests": table.requests,
        "unread": unread,
        "refused": dict(table.refusals),
        "stopped": [
            {"level": level, "threshold": threshold, "requests": count}
            for (level, threshold), count in table.stopped.items()
        ],
        "rules": [{"rule": rule_id, "requests": count} for rule_id, count in table.rules.most_common()],
    }


def _text(matched: bytes) -> str:
    return matched.decode("utf-8", "backslashreplace")
