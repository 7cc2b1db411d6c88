"""`edgecli export|plan|apply|diff`.

Owns  arguments, options and output.
Not   documents, nor where they come from (`cli.state.sources`). Imports click and the standard library only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgestead.cli import files
from edgestead.cli.failure import Failed, confirmed, counted
from edgestead.cli.state.plan import Change, changes, unnamed
from edgestead.cli.state.sources import FORMS, HERE, TRANSFER
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, YES, Command, Json, api

if TYPE_CHECKING:
    from edgestead.cli.rule.names import Names

AUTOMATIC_SECONDS = 300  # what a record without a TTL is served with
LEFT_SHOWN_MAX = 50  # of what a source has that is not carried over
SOURCE = click.argument("source", metavar="SOURCE")
ZONES = click.option(
    "zones", "--zone", metavar="NAME", multiple=True, help="Only this zone; may be repeated."
)


def _with_sources(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the table of sources below its help."""
    rows = "\n".join(f"      {form:<21} {words}" for form, words in FORMS.items())
    command.__doc__ = f"{command.__doc__}\n    \b\n    SOURCE is\n{rows}\n"
    return command


@click.command("export", cls=Command)
@click.option("source", "--from", metavar="SOURCE", default=HERE, help="Not the server: see below.")
@ZONES
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write it there, not to stdout."
)
@JSON
@_with_sources
def export(source: str, zones: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    """Print zones, records, settings, rules, rulesets, namespaces and tokens' policies as one TOML document.

    `edgecli plan FILE` compares it with a server, `apply FILE` makes it true there. Values, objects, secrets
    and members are not in it: `edgecli backup` copies these. With --from it is written of another program.

    \b
      edgecli export > edge.toml
      edgecli export --zone example.com --json -o example.json
      edgecli export --from bind:/etc/bind -o edge.toml
    """
    from edgestead.cli.state import document
    from edgestead.cli.state.sources import document_of

    state, left = document_of(source, zones)
    if missing := [name for name in zones if name not in state["zones"]]:
        raise Failed(f"There is no zone {', '.join(missing)}.", _where_zones_are(source))
    _tell_left(left)
    text = document.write(state, as_json=as_json or (output is not None and output.suffix == ".json"))
    if output is None or output == files.STDOUT:
        click.echo(text, nl=False)
    else:
        with files.written(output) as file:
            file.write(text.encode())
        click.echo(f"{output}: {counted(len(state['zones']), 'zone')}.")


@click.command("plan", cls=Command)
@SOURCE
@ZONES
@click.option("--check", is_flag=True, help="Exit with 1 when something differs: for CI.")
@JSON
@_with_sources
def plan(source: str, zones: tuple[str, ...], check: bool, as_json: bool) -> None:
    """Show what `edgecli apply SOURCE` would change. Nothing is changed.

    A zone, a setting or a phase that SOURCE does not name stays as it is. `records` of a zone, and rules of a
    phase or of a ruleset, are all of them: what is not there goes.

    \b
      edgecli plan edge.toml --check
      edgecli plan bind:/etc/bind/named.conf
    """
    found, stays, _ = _against_server(source, zones)
    _show(found, stays, as_json=as_json)
    if check and found:
        raise SystemExit(1)


@click.command("apply", cls=Command)
@SOURCE
@ZONES
@YES
@click.option("--dry-run", is_flag=True, help="Show what would change, as `plan` does.")
@JSON
@_with_sources
def apply(source: str, zones: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> None:
    """Make a server what SOURCE says, after a y/n question.

    The records of a zone change in one transaction, or as few as its plan allows; `edgecli zone history`
    shows them, and `undo` or `restore` takes them back. DNS and the edge have each change when its line is
    printed, with --json to stderr.

    \b
      edgecli apply edge.toml
      edgecli apply powerdns:/var/lib/powerdns/pdns.sqlite3
    """
    from edgestead.cli.http import account_of
    from edgestead.cli.state.apply import make

    found, stays, names = _against_server(source, zones)
    if dry_run or not found:
        _show(found, stays, as_json=as_json)
        return
    if not yes and not as_json:
        _show(found, stays, as_json=False)
    if confirmed(f"Make {counted(len(found), 'change')}?", yes=yes, verb="make", quiet=as_json):
        server = api()
        make(server, account_of(server, None), found, names, tell=partial(click.echo, err=as_json))
        done = [change._asdict() for change in found]
        show_lines(done, f"{source}: {counted(len(found), 'change')} made.", as_json=as_json)


@click.command("diff", cls=Command)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@ZONES
@JSON
@_with_sources
def diff(before: str, after: str, zones: tuple[str, ...], as_json: bool) -> None:
    """Show what would change from A to B. Exits with 1 when something differs.

    A and B are each a SOURCE. Of a name server (@HOST) only records are compared, of the zones of the other
    side or of --zone.

    \b
      edgecli diff edge.toml server
      edgecli diff @ns1.example.net server
    """
    sources = [before, after]
    transfers = [one.startswith(TRANSFER) for one in sources]
    if all(transfers) and not zones:
        raise click.UsageError("Two name servers: say which zones with --zone.")
    known = {
        one: _document(one, zones, transferred=any(transfers))
        for one in sources
        if not one.startswith(TRANSFER)
    }
    named = zones or [name for one in known.values() for name in one.get("zones", {})]
    documents = [known[one] if one in known else _document(one, named) for one in sources]
    if any(transfers):  # what a transfer does not carry is not compared
        documents = [_as_served(one) for one in documents]
    found = changes(*documents)
    _show(found, unnamed(*documents), as_json=as_json)
    if found:
        raise SystemExit(1)


def _where_zones_are(source: str) -> str:
    return "`edgecli zone list` shows those there are." if source == HERE else f"{source} does not have it."


def _against_server(source: str, zones: Collection[str]) -> tuple[list[Change], list[str], "Names"]:
    """What has to change, what stays as nothing names it, and the names that rules have in both."""
    from edgestead.cli.http import account_of
    from edgestead.cli.state import rules
    from edgestead.cli.state.secondaries import compare_without_keys, refuse_types
    from edgestead.cli.state.server import account_rules, keys_of, names_of, state_of, tokens_of
    from edgestead.cli.state.tokens import refuse_unknown

    wanted = _document(source, zones)
    server = api()
    account = account_of(server, None)
    names, left = names_of(server, account), list[str]()
    now = state_of(server, account, names, wanted["zones"])
    if "rules" in wanted or "rulesets" in wanted:
        now |= account_rules(server, account, names, left)
        if left:  # who may not read them compares the rest
            wanted = {member: value for member, value in wanted.items() if member not in rules.OF_ACCOUNT}
        _tell_left(left)
    if "tsig_keys" in wanted:
        unread: list[str] = []
        now |= keys_of(server, account, unread)
        if unread:
            wanted = {member: value for member, value in wanted.items() if member != "tsig_keys"}
        _tell_left(unread)
    if compare_without_keys(now, wanted):
        _tell_left(["TSIG keys of primaries: these credentials may not read which they are"])
    refuse_types(now, wanted)
    if "://" in source:
        _tell_left(list(rules.leave_absent(wanted, names)))
    rules.name_rulesets(wanted, names)
    rules.refuse_unknown(wanted, names)
    if "tokens" in wanted:
        left = []
        now["tokens"] = []
        for owner in sorted({bool(one.get("account")) for one in wanted["tokens"]}):
            told = len(left)
            now["tokens"] += tokens_of(server, account, [owner], left)
            if len(left) > told:  # who may not read them compares the rest
                wanted["tokens"] = [one for one in wanted["tokens"] if bool(one.get("account")) != owner]
        _tell_left(left)
    found = changes(now, wanted)
    for change in found:
        if change.kind == "token":
            refuse_unknown(change.after)
    return found, unnamed(now, wanted), names


def _document(source: str, zones: Collection[str], *, transferred: bool = False) -> Json:
    from edgestead.cli.state.sources import document_of

    document, left = document_of(source, zones, transferred=transferred)
    _tell_left(left)
    return document


def _tell_left(left: Sequence[str]) -> None:
    """To stderr, so that what is printed can be read by programs."""
    if left:
        click.echo(f"Not carried over ({len(left)}):", err=True)
    for line in left[:LEFT_SHOWN_MAX]:
        click.echo(f"  {line}", err=True)
    if len(left) > LEFT_SHOWN_MAX:
        click.echo(f"  … and {len(left) - LEFT_SHOWN_MAX} more", err=True)


def _as_served(state: Json) -> Json:
    """What a transfer carries of each zone: names, types, contents and TTLs of what is not proxied."""
    zones = {}
    for name, zone in state.get("zones", {}).items():
        records = [one for one in zone.get("records", ()) if not one.get("proxied")]
        zones[name] = {"records": [_served(one) for one in records]}
    return {"zones": zones}


def _served(record: Json) -> Json:
    members = ("name", "type", "content", "priority")
    ttl = record.get("ttl", AUTOMATIC_SECONDS)
    return {member: record[member] for member in members if member in record} | {"ttl": ttl}


def _show(found: Iterable[Change], left: Iterable[str], *, as_json: bool) -> None:
    found = list(found)
    show_lines([change._asdict() for change in found], *_lines(found, left), as_json=as_json)


def _lines(found: Sequence[Change], left: Iterable[str]) -> Iterator[str]:
    where = None
    for change in found:
        if change.where != where:
            where = change.where
            yield f"{where or 'the account'}:"
        yield f"  {change}"
    for thing in left:
        yield f"  (stays, as nothing names it: {thing})"
    yield f"{counted(len(found), 'change')}." if found else "Nothing differs."
