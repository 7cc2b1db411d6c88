"""`edgecli export|plan|apply|diff`.

Owns  arguments, options and output; what a source of a document is called.
Not   documents. Imports click and the standard library only.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import click

from edgestead.cli.failure import Failed, confirmed, counted
from edgestead.cli.state.plan import Change, changes, unnamed
from edgestead.cli.target import JSON, YES, Command, Json, api

HERE = "server"
AUTOMATIC_SECONDS = 300  # what a record without a TTL is served with
FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))


@click.command("export", cls=Command)
@click.option("zones", "--zone", metavar="NAME", multiple=True, help="Only this zone; may be repeated.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write it there, not to stdout."
)
@JSON
def export(zones: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    """Print zones, records, settings, rules and namespaces as one TOML document.

    `edgecli plan FILE` compares it with a server, `apply FILE` makes it true there. Values, objects and
    secrets are not in it: `edgecli backup` copies these.

    \b
      edgecli export > edge.toml
      edgecli export --zone example.com --json -o example.json
    """
    from edgestead.cli.http import account_of
    from edgestead.cli.state import document
    from edgestead.cli.state.server import state_of

    server = api()
    state = state_of(server, account_of(server, None), zones or None)
    if missing := [name for name in zones if name not in state["zones"]]:
        raise Failed(f"There is no zone {', '.join(missing)}.", "`edgecli zone list` shows those there are.")
    if zones:
        del state["namespaces"]
    text = document.write(state, as_json=as_json or (output is not None and output.suffix == ".json"))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)
        click.echo(f"{output}: {counted(len(state['zones']), 'zone')}.")


@click.command("plan", cls=Command)
@FILE
@click.option("--check", is_flag=True, help="Exit with 1 when something differs: for CI.")
@JSON
def plan(file: Path, check: bool, as_json: bool) -> None:
    """Show what `edgecli apply FILE` would change. Nothing is changed.

    A zone, a setting or a phase that FILE does not name stays as it is. `records` of a zone, and rules of a
    phase, are all of them: what is not there goes.
    """
    found, left = _against_server(file)
    _show(found, left, as_json=as_json)
    if check and found:
        raise SystemExit(1)


@click.command("apply", cls=Command)
@FILE
@YES
def apply(file: Path, yes: bool) -> None:
    """Make a server what FILE says, after a y/n question.

    The records of a zone change in one transaction, up to 200 of them; `edgecli zone history` shows it, and
    `undo` takes it back. DNS and the edge have each change when its line is printed.
    """
    from edgestead.cli.http import account_of
    from edgestead.cli.state.apply import make

    found, left = _against_server(file)
    if not found:
        _show(found, left, as_json=False)
        return
    if not yes:
        _show(found, left, as_json=False)
    if confirmed(f"Make {counted(len(found), 'change')}?", yes=yes, verb="make"):
        server = api()
        make(server, account_of(server, None), found)
        click.echo(f"{file}: {counted(len(found), 'change')} made.")


@click.command("diff", cls=Command)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@JSON
def diff(before: str, after: str, as_json: bool) -> None:
    """Show what would change from A to B. Exits with 1 when something differs.

    A and B are each a FILE that `edgecli export` wrote; `server`, the one that other commands use; the URL of
    another server of this API, with IMPORT_TOKEN in the environment; or @HOST[:PORT], a name server that
    transfers the zones of the other side (AXFR), of which only records are compared.

    \b
      edgecli diff edge.toml server
      edgecli diff @ns1.example.net server
    """
    sources = [before, after]
    if all(one.startswith("@") for one in sources):
        raise click.UsageError("Two name servers: say which zones with a FILE on one side.")
    known = {one: _document(one, None) for one in sources if not one.startswith("@")}
    zones = [name for one in known.values() for name in one.get("zones", {})]
    documents = [known.get(one) or _document(one, zones) for one in sources]
    if len(known) < len(set(sources)):  # what a transfer does not carry is not compared
        documents = [_as_served(one) for one in documents]
    found = changes(*documents)
    _show(found, unnamed(*documents), as_json=as_json)
    if found:
        raise SystemExit(1)


def _against_server(file: Path) -> tuple[list[Change], list[str]]:
    from edgestead.cli.http import account_of
    from edgestead.cli.state import document
    from edgestead.cli.state.server import state_of

    wanted = document.read(file)
    server = api()
    now = state_of(server, account_of(server, None), wanted["zones"])
    return changes(now, wanted), unnamed(now, wanted)


def _document(source: str, zones: Collection[str] | None) -> Json:
    from edgestead.cli.http import Api, account_of
    from edgestead.cli.state import document
    from edgestead.cli.state.server import state_of

    if source.startswith("@"):
        from edgestead.cli.state.transfer import transferred

        return transferred(source[1:], zones or ())
    if source == HERE:
        server = api()
    elif "://" in source:
        from edgestead.cli.server.account_import import source_of

        server = Api(source_of(source, os.environ))
        click.get_current_context().call_on_close(server.close)
    else:
        return document.read(Path(source))
    return state_of(server, account_of(server, None))


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
    if as_json:
        from edgestead.cli.output import echo_array

        echo_array(change._asdict() for change in found)
        return
    where = None
    for change in found:
        if change.where != where:
            where = change.where
            click.echo(f"{where or 'the account'}:")
        click.echo(f"  {change}")
    for thing in left:
        click.echo(f"  (stays, as nothing names it: {thing})")
    click.echo(f"{counted(len(found), 'change')}." if found else "Nothing differs.")
