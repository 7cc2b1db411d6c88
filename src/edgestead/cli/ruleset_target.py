"""Whose rulesets a command of `edgecli waf` or `edgecli ruleset` means.

Owns  the option --zone, and how a zone is found by its name.
Asks  `cli.source` and `cli.http` for the server.
Tells the commands a `Target`.
Not   rulesets. Imports click and the standard library only.
"""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from edgestead.cli.failure import Failed, no_traceback

if TYPE_CHECKING:
    from edgestead.cli.http import Api

ZONE = click.option(
    "--zone", metavar="ZONE", help="Name or id of the zone. Not needed while there is only one."
)
JSON = click.option("as_json", "--json", is_flag=True, help="Print JSON.")
ID_DIGITS = 32


class Command(click.Command):
    """A command that never shows a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        with no_traceback():
            return super().invoke(ctx)


class Target(NamedTuple):
    """A zone or an account: `path` is the start of its rulesets' paths, `name` for people."""

    api: "Api"
    kind: str
    path: str
    name: str
    account_path: str

    def entrypoint(self, phase: str) -> str:
        from edgestead.cli.http import segment

        return f"{self.path}/phases/{segment(phase)}/entrypoint"


def zone_target(zone: str | None) -> Target:
    """Raises Failed: no server, no such zone, or several to choose from."""
    api = _api()
    found = _zone(api, zone)
    account = f"/accounts/{found['account']['id']}/rulesets"
    return Target(api, "zone", f"/zones/{found['id']}/rulesets", found["name"], account)


def account_target() -> Target:
    """The account of the credentials. Raises Failed."""
    from edgestead.cli.http import account_of

    api = _api()
    account = account_of(api, None)
    path = f"/accounts/{account}/rulesets"
    return Target(api, "account", path, f"account {account}", path)


def _api() -> "Api":
    from edgestead.cli.http import Api
    from edgestead.cli.source import find_source

    api = Api(find_source(os.environ))
    click.get_current_context().call_on_close(api.close)
    return api


def _zone(api: "Api", zone: str | None) -> dict[str, Any]:
    if zone is not None and len(zone) == ID_DIGITS and "." not in zone:
        found: dict[str, Any] = api.call("GET", f"/zones/{zone}")["result"]
        return found
    query: dict[str, object] = {"per_page": 5} if zone is None else {"name": zone}
    zones = api.call("GET", "/zones", query=query)["result"]
    if len(zones) == 1:
        return dict(zones[0])
    if zone is not None:
        raise Failed(f"There is no zone {zone}, or these credentials do not see it.")
    if not zones:
        raise Failed("There is no zone yet, or these credentials see none.")
    names = ", ".join(found["name"] for found in zones)
    raise Failed(f"There are several zones ({names} …).", "Choose one with --zone.")
