"""`edgecli dns catalog`: a zone that lists the others, so that secondaries need no configuration for each.

Owns  arguments, options and output; the lines of configuration of the secondaries.
Not   the catalog's content: the server keeps it; catalogs that are followed (`cli.zone.followed`).
"""

from typing import Final

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, api, zone_of

NAME: Final = "catalog.invalid"
PATH: Final = "/accounts/{account}/secondary_dns/catalog"

ACCOUNT = click.option(
    "--account", metavar="ID", help="The account's id. Default: the server's only account."
)


@click.group(
    short_help="Zones that list others: for secondaries to follow, and those that are followed here."
)
def catalog() -> None:
    """List all zones of an account in a catalog zone (RFC 9432), or follow the catalog of another server.

    A secondary that follows the catalog serves each zone as soon as it is made, and forgets it when it is
    deleted, without a change of its configuration. The catalog is given to those who may transfer
    (`--transfer-to`); what it lists is answered to nobody.

    \b
      edgecli dns catalog on
      edgecli dns catalog config knot 192.0.2.1
      edgecli dns catalog follow catalog.example 192.0.2.9
    """


@catalog.command("show", cls=Command)
@ACCOUNT
@JSON
def show(account: str | None, as_json: bool) -> None:
    """Print the catalog's name, its serial and how many zones it lists.

    \b
      edgecli dns catalog show --json
    """
    found = _catalog(account)
    lines = f"{found['name']}: serial {found['serial']}, {found['zones']} zones"
    show_lines(found, lines, as_json=as_json)


@catalog.command("on", cls=Command)
@click.argument("name", default=NAME)
@ACCOUNT
@JSON
def on(name: str, account: str | None, as_json: bool) -> None:
    """Make the catalog, called NAME; `catalog.invalid` unless it is given. A new NAME replaces it.

    \b
      edgecli dns catalog on
    """
    server = api()
    found: Json = server.call("PUT", _path(account), json_body={"name": name})["result"]
    lines = (
        f"{found['name']} lists {found['zones']} zones, and those to come.",
        "Secondaries follow it with the lines of `edgecli dns catalog config knot|bind|nsd ADDRESS`.",
    )
    show_lines(found, *lines, as_json=as_json)


@catalog.command("off", cls=Command)
@ACCOUNT
@DRY_RUN
@JSON
def off(account: str | None, as_json: bool) -> None:
    """Serve the catalog no longer. Secondaries keep what they have until they are told otherwise.

    \b
      edgecli dns catalog off
    """
    done: Json = api().call("DELETE", _path(account), repeat=False)
    show_lines({"result": done.get("result")}, "There is no catalog now.", as_json=as_json)


@catalog.command("group", cls=Command)
@click.argument("zone", metavar="ZONE")
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@JSON
def group(zone: str, groups: tuple[str, ...], as_json: bool) -> None:
    """Give ZONE groups, by which secondaries choose its template; without a GROUP it has none.

    \b
      edgecli dns catalog group example.com signed
    """
    server = api()
    path = f"/zones/{zone_of(server, zone)['id']}/secondary_dns/catalog"
    found = server.call("PUT", path, json_body={"groups": list(groups)})["result"]
    show_lines(found, f"{zone}: {', '.join(found['groups']) or 'no group'}", as_json=as_json)


@catalog.command("config", cls=Command)
@click.argument("program", type=click.Choice(["knot", "bind", "nsd"]))
@click.argument("address", metavar="ADDRESS[@PORT]")
@ACCOUNT
def config(program: str, address: str, account: str | None) -> None:
    """Print the lines by which a PROGRAM follows the catalog of this server at ADDRESS.

    Knot 3.1 or later, BIND 9.18.3 or later, NSD 4.9 or later.

    \b
      edgecli dns catalog config knot 192.0.2.1@53
    """
    click.echo(lines_for(program, address, _catalog(account)["name"]), nl=False)


def lines_for(program: str, address: str, name: str) -> str:
    """Configuration of a secondary; `address` is an IP address, with @PORT where that is not 53."""
    host, _, port = address.partition("@")
    at_port = f"{host}@{port}" if port else host
    bind_port = f" port {port}" if port else ""
    return _LINES[program].format(name=name, host=host, at_port=at_port, bind_port=bind_port)


_KNOT = """\
remote:
  - id: edgestead
    address: {at_port}
acl:
  - id: edgestead
    address: {host}
    action: notify
template:
  - id: edgestead-member  # a group that is called like a template chooses that one
    master: edgestead
    acl: edgestead
zone:
  - domain: {name}
    master: edgestead
    acl: edgestead
    catalog-role: interpret
    catalog-template: edgestead-member
"""
_BIND = """\
options {{
  catalog-zones {{
    zone "{name}" default-primaries {{ {host}{bind_port}; }} in-memory yes;
  }};
}};
zone "{name}" {{
  type secondary;
  primaries {{ {host}{bind_port}; }};
  file "{name}.db";
}};
"""
_NSD = """\
pattern:
  name: edgestead-member  # a group that is called like a pattern chooses that one
  request-xfr: {at_port} NOKEY
  allow-notify: {host} NOKEY
zone:
  name: {name}
  catalog: consumer
  catalog-member-pattern: edgestead-member
  request-xfr: {at_port} NOKEY
  allow-notify: {host} NOKEY
"""
_LINES: Final = {"knot": _KNOT, "bind": _BIND, "nsd": _NSD}


def _catalog(account: str | None) -> Json:
    found: Json = api().call("GET", _path(account))["result"]
    return found


def _path(account: str | None) -> str:
    """Raises Failed: there are several accounts, and none was named."""
    from edgestead.cli.http import account_of

    return PATH.format(account=account_of(api(), account))
