"""`edgecli zone list|create|get|delete|pause|unpause`.

Owns  arguments, options and output of the commands.
Not   what is inside a zone. Imports click and the standard library only.
"""

import click

from edgestead.cli.failure import confirmed
from edgestead.cli.table import show_lines, show_list, show_one
from edgestead.cli.target import JSON, YES, ZONE, Command, Json, api, pages, zone_of

_HEADS = ("name", "id", "status", "name servers")


@click.command("list", cls=Command)
@click.option("--name", metavar="NAME", help="Only the zone of this name.")
@JSON
def list_zones(name: str | None, as_json: bool) -> None:
    """List the zones that these credentials see, by name."""
    found = pages(api(), "/zones", {"order": "name", **({"name": name} if name else {})})
    show_list(found, _HEADS, _row, as_json=as_json)


@click.command("create", cls=Command)
@click.argument("name", metavar="NAME")
@JSON
def create(name: str, as_json: bool) -> None:
    """Create the zone NAME, for example example.com.

    It is active at once: this server is its authority. The account is the one of EDGE_ACCOUNT_ID, or the only
    one that the credentials see.
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
@ZONE
@JSON
def get(zone: str, as_json: bool) -> None:
    """Show a zone."""
    show_one(zone_of(api(), zone), _members, as_json=as_json)


@click.command("delete", cls=Command)
@ZONE
@YES
def delete(zone: str, yes: bool) -> None:
    """Delete a zone with all its records, after a y/n question. This cannot be undone."""
    server = api()
    found = zone_of(server, zone)
    if confirmed(f"Delete zone {found['name']} and all its records?", yes=yes):
        server.call("DELETE", f"/zones/{found['id']}", repeat=False)
        click.echo(f"Deleted zone {found['name']}.")


@click.command("pause", cls=Command)
@ZONE
def pause(zone: str) -> None:
    """Switch off all rules of a zone: the edge passes on what comes, attacks included.

    For looking whether a rule is to blame. Proxied names lead to the edge as before, so that no origin's
    address comes out. `edgecli zone unpause` ends it.
    """
    _set_paused(zone, paused=True)


@click.command("unpause", cls=Command)
@ZONE
def unpause(zone: str) -> None:
    """End a pause: the rules of a zone hold again."""
    _set_paused(zone, paused=False)


def _set_paused(zone: str, *, paused: bool) -> None:
    server = api()
    found = zone_of(server, zone)
    server.call("PATCH", f"/zones/{found['id']}", json_body={"paused": paused})
    state = "paused: none of its rules holds" if paused else "not paused: its rules hold"
    click.echo(f"{found['name']} is {state}.")


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
