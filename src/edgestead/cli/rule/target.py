"""Which zone or account a command of `edgecli rule`, `ruleset`, `setting` or `waf` means.

Owns  the paths of their rulesets.
Not   rulesets. Imports click and the standard library only.
"""

from typing import TYPE_CHECKING, NamedTuple

from edgestead.cli.target import JSON, ZONE, Command, api, zone_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

__all__ = ["JSON", "ZONE", "Command", "Target", "account_target", "zone_target"]


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
    found = zone_of(server, zone)
    account = f"/accounts/{found['account']['id']}/rulesets"
    return Target(server, "zone", f"/zones/{found['id']}/rulesets", found["name"], account)


def account_target() -> Target:
    """The account of the credentials. Raises Failed."""
    from edgestead.cli.http import account_of

    server = api()
    account = account_of(server, None)
    path = f"/accounts/{account}/rulesets"
    return Target(server, "account", path, f"account {account}", path)
