"""`edgecli zone list|create|get|delete|pause|unpause`.

Owns  arguments, options and output of the commands.
Not   what is inside a zone. Imports click and the standard library only.
"""

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import confirmed
from edgestead.cli.table import show_lines, show_list, show_one
from edgestead.cli.target import JSON, YES, Command, Json, api, pages, zone_first, zone_of

_HEADS = ("name", "id", "status", "name servers")


@click.command("list", cls=Command)
@click.option("--name", metavar="NAME", help="Only the zone of this name.")
@JSON
def list_zones(name: str | None, as_json: bool) -> None:
    """List the zones that these credentials see, by name.

    \b
      edgecli zone list --json
    """
    found = pages(api(), "/zones", {"order": "name", **({"name": name} if name else {})})
    show_list(found, _HEADS, _row, as_json=as_json)


@click.command("create", cls=Command)
@click.argument("name", metavar="NAME")
@DRY_RUN
@JSON
def create(name: str, as_json: bool) -> None:
    """Create the zone NAME, for example example.com.

    It is active at once: this server is its authority. The account is the one of EDGE_ACCOUNT_ID, or the only
    one that the credentials see.

    \b
      edgecli zone create example.com
    """
    from edgestead.cli.http import account_of

    server = api()
    body = {"name": name, "type": "full", "account": {"id": account_of(server, None)}}
    made = server.call("POST", "/zones", json_body=body, repeat=False)["result"]
    show_lines(
        made,
        f"Zone {made['name']} is {made['status']}. Its id is {made['id']}.",
        f"Its parent zone delegates it to {' and '.join(made['name_servers'])}.",
        as_json=as_json,
    )


@click.command("get", cls=Command)
@zone_first
@JSON
def get(zone: str | None, as_json: bool) -> None:
    """Show a zone.

    \b
      edgecli zone get example.com
    """
    show_one(zone_of(api(), zone), _members, as_json=as_json)


@click.command("delete", cls=Command)
@zone_first
@YES
@DRY_RUN
@JSON
def delete(zone: str | None, yes: bool, as_json: bool) -> None:
    """Delete a zone with all its records, after a y/n question. This cannot be undone.

    The zone has to be named, also when there is only one.

    \b
      edgecli zone delete example.com --dry-run
    """
    if zone is None:
        raise click.UsageError("Name the zone that is to be deleted.")
    server = api()
    found = zone_of(server, zone)
    if confirmed(f"Delete zone {found['name']} and all its records?", yes=yes, quiet=as_json):
        gone = server.call("DELETE", f"/zones/{found['id']}", repeat=False)["result"]
        show_lines(gone, f"Deleted zone {found['name']}.", as_json=as_json)


@click.command("pause", cls=Command)
@zone_first
@DRY_RUN
@JSON
def pause(zone: str | None, as_json: bool) -> None:
    """Switch off all rules of a zone: the edge passes on what comes, attacks included.

    For looking whether a rule is to blame. Proxied names lead to the edge as before, so that no origin's
    address comes out. `edgecli zone unpause` ends it.

    \b
      edgecli zone pause example.com
    """
    _set_paused(zone, paused=True, as_json=as_json)


@click.command("unpause", cls=Command)
@zone_first
@DRY_RUN
@JSON
def unpause(zone: str | None, as_json: bool) -> None:
    """End a pause: the rules of a zone hold again.

    \b
      edgecli zone unpause example.com
    """
    _set_paused(zone, paused=False, as_json=as_json)


def _set_paused(zone: str | None, *, paused: bool, as_json: bool) -> None:
    server = api()
    found = zone_of(server, zone)
    now = server.call("PATCH", f"/zones/{found['id']}", json_body={"paused": paused})["result"]
    state = "paused: none of its rules holds" if paused else "not paused: its rules hold"
    show_lines(now, f"{found['name']} is {state}.", as_json=as_json)


def _row(found: Json) -> tuple[object, ...]:
    return (found["name"], found["id"], found["status"], found["name_servers"])


def _members(found: Json) -> list[tuple[str, object]]:
    members = ("name", "id", "status", "type", "paused")
    return [
        *((member, found[member]) for member in members),
        ("name servers", found["name_servers"]),
        ("account", found["account"]["id"]),
        ("plan", found["plan"]["name"]),
        ("created", found["created_on"]),
        ("changed", found["modified_on"]),
    ]
