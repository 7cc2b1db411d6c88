"""`edgecli waf events`: what the edge decided about requests to a zone.

Owns  arguments, options and output; following.
Not   what becomes an event. Imports click and the standard library only.

Following asks again and again for what has occurred since. Edge processes write in their own time, so each
question reaches back a little, and what was shown already is left out by its id.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from edgestead.cli.rule.target import ZONE, Command, zone_target
from edgestead.cli.table import echo_table, words

if TYPE_CHECKING:
    from edgestead.cli.http import Api
    from edgestead.cli.target import Json

EVENTS_DEFAULT, EVENTS_MAX = 20, 10_000
FOLLOW_SECONDS = 1.0  # between two questions
REACH_BACK_SECONDS = 5.0  # for what a process wrote late
_PAGE_EVENTS = 1_000
_HEADS = ("when", "action", "status", "client", "request", "rule", "why")
_WIDTHS = (27, 18, 6, 15)  # of a followed line's first columns
ACTIONS = (
    *("block", "challenge", "challenge_failed", "challenge_solved", "fail", "js_challenge", "log"),
    *("managed_challenge", "redirect", "refuse", "skip"),
)
_FILTERS = ("action", "phase", "rule_id", "ray_id", "client", "host")


@click.command("events", cls=Command, short_help="Show what the edge decided about requests to a zone.")
@ZONE
@click.option(
    "--action", type=click.Choice(ACTIONS), metavar="ACTION", help=f"Only this: {', '.join(ACTIONS)}."
)
@click.option("--phase", metavar="PHASE", help="Only decisions of this phase.")
@click.option("--rule", "rule_id", metavar="ID", help="Only decisions of this rule.")
@click.option("--ray", "ray_id", metavar="ID", help="Only the request with this id.")
@click.option("--client", metavar="ADDRESS", help="Only requests from this address.")
@click.option("--host", metavar="NAME", help="Only requests to this name.")
@click.option("--since", metavar="TIME", help="From this time on, as in 2026-01-02T03:04:05Z.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, EVENTS_MAX),
    default=EVENTS_DEFAULT,
    help=f"How many of the newest; {EVENTS_DEFAULT} by default, {EVENTS_MAX:,} at most.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with new ones, oldest first, until interrupted.")
@click.option("as_json", "--json", is_flag=True, help="Print one event as JSON a line.")
def events(
    zone: str | None, since: str | None, limit: int, follow: bool, as_json: bool, **filters: str | None
) -> None:
    """Print the newest security events of a zone: who asked for what, and what became of it.

    Events name the rule that decided, or the setting, and say why: the rule's expression, or the score.
    Credentials in queries and headers are hidden before they are stored.

    \b
      edgecli waf events --zone example.com --action block
      edgecli waf events --follow
    """
    target = zone_target(zone)
    path = target.path.removesuffix("/rulesets") + "/security/events"
    asked: dict[str, object] = {name: filters[name] for name in _FILTERS if filters.get(name)}
    if since:
        asked["since"] = since
    newest = list(_newest(target.api, path, asked, limit))
    if not follow:
        _show(newest, as_json)
        return
    line = _json_line if as_json else _text_line
    for event in reversed(newest):
        click.echo(line(event))
    _follow(target.api, path, asked, newest, line)


def _newest(server: "Api", path: str, asked: dict[str, object], limit: int) -> Iterator["Json"]:
    """That many events, the newest first. A page may be short, even empty, and not be the last."""
    query = {**asked, "direction": "desc"}
    while limit > 0:
        answer = server.call("GET", path, query={**query, "per_page": min(limit, _PAGE_EVENTS)})
        yield from answer["result"]
        limit -= len(answer["result"])
        cursors = answer["result_info"].get("cursors")
        if cursors is None:
            return
        query["cursor"] = cursors["after"]


def _follow(
    server: "Api",
    path: str,
    asked: dict[str, object],
    shown: list["Json"],
    line: Callable[["Json"], str],
) -> None:
    seen = {event["id"] for event in shown}
    oldest_id = min(seen, default="")  # what the limit cut off stays away
    last_us = int(shown[0]["id"][:16], 16) if shown else time.time_ns() // 1_000
    while True:
        since = _time_text(last_us - int(REACH_BACK_SECONDS * 1_000_000))
        query = {**asked, "since": since, "direction": "asc", "per_page": _PAGE_EVENTS}
        while True:
            answer = server.call("GET", path, query=query)
            for event in answer["result"]:
                if event["id"] not in seen and event["id"] > oldest_id:
                    seen.add(event["id"])
                    click.echo(line(event))
            cursors = answer["result_info"].get("cursors")
            if cursors is None:
                break
            query["cursor"] = cursors["after"]
        if seen:
            last_us = max(last_us, int(max(seen)[:16], 16))
            oldest = f"{last_us - int(2 * REACH_BACK_SECONDS * 1_000_000):016x}"
            seen = {id_ for id_ in seen if id_ > oldest}
        time.sleep(FOLLOW_SECONDS)


def _time_text(time_us: int) -> str:
    seconds, fraction = divmod(max(0, time_us), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:06d}Z"


def _show(newest: list["Json"], as_json: bool) -> None:
    if as_json:
        for event in newest:
            click.echo(_json_line(event))
        return
    echo_table(_HEADS, map(_row, newest), "No such events.")


def _row(event: "Json") -> tuple[object, ...]:
    query = f"?{event['query']}" if event["query"] else ""
    request = f"{event['method']} {event['host']}{event['path']}{query}"
    status = event["status"] or None
    rule = event["description"] or event["rule_id"] or event["phase"]
    return (event["occurred_on"], event["action"], status, event["client"], request, rule, _why(event))


def _why(event: "Json") -> str:
    parts = [event["reason"]] if event["reason"] else []
    if event["score"] is not None:
        parts.append(f"score {event['score']} of {event['threshold']}")
    if event["dropped"]:
        parts.append(f"{event['dropped']} events before it were not kept")
    return "; ".join(parts)


def _text_line(event: "Json") -> str:
    cells = [words(cell) for cell in _row(event)]
    widths = (*_WIDTHS, *(0 for _ in cells[len(_WIDTHS) :]))
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _json_line(event: "Json") -> str:
    return json.dumps(event, ensure_ascii=True)
