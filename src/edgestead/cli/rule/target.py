"""Which zone or account a command of `edgecli rule`, `ruleset`, `setting` or `waf` means.

Owns  the option --zone, and what stands in for it.
Not   rulesets. Imports click and the standard library only.
"""

from typing import TYPE_CHECKING, NamedTuple

import click

from edgestead.cli.failure import Failed
from edgestead.cli.target import JSON, Command, Json, api, zone_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

__all__ = ["JSON", "ZONE", "Command", "Target", "account_target", "zone_target"]

ZONE = click.option(
    "--zone",
    metavar="ZONE",
    envvar="EDGE_ZONE",
    help="Name or id of the zone; EDGE_ZONE says it for all commands. Not needed while there is only one.",
)


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
    server = api()
    found = zone_of(server, zone) if zone is not None else _only_zone(server)
    account = f"/accounts/{found['account']['id']}/rulesets"
    return Target(server, "zone", f"/zones/{found['id']}/rulesets", found["name"], account)


def account_target() -> Target:
    """The account of the credentials. Raises Failed."""
    from edgestead.cli.http import account_of

    server = api()
    account = account_of(server, None)
    path = f"/accounts/{account}/rulesets"
    return Target(server, "account", path, f"account {account}", path)


def _only_zone(server: "Api") -> Json:
    zones: list[Json] = server.call("GET", "/zones", query={"per_page": 5})["result"]
    if len(zones) == 1:
        return zones[0]
    if not zones:
        raise Failed("There is no zone yet, or these credentials see none.")
    names = ", ".join(found["name"] for found in zones)
    raise Failed(f"There are several zones ({names} …).", "Choose one with --zone or EDGE_ZONE.")
