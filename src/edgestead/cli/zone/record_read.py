"""`edgecli record list|get`, and how a record is found and shown.

Owns  the two commands; which record a RECORD means; a record as a row and as members.
Not   changes. Imports click and the standard library only.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from edgestead.cli.failure import Failed
from edgestead.cli.table import show_list, show_one, words
from edgestead.cli.target import JSON, Command, Json, api, is_id, pages, whole_list, zone_first, zone_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

RECORD = click.argument("record", metavar="RECORD")
TYPE = click.option("--type", "type_", metavar="TYPE", help="Only records of this type.")
CONTENT = click.option("--content", metavar="TEXT", help="Only records with this content.")

_HEADS = ("name", "type", "content", "priority", "ttl", "proxied", "id")
_CHOICES_SHOWN_MAX = 5


@click.command("list", cls=Command)
@zone_first
@click.option("--name", metavar="NAME", help="Only records of this name: www, @, or in full.")
@TYPE
@CONTENT
@JSON
def list_records(
    zone: str | None, name: str | None, type_: str | None, content: str | None, as_json: bool
) -> None:
    """List the records of a zone, by name.

    \b
      edgecli record list example.com --type A
    """
    server = api()
    found = zone_of(server, zone)
    filters = _filters(found["name"], name, type_, content)
    records = pages(server, records_path(found), {"order": "name", **filters})
    show_list(records, _HEADS, _row, as_json=as_json)


@click.command("get", cls=Command)
@zone_first
@RECORD
@TYPE
@CONTENT
@JSON
def get(zone: str | None, record: str, type_: str | None, content: str | None, as_json: bool) -> None:
    """Show a record, by its id or name. --type and --content choose among several of one name.

    \b
      edgecli record get example.com www --type A
    """
    server = api()
    found = record_of(server, zone_of(server, zone), record, type_, content)
    echo_record(found, as_json)


def records_path(zone: Json) -> str:
    return f"/zones/{zone['id']}/dns_records"


def record_of(server: "Api", zone: Json, record: str, type_: str | None, content: str | None) -> Json:
    """The one record that is meant. Raises Failed: none is, or several are."""
    path = records_path(zone)
    if is_id(record):
        found: Json = server.call("GET", f"{path}/{record}")["result"]
        return found
    filters = _filters(zone["name"], record, type_, content)
    several = whole_list(server, path, filters)
    if len(several) == 1:
        return several[0]
    if not several:
        raise Failed(f"There is no such record in {zone['name']}.", f"`edgecli record list {zone['name']}`")
    raise Failed(
        f"{len(several)} records are meant. Choose one by its id:",
        *(f"  {one['id']}  {one['type']} {one['content']}" for one in several[:_CHOICES_SHOWN_MAX]),
        *(["  …"] if len(several) > _CHOICES_SHOWN_MAX else []),
    )


def echo_record(found: Json, as_json: bool) -> None:
    show_one(found, _members, as_json=as_json)


def _members(found: Json) -> Iterable[tuple[str, object]]:
    row = dict(zip(_HEADS, _row(found), strict=True))
    more = {name: found.get(name) for name in ("comment", "tags")}
    times = {"created": found["created_on"], "changed": found["modified_on"]}
    return (row | more | times).items()


def describe(found: Json) -> str:
    """A record in a sentence."""
    priority = "" if found.get("priority") is None else f"{found['priority']} "
    return f"{found['name']} {found['type']} {priority}{words(found['content'])}"


def _row(found: Json) -> tuple[object, ...]:
    ttl = "auto" if found["ttl"] == 1 else found["ttl"]
    members = (found["name"], found["type"], found["content"], found.get("priority"))
    return (*members, ttl, found["proxied"], found["id"])


def _filters(zone_name: str, name: str | None, type_: str | None, content: str | None) -> dict[str, object]:
    filters: dict[str, object] = {}
    if name is not None:
        filters["name"] = full_name(name, zone_name)
    if type_ is not None:
        filters["type"] = type_.upper()
    if content is not None:
        filters["content"] = content
    return filters


def full_name(name: str, zone_name: str) -> str:
    """`www`, `@` and `www.example.com.` as the API's lists have them."""
    name = name.removesuffix(".").lower()
    if name == "@":
        return zone_name
    return name if name == zone_name or name.endswith("." + zone_name) else f"{name}.{zone_name}"
