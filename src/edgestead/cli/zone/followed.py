"""`edgecli dns catalog follow` and what belongs to it: catalogs of other name servers, served here.

Owns  arguments, options and output of the commands.
Not   following: the server does it.
"""

from typing import Any, Final

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, YES, Command, Json, api, zone_first, zone_of
from edgestead.cli.zone.catalog import ACCOUNT
from edgestead.cli.zone.dns_key import one_key
from edgestead.cli.zone.secondary import TLS, peer_at

DAY_SECONDS: Final = 86_400


@click.command("follow", cls=Command)
@click.argument("name", metavar="NAME")
@click.argument("primaries", nargs=-1, required=True, metavar="ADDRESS[@PORT]...")
@click.option(
    "key_name",
    "--key",
    metavar="KEY",
    help="Sign transfers of the catalog and its zones with this TSIG key, and take no others.",
)
@click.option(
    "grace_days",
    "--grace",
    metavar="DAYS",
    type=click.IntRange(0, 90),
    default=7,
    show_default=True,
    help="How long a zone stays that the catalog lists no longer.",
)
@click.option(
    "signed",
    "--signed/--not-signed",
    default=None,
    help="Whether its zones are served with their primary's signatures.",
)
@TLS
@ACCOUNT
@DRY_RUN
@JSON
def follow(
    name: str,
    primaries: tuple[str, ...],
    key_name: str | None,
    grace_days: int,
    signed: bool | None,
    tls: bool,
    account: str | None,
    as_json: bool,
) -> None:
    """Follow the catalog zone NAME: each zone that it lists becomes a secondary zone here, and goes with it.

    \b
      edgecli dns catalog follow catalog.example 192.0.2.9
      edgecli dns catalog follow catalog.example 192.0.2.9 --key xfr.example.org --grace 30
      edgecli dns catalog follow catalog.example 192.0.2.9 --signed
    """
    from edgestead.cli.http import account_of

    server = api()
    account_id = account_of(server, account)
    key_id = one_key(key_name, account_id)["id"] if key_name else None
    peers = [peer_at(server, account_id, primary, key_id, tls=tls) for primary in primaries]
    path, before = _path(server, account_id), _found(server, account_id, name)
    body: Json = {"peers": peers, "grace_seconds": grace_days * DAY_SECONDS, "dnssec_presigned": signed}
    if before is None:
        made: Json = server.call("POST", path, json_body=body | {"name": name}, repeat=False)["result"]
    else:
        body["groups"] = before["groups"]
        if signed is None:
            body["dnssec_presigned"] = before["dnssec_presigned"]
        made = server.call("PUT", f"{path}/{before['id']}", json_body=body)["result"]
    show_lines(
        made,
        f"The catalog {made['name']} is asked for at {' and '.join(primaries)}.",
        f"`edgecli dns catalog members {made['name']}` shows its zones.",
        as_json=as_json,
    )


@click.command("list", cls=Command)
@ACCOUNT
@JSON
def list_followed(account: str | None, as_json: bool) -> None:
    """List the catalogs that are followed, with what is wrong with them.

    \b
      edgecli dns catalog list
    """
    server = api()
    found: list[Json] = server.call("GET", _path(server, account))["result"]
    heads = ("NAME", "SERIAL", "ZONES", "REFUSED", "PROBLEM")
    show_list(found, heads, _row, as_json=as_json)


@click.command("members", cls=Command)
@click.argument("name", metavar="NAME")
@ACCOUNT
@JSON
def members(name: str, account: str | None, as_json: bool) -> None:
    """List the zones of the catalog NAME: those that are here, those that left it, those that are refused.

    \b
      edgecli dns catalog members catalog.example
    """
    server = api()
    catalog = _one(server, account, name)
    found: list[Json] = server.call("GET", f"{_path(server, account)}/{catalog['id']}/zones")["result"]
    heads = ("ZONE", "STATUS", "GROUPS", "DELETED ON", "PROBLEM")
    show_list(found, heads, _member, as_json=as_json)


@click.command("group-settings", cls=Command)
@click.argument("name", metavar="NAME")
@click.argument("group", metavar="GROUP")
@click.option(
    "key_name", "--key", metavar="KEY", help="Sign transfers of the group's zones with this TSIG key."
)
@click.option(
    "overrides",
    "--overrides/--no-overrides",
    default=None,
    help="Whether names can be proxied on top of them.",
)
@click.option(
    "signed",
    "--signed/--not-signed",
    default=None,
    help="Whether they are served with their primary's signatures.",
)
@click.option("remove", "--remove", is_flag=True, help="Treat the group's zones as those of no group.")
@ACCOUNT
@DRY_RUN
@JSON
def group_settings(
    name: str,
    group: str,
    key_name: str | None,
    overrides: bool | None,
    signed: bool | None,
    remove: bool,
    account: str | None,
    as_json: bool,
) -> None:
    """Say what GROUP of the catalog NAME means here: the group is one that its producer gives to zones.

    \b
      edgecli dns catalog group-settings catalog.example edge --overrides
    """
    from edgestead.cli.http import account_of

    server = api()
    catalog = _one(server, account, name)
    groups = dict(catalog["groups"])
    if remove:
        groups.pop(group, None)
    else:
        key_id = one_key(key_name, account_of(server, account))["id"] if key_name else None
        said = {"tsig_id": key_id, "secondary_overrides": overrides, "dnssec_presigned": signed}
        groups[group] = groups.get(group, {}) | {
            key: value for key, value in said.items() if value is not None
        }
    body = {key: catalog[key] for key in ("peers", "grace_seconds", "dnssec_presigned")} | {"groups": groups}
    made: Json = server.call("PUT", f"{_path(server, account)}/{catalog['id']}", json_body=body)["result"]
    words = f"{name}: {', '.join(made['groups']) or 'no group'} with settings; its zones follow."
    show_lines(made, words, as_json=as_json)


@click.command("keep", cls=Command)
@zone_first
@DRY_RUN
@JSON
def keep(zone: str | None, as_json: bool) -> None:
    """Keep ZONE, whatever its catalog says: also one that left it and is about to be deleted.

    \b
      edgecli dns catalog keep example.org
    """
    server = api()
    path = f"/zones/{zone_of(server, zone)['id']}/secondary_dns/keep"
    kept: Json = server.call("POST", path, json_body={}, repeat=False)["result"]
    show_lines(kept, f"{kept['name']} is a secondary zone by itself now.", as_json=as_json)


@click.command("unfollow", cls=Command)
@click.argument("name", metavar="NAME")
@ACCOUNT
@YES
@DRY_RUN
@JSON
def unfollow(name: str, yes: bool, account: str | None, as_json: bool) -> None:
    """Follow the catalog NAME no longer, after a y/n question. Its zones stay as secondary zones.

    \b
      edgecli dns catalog unfollow catalog.example --dry-run
    """
    server = api()
    catalog = _one(server, account, name)
    question = f"Follow {catalog['name']} no longer?"
    if confirmed(question, yes=yes, verb="unfollow", quiet=as_json):
        server.call("DELETE", f"{_path(server, account)}/{catalog['id']}", repeat=False)
        words = f"{catalog['name']} is not followed now; its zones stay."
        show_lines({"id": catalog["id"]}, words, as_json=as_json)


COMMANDS: Final = (follow, list_followed, members, group_settings, keep, unfollow)


def _path(server: Any, account: str | None) -> str:
    from edgestead.cli.http import account_of

    return f"/accounts/{account_of(server, account)}/secondary_dns/catalogs"


def _found(server: Any, account: str | None, name: str) -> Json | None:
    wanted = name.lower().removesuffix(".")
    found: list[Json] = server.call("GET", _path(server, account))["result"]
    return next((one for one in found if wanted in (one["name"], one["id"])), None)


def _one(server: Any, account: str | None, name: str) -> Json:
    """Raises Failed."""
    found = _found(server, account, name)
    if found is None:
        raise Failed(f"No catalog {name} is followed.", "`edgecli dns catalog list` lists those that are.")
    return found


def _row(one: Json) -> tuple[object, ...]:
    return one["name"], one["serial"], one["zones"], one["refused"], one["problem"]


def _member(one: Json) -> tuple[object, ...]:
    return one["name"], one["status"], ", ".join(one["groups"]), one["deleted_on"], one["problem"]
