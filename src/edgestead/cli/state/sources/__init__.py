"""Where a document comes from: a file of ours, servers, and the forms of other programs.

Owns  what a source is called, and who reads it.
Not   any form: each is a module beside this one, with `gather(place, found)`.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from edgestead.cli.failure import Failed, listed
from edgestead.cli.state.document import OF_ACCOUNT, Json, read

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


def document_of(source: str, zones: Collection[str] = (), *, transferred: bool = False) -> Found:
    """`zones` are those that are wanted; none means all. Raises Failed.

    `transferred`: a server's secondary zones have records, to be compared and never to be written.
    """
    program, colon, place = source.partition(":")
    if source.startswith(TRANSFER):
        if not zones:
            raise Failed(f"{source} tells nobody which zones it has.", "Name them with --zone.")
        return _gathered("transfer", source.removeprefix(TRANSFER), zones)
    if colon and program in PROGRAMS:
        found = _gathered(program, place, zones)
        if not any(found.document.values()):
            raise Failed(f"{source} holds nothing that could be taken.", *found.left[:10])
        return found
    if source == HERE or "://" in source:
        return _served(source, zones, transferred=transferred)
    document = read(Path(source))
    if zones:
        document = chosen(document, zones)
    return Found(document)


def chosen(document: Json, zones: Collection[str]) -> Json:
    """These zones of a document, and nothing of the account but the rulesets that they execute."""
    from edgestead.cli.state.rules import rulesets_named

    rest = {member: value for member, value in document.items() if member not in OF_ACCOUNT}
    rest["zones"] = {name: zone for name, zone in document["zones"].items() if name in zones}
    rulesets = rulesets_named({**document, "zones": rest["zones"]})
    return {**rest, "rulesets": rulesets} if rulesets else rest


def _gathered(program: str, place: str, zones: Collection[str]) -> Found:
    from edgestead.cli.state.sources.gathered import Gathered

    found = Gathered(zones)
    import_module(f"{__name__}.{program}").gather(place, found)
    return Found(found.document(), found.left)


def _served(source: str, zones: Collection[str], *, transferred: bool) -> Found:
    """What is the account's is left out where zones are named, and what these credentials may not read."""
    import click

    from edgestead.cli.http import Api, account_of
    from edgestead.cli.state.rules import names_in_zones, newest_versions
    from edgestead.cli.state.server import account_rules, keys_of, names_of, state_of, tokens_of
    from edgestead.cli.target import api

    if source == HERE:
        server = api()
    else:
        from edgestead.cli.server.account_import import source_of

        server = Api(source_of(source, os.environ))
        click.get_current_context().call_on_close(server.close)
    account = account_of(server, None)
    names = names_of(server, account)
    left: list[str] = []
    state = state_of(server, account, names, zones or None, transferred=transferred)
    if source != HERE:
        from edgestead.cli.server.account_import_left import left_behind
        from edgestead.cli.state.server import zones_of

        there = zones_of(server, account)
        left += left_behind(server, account, [there[name] for name in state["zones"]])
    if not zones or names_in_zones(state):
        state |= account_rules(server, account, names, left)
    if zones:
        state = chosen(state, zones)
    else:
        state |= keys_of(server, account, left)
        found = tokens_of(server, account, (False, True), left)
        state["tokens"] = found if source == HERE else list(_possible(found, left))
    if source != HERE:
        left += newest_versions(state)
        left += _keys_that_stay(state)
    return Found(state, left)


def _keys_that_stay(state: Json) -> Iterator[str]:
    """Take out which zones another server signs: with keys whose DS the parents have. A line for each."""
    from edgestead.cli.server.account_import_left import keys_stay

    for name, zone in state["zones"].items():
        if zone.pop("dnssec", "") == "active":
            yield keys_stay(name)


def _possible(tokens: Iterable[Json], left: list[str]) -> Iterator[Json]:
    """Tokens of another server, without those that may do what nobody can here."""
    from edgestead.cli.state.tokens import unknown_here

    for one in tokens:
        if unknown := unknown_here(one):
            left.append(f"token {one['name']}: {listed(unknown)} are no permissions here")
        else:
            yield one
