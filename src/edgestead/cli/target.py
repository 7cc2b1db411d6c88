"""The server, and the zone, that a command of `edgecli` means.

Owns  how a zone is found by name or id, lists of several pages, the option --json.
Not   what is done there. Imports click and the standard library only.
"""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.failure import Failed, no_traceback

if TYPE_CHECKING:
    from edgestead.cli.http import Api

Json = dict[str, Any]

JSON = click.option("as_json", "--json", is_flag=True, help="Print JSON, as the API answers it.")
YES = click.option("yes", "-y", "--yes", is_flag=True, help="Do not ask.")
ZONE = click.argument("zone", metavar="ZONE")
ID_DIGITS = 32
PAGE_ITEMS = 1_000


class Command(click.Command):
    """A command that never shows a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        with no_traceback():
            return super().invoke(ctx)


def api() -> "Api":
    """A connection to the server that the environment names. Raises Failed."""
    from edgestead.cli.http import Api
    from edgestead.cli.source import find_source

    server = Api(find_source(os.environ))
    click.get_current_context().call_on_close(server.close)
    return server


def is_id(text: str) -> bool:
    """32 hex digits; no name of a zone or record is that, because each has a dot or is shorter."""
    return len(text) == ID_DIGITS and set(text) <= set("0123456789abcdef")


def zone_of(server: "Api", zone: str) -> Json:
    """A zone by its name or id. Raises Failed."""
    if is_id(zone):
        found: Json = server.call("GET", f"/zones/{zone}")["result"]
        return found
    zones = server.call("GET", "/zones", query={"name": zone.removesuffix(".")})["result"]
    if len(zones) == 1:
        return dict(zones[0])
    raise Failed(
        f"There is no zone {zone}, or these credentials do not see it.",
        "`edgecli zone list` shows those they see.",
    )


def pages(server: "Api", path: str, query: Mapping[str, object]) -> Iterator[Json]:
    """The items of a list, page after page."""
    number = 1
    while True:
        asked = {"per_page": PAGE_ITEMS, **query, "page": number}
        answer = server.call("GET", path, query=asked)
        yield from answer["result"]
        # A server may give smaller pages than it was asked for.
        if not answer["result"] or number >= answer["result_info"]["total_pages"]:
            return
        number += 1
