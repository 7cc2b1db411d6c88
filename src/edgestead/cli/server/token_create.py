"""`edgecli token create`: from permission groups and zones to policies.

Owns  the command; which resources each kind of permission group is given.
Not   other effects than allow, or other shapes of policies: those are the API's. Imports click and the
      standard library only.
"""

from typing import TYPE_CHECKING

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, listed
from edgestead.cli.server.token_life import ACCOUNT, permission_groups, scope_of, tokens_path
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, Json, api, zone_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_PREFIX = "com.edge.api"


@click.command("create", cls=Command)
@click.argument("name", metavar="NAME")
@click.option(
    "groups",
    "-p",
    "--permission",
    metavar="GROUP",
    multiple=True,
    required=True,
    help="What it may do, such as 'DNS Write'; may be repeated. A Write group implies its Read group.",
)
@click.option(
    "zones",
    "--zone",
    metavar="ZONE",
    multiple=True,
    help="Only this zone, by name or id; may be repeated. Default: every zone of the account.",
)
@click.option(
    "networks",
    "--from",
    metavar="CIDR",
    multiple=True,
    help="Only from these client addresses; may be repeated.",
)
@click.option("--not-before", metavar="TIME", help="Works from this time on: 2027-01-31T12:00:00Z.")
@click.option("--expires-on", metavar="TIME", help="Works until this time.")
@ACCOUNT
@DRY_RUN
@JSON
def create(
    name: str,
    groups: tuple[str, ...],
    zones: tuple[str, ...],
    networks: tuple[str, ...],
    not_before: str | None,
    expires_on: str | None,
    account: bool,
    as_json: bool,
) -> None:
    """Create a token named NAME and print its secret, which nobody can read again.

    Nothing but the secret is printed on stdout:

    \b
      TOKEN=$(edgecli token create certbot -p 'DNS Write' --zone example.com)

    `edgecli token permissions` lists the groups.
    """
    server = api()
    path = tokens_path(server, account)
    body: Json = {"name": name, "policies": _policies(server, path, groups, zones)}
    times = {"not_before": not_before, "expires_on": expires_on}
    body |= {member: value for member, value in times.items() if value is not None}
    if networks:
        body["condition"] = {"request_ip": {"in": list(networks)}}
    made = server.call("POST", path, json_body=body, repeat=False)["result"]
    if not as_json:
        click.echo(f"Created token {made['name']}, id {made['id']}. Its secret is shown this once:", err=True)
    show_lines(made, made["value"], as_json=as_json)


def _policies(server: "Api", path: str, names: tuple[str, ...], zones: tuple[str, ...]) -> list[Json]:
    """One policy for each kind of resource that the groups are about."""
    known = {group["name"].casefold(): group for group in permission_groups(server, path)}
    by_scope: dict[str, list[Json]] = {}
    for name in names:
        group = known.get(name.casefold())
        if group is None:
            raise Failed(
                f"There is no permission group {name!r} for this token.",
                f"There are: {listed((one['name'] for one in known.values()), most=len(known))}.",
            )
        by_scope.setdefault(scope_of(group), []).append({"id": group["id"]})
    if zones and "zone" not in by_scope:
        raise click.UsageError("--zone needs a permission about zones, such as 'DNS Write'.")
    return [
        {"effect": "allow", "permission_groups": groups, "resources": _resources(server, scope, zones)}
        for scope, groups in by_scope.items()
    ]


def _resources(server: "Api", scope: str, zones: tuple[str, ...]) -> Json:
    from edgestead.cli.http import account_of

    if scope == "user":
        return {f"{_PREFIX}.user.{server.call('GET', '/user')['result']['id']}": "*"}
    if scope == "zone" and zones:
        ids = (zone_of(server, zone)["id"] for zone in zones)
        return {f"{_PREFIX}.account.zone.{id_}": "*" for id_ in ids}
    of_account = f"{_PREFIX}.account.{account_of(server, None)}"
    return {of_account: {f"{_PREFIX}.account.zone.*": "*"} if scope == "zone" else "*"}
