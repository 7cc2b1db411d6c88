"""`edgecli zone history|undo|restore`.

Owns  arguments, options and output of the three commands; a change in one line.
Not   what is kept, and what can be undone: the server says. Imports click and the standard library only.
"""

from collections.abc import Iterator

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import confirmed
from edgestead.cli.table import show_lines, show_list, words
from edgestead.cli.target import JSON, YES, Command, Json, api, zone_first, zone_of
from edgestead.cli.zone.record_read import full_name

CHANGES_DEFAULT, CHANGES_MAX = 20, 100
_HEADS = ("number", "when", "who", "what")
_SHOWN_MAX = 3  # records of one change


@click.command("history", cls=Command)
@zone_first
@click.option("--name", metavar="NAME", help="Only changes of this name: www, @, or in full.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, CHANGES_MAX),
    default=CHANGES_DEFAULT,
    help=f"How many of the newest changes; {CHANGES_DEFAULT} by default, {CHANGES_MAX} at most.",
)
@JSON
def history(zone: str | None, name: str | None, limit: int, as_json: bool) -> None:
    """Show who changed what in a zone, newest first.

    + is a record that came, - one that went, and ~ one that is another now. `edgecli zone undo` takes the
    number of a change. --json shows each record before and after.

    \b
      edgecli zone history example.com --name www
    """
    server = api()
    found = zone_of(server, zone)
    query: dict[str, object] = {"per_page": limit}
    if name is not None:
        query["name"] = full_name(name, found["name"])
    changes = server.call("GET", f"/zones/{found['id']}/history", query=query)["result"]
    show_list(changes, _HEADS, _row, as_json=as_json)


@click.command("undo", cls=Command)
@zone_first
@click.argument("number", metavar="NUMBER", type=click.IntRange(min=1))
@DRY_RUN
@JSON
def undo(zone: str | None, number: int, as_json: bool) -> None:
    """Take the change NUMBER of a zone back; `edgecli zone history` shows the numbers.

    The server refuses when what it would restore has changed since. Undoing is a change itself, which can be
    undone.

    \b
      edgecli zone undo example.com 42
    """
    server = api()
    found = zone_of(server, zone)
    path = f"/zones/{found['id']}/history/{number}/undo"
    done = server.call("POST", path, json_body={}, repeat=False)["result"]
    same = f"{found['name']} is already as it was before change {number}."
    _tell(done, same, f"Took back change {number} of {found['name']}.", as_json=as_json)


@click.command("restore", cls=Command)
@zone_first
@click.argument("number", metavar="NUMBER", type=click.IntRange(min=0))
@click.option("--name", metavar="NAME", help="Only this name: www, @, or in full. Without it the whole zone.")
@YES
@DRY_RUN
@JSON
def restore(zone: str | None, number: int, name: str | None, yes: bool, as_json: bool) -> None:
    """Make a zone's records and settings what they were right after change NUMBER; 0 is before the first.

    What came since goes. It is one change, which `edgecli zone undo` takes back.

    \b
      edgecli zone restore example.com 41 --name www
    """
    server = api()
    found = zone_of(server, zone)
    wanted = None if name is None else full_name(name, found["name"])
    what = wanted or f"all of {found['name']}"
    if not confirmed(
        f"Make {what} what they were after change {number}?", yes=yes, verb="restore", quiet=as_json
    ):
        return
    path = f"/zones/{found['id']}/history/{number}/restore"
    body = {} if wanted is None else {"name": wanted}
    done = server.call("POST", path, json_body=body, repeat=False)["result"]
    same = f"{what[0].upper()}{what[1:]}: nothing differs from then."
    _tell(done, same, f"Brought back {what} as of change {number}.", as_json=as_json)


def _tell(done: Json, same: str, words: str, *, as_json: bool) -> None:
    line = same if done["sequence"] is None else f"{words} That is change {done['sequence']}."
    show_lines(done, line, as_json=as_json)


def _row(change: Json) -> tuple[object, ...]:
    who = change["made_by"]
    by = who.get("email") or f"{who['kind']} {who['id']}"
    return (change["sequence"], change["made_on"], by, "; ".join(_what(change)))


def _what(change: Json) -> Iterator[str]:
    if change["origin"] != "edit":
        yield " ".join(words(part) for part in (change["origin"], change["reverts"]) if part is not None)
    shown = change["changes"][:_SHOWN_MAX]
    for item in shown:
        yield f"{_sign(item)} {_item(item)}"
    rest = change["changes_count"] - len(shown)
    if rest > 0:
        yield f"and {rest} more"


def _sign(item: Json) -> str:
    before, after = item["before"], item["after"]  # neither: a setting whose values one may not read
    if (before is None) == (after is None):
        return "~"
    return "+" if before is None else "-"


def _item(item: Json) -> str:
    seen = item["after"] or item["before"]
    if item["kind"] != "record":
        return f"{item['kind']} {item['id']}"
    priority = "" if seen.get("priority") is None else f"{seen['priority']} "
    return f"{seen['type']} {item['name']} {priority}{seen['content']}"
