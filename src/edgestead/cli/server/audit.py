"""`edgecli audit`: who changed what.

Owns  arguments, options and output of the command.
Not   what is written down: the server does. Imports click and the standard library only.
"""

import json
from collections.abc import Iterator
from itertools import islice

import click

from edgestead.cli.table import echo_table
from edgestead.cli.target import Command, Json, api, pages

SHOWN_DEFAULT = 100
_HEADS = ("when", "who", "from", "by", "what")


@click.command("audit", cls=Command)
@click.option("--since", metavar="TIME", help="Only what happened then or later: 2026-01-31, or with a time.")
@click.option("--until", metavar="TIME", help="Only what happened before.")
@click.option("--by", metavar="EMAIL", help="Only what this user did.")
@click.option("--zone", metavar="NAME", help="Only what was done in this zone.")
@click.option(
    "as_json", "--json", is_flag=True, help="Print everything as JSON lines, the oldest first: an export."
)
def audit(since: str | None, until: str | None, by: str | None, zone: str | None, as_json: bool) -> None:
    """Show who changed what in the account, when and from where; the newest 100 changes, the newest first.

    \b
      edgecli audit --since 2026-01-31
      edgecli audit --json > audit.jsonl
    """
    from edgestead.cli.http import account_of

    server = api()
    sent = {"since": since, "before": until, "actor.email": by, "zone.name": zone}
    query: dict[str, object] = {key: value for key, value in sent.items() if value}
    query |= {"direction": "asc" if as_json else "desc"} | ({} if as_json else {"per_page": SHOWN_DEFAULT})
    found = pages(server, f"/accounts/{account_of(server, None)}/audit_logs", query, grows=as_json)
    if as_json:
        for entry in found:
            click.echo(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
        return
    echo_table(_HEADS, map(_row, islice(found, SHOWN_DEFAULT)), none="Nothing was changed.")


def _row(entry: Json) -> Iterator[object]:
    actor, about = entry["actor"], entry["metadata"]
    yield entry["when"][:19] + "Z"
    yield actor["email"] or ("the operator" if actor["type"] == "admin" else actor["id"])
    yield actor["ip"]
    yield about.get("token_name") or entry["interface"]
    named = entry["newValueJson"] or entry["oldValueJson"] or {}
    name = named.get("name") or named.get("title") or named.get("email") or entry["resource"]["id"]
    where = about.get("zone_name")
    kind = entry["resource"]["type"]
    yield f"{entry['action']['type']} {kind} {name}" + (f" in {where}" if where and kind != "zone" else "")
