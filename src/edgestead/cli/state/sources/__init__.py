"""Where a document comes from: a file of ours, servers, and the forms of other programs.

Owns  what a source is called, and who reads it.
Not   any form: each is a module beside this one, with `gather(place, found)`.
"""

import os
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from edgestead.cli.failure import Failed
from edgestead.cli.state.document import Json, read

HERE = "server"
TRANSFER = "@"
PROGRAMS = ("bind", "powerdns", "terraform", "nginx", "caddy")
FORMS = {  # as people write them, for --help and the docs
    "FILE": "what `edgecli export` wrote, TOML or JSON",
    HERE: "the server that other commands use",
    "https://HOST/…": "another server of this API, with IMPORT_TOKEN",
    "@HOST[:PORT]": "a name server that transfers its zones, with --zone",
    "bind:PATH": "named.conf, a folder of zone files, or one of them",
    "powerdns:PATH|URL": "its SQLite database; or its API, with PDNS_API_KEY",
    "terraform:PATH": "a state, or what `terraform show -json` prints",
    "nginx:PATH": "nginx.conf, or sites: as proxied records and rules",
    "caddy:PATH": "the same of Caddy: its JSON, or a Caddyfile",
}


class Found(NamedTuple):
    """A document, and what of its source is not carried over, with its place."""

    document: Json
    left: Sequence[str] = ()


def document_of(source: str, zones: Collection[str] = ()) -> Found:
    """`zones` are those that are wanted; none means all. Raises Failed."""
    program, colon, place = source.partition(":")
    if source.startswith(TRANSFER):
        if not zones:
            raise Failed(f"{source} tells nobody which zones it has.", "Name them with --zone.")
        return _gathered("transfer", source.removeprefix(TRANSFER), zones)
    if colon and program in PROGRAMS:
        found = _gathered(program, place, zones)
        if not found.document["zones"] and not found.document.get("namespaces"):
            raise Failed(f"{source} holds nothing that could be taken.", *found.left[:10])
        return found
    if source == HERE or "://" in source:
        return Found(_served(source, zones))
    document = read(Path(source))
    if zones:
        document["zones"] = {name: zone for name, zone in document["zones"].items() if name in zones}
    return Found(document)


def _gathered(program: str, place: str, zones: Collection[str]) -> Found:
    from edgestead.cli.state.sources.gathered import Gathered

    found = Gathered(zones)
    import_module(f"{__name__}.{program}").gather(place, found)
    return Found(found.document(), found.left)


def _served(source: str, zones: Collection[str]) -> Json:
    import click

    from edgestead.cli.http import Api, account_of
    from edgestead.cli.state.server import state_of
    from edgestead.cli.target import api

    if source == HERE:
        server = api()
    else:
        from edgestead.cli.server.account_import import source_of

        server = Api(source_of(source, os.environ))
        click.get_current_context().call_on_close(server.close)
    return state_of(server, account_of(server, None), zones or None)
