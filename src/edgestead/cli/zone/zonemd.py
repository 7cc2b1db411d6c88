"""`edgecli dns zonemd`: a digest of a whole zone, for those who fetch it.

Owns  arguments and output.
Not   the digest: the server makes it.
"""

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, api, zone_first, zone_of
from edgestead.cli.zone.dnssec import ActionLast


@click.command("zonemd", cls=ActionLast, short_help="Have a zone carry a digest of itself, or end that.")
@zone_first
@click.argument("action", type=click.Choice(("status", "on", "off")), metavar="[on|off|status]")
@DRY_RUN
@JSON
def zonemd(zone: str | None, action: str, as_json: bool) -> None:
    """Have ZONE carry a digest of all its records (ZONEMD, RFC 8976), or show whether it does.

    A secondary that looks at it knows that the zone came whole and unchanged, signed or not. Each change of a
    zone of up to 500 records comes with a new digest; a larger zone has none from a change until it was
    quiet for five seconds.

    \b
      edgecli dns zonemd example.com on
    """
    server = api()
    found = zone_of(server, zone)
    path = f"/zones/{found['id']}/dnssec"
    if action != "status":
        server.call("PATCH", path, json_body={"zonemd": action == "on"})
    is_on = bool(server.call("GET", path)["result"]["zonemd"])
    words = "carries a digest of itself" if is_on else "carries no digest"
    show_lines({"zone": found["name"], "zonemd": is_on}, f"{found['name']}: {words}.", as_json=as_json)
