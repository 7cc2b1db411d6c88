"""`edgecli record create|update|delete`.

Owns  arguments, options and output of the three commands; the body that they send.
Not   what a record may be: the server says. Imports click and the standard library only.
"""

import functools
from collections.abc import Callable
from typing import Any

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, api, zone_first, zone_of
from edgestead.cli.zone.record_read import (
    CONTENT,
    RECORD,
    TYPE,
    describe,
    record_of,
    records_path,
)

AUTO_TTL = 1

Decorated = Callable[..., Any]


def _ttl(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Seconds, or the word for what the API writes as 1."""
    if value is None:
        return None
    if value == "auto":
        return AUTO_TTL
    if value.isascii() and value.isdigit() and len(value) <= 10:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number of seconds nor auto.", ctx, param)


_OPTIONS = (
    click.option("--ttl", metavar="SECONDS", callback=_ttl, help="Time to live, or auto."),
    click.option("--proxied/--no-proxied", default=None, help="Answer with the edge's addresses, or not."),
    click.option("--priority", metavar="N", type=int, help="Priority, of MX, SRV and URI."),
    click.option("--comment", metavar="TEXT", help="A note, which DNS does not serve."),
    click.option("tags", "--tag", metavar="NAME:VALUE", multiple=True, help="A tag; may be repeated."),
)


def _members(command: Decorated) -> Decorated:
    """The options that both create and update take."""
    return functools.reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


@click.command("create", cls=Command)
@zone_first
@click.argument("name", metavar="NAME")
@click.argument("type_", metavar="TYPE")
@click.argument("content", metavar="CONTENT")
@_members
@DRY_RUN
@JSON
def create(zone: str | None, name: str, type_: str, content: str, as_json: bool, **members: Any) -> None:
    """Create a record.

    NAME is relative to the zone, or in full; @ is the zone itself. CONTENT is one argument, written as in a
    zone file:

    \b
      edgecli record create example.com www A 192.0.2.10 --proxied
      edgecli record create example.com @ MX mail.example.com --priority 10
      edgecli record create example.com @ TXT 'v=spf1 mx -all'
      edgecli record create example.com _sip._tcp SRV '10 5 5060 sip.example.com'
      edgecli record create example.com @ CAA '0 issue letsencrypt.org'
    """
    server = api()
    found = zone_of(server, zone)
    body = {"name": name, "type": type_.upper(), "content": content, **_body(members)}
    made = server.call("POST", records_path(found), json_body=body, repeat=False)["result"]
    _done("Created", made, as_json)


@click.command("update", cls=Command)
@zone_first
@RECORD
@TYPE
@click.option("--name", metavar="NAME", help="The new name.")
@click.option("--content", metavar="CONTENT", help="The new content.")
@_members
@DRY_RUN
@JSON
def update(
    zone: str | None,
    record: str,
    type_: str | None,
    name: str | None,
    content: str | None,
    as_json: bool,
    **members: Any,
) -> None:
    """Change some members of a record; what is not named stays. `--comment ''` clears the comment.

    \b
      edgecli record update example.com www --content 192.0.2.11
      edgecli record update www --proxied --zone example.com
    """
    body = _body({"name": name, "content": content, **members})
    if not body:
        raise click.UsageError("Name what should change: --content, --ttl, --proxied …")
    server = api()
    found = zone_of(server, zone)
    path = f"{records_path(found)}/{record_of(server, found, record, type_, None)['id']}"
    _done("Changed", server.call("PATCH", path, json_body=body)["result"], as_json)


@click.command("delete", cls=Command)
@zone_first
@RECORD
@TYPE
@CONTENT
@click.option("-y", "--yes", is_flag=True, expose_value=False, help="Nothing is asked; for scripts.")
@DRY_RUN
@JSON
def delete(zone: str | None, record: str, type_: str | None, content: str | None, as_json: bool) -> None:
    """Delete a record, by its id or name. --type and --content choose among several of one name.

    Nothing is asked, as `edgecli zone undo` brings it back.

    \b
      edgecli record delete example.com www --type A
    """
    server = api()
    found = zone_of(server, zone)
    gone = record_of(server, found, record, type_, content)
    server.call("DELETE", f"{records_path(found)}/{gone['id']}", repeat=False)
    show_lines(gone, f"Deleted {describe(gone)}.", as_json=as_json)


def _body(members: Json) -> Json:
    """What was said on the command line; click gives None, and () for no tags, where nothing was."""
    return {name: value for name, value in members.items() if value is not None and value != ()}


def _done(verb: str, record: Json, as_json: bool) -> None:
    show_lines(record, f"{verb} {describe(record)}, id {record['id']}.", as_json=as_json)
