"""`edgecli dns secondary`: zones of other name servers, served here.

Owns  arguments, options and output of the commands.
Not   transfers: the server does them.
"""

from typing import TYPE_CHECKING, Any

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed
from edgestead.cli.table import show_lines, show_one
from edgestead.cli.target import JSON, NO_PRIMARIES, Command, Json, api, zone_first, zone_of
from edgestead.cli.zone.dns_key import one_key

if TYPE_CHECKING:
    from edgestead.cli.http import Api

PORT, TLS_PORT = 53, 853
TLS = click.option(
    "--tls", is_flag=True, help="Transfer over TLS only (RFC 9103), from port 853 where none is given."
)


@click.group(short_help="Serve zones of other name servers, by transfer.")
def secondary() -> None:
    """Serve a zone that another name server has: its primary, which has to allow transfers to here.

    \b
      edgecli dns secondary add example.org 192.0.2.1
      edgecli dns secondary show example.org
    """


@secondary.command("add", cls=Command)
@click.argument("name", metavar="NAME")
@click.argument("primaries", nargs=-1, required=True, metavar="ADDRESS[@PORT]...")
@click.option(
    "key_name",
    "--key",
    metavar="KEY",
    help="Sign transfers with this TSIG key, by name or id (`edgecli dns key add`), and take no others.",
)
@click.option("signed", "--signed", is_flag=True, help="Serve it with the signatures that its primary made.")
@TLS
@DRY_RUN
@JSON
def add(
    name: str, primaries: tuple[str, ...], key_name: str | None, signed: bool, tls: bool, as_json: bool
) -> None:
    """Make NAME a secondary zone, transferred from the first ADDRESS that answers.

    \b
      edgecli dns secondary add example.org 192.0.2.1
      edgecli dns secondary add example.org 192.0.2.1 --key xfr.example.org --signed
      edgecli dns secondary add example.org 192.0.2.1 --key xfr.example.org --tls
    """
    from edgestead.cli.http import account_of

    server = api()
    account = account_of(server, None)
    key_id = one_key(key_name, account)["id"] if key_name else None
    peers = [peer_at(server, account, primary, key_id, tls=tls) for primary in primaries]
    made = _begun(server, account, name)
    if made is None:
        body = {"name": name, "type": "secondary", "account": {"id": account}}
        made = server.call("POST", "/zones", json_body=body, repeat=False)["result"]
    if signed:
        server.call("PATCH", f"/zones/{made['id']}/dnssec", json_body={"dnssec_presigned": True})
    path = f"/zones/{made['id']}/secondary_dns/incoming"
    server.call("POST", path, json_body={"name": name, "peers": peers})
    show_lines(
        made,
        f"Zone {made['name']} is asked for at {' and '.join(primaries)}. Its id is {made['id']}.",
        f"`edgecli dns secondary show {name}` says whether it came; until then DNS answers SERVFAIL for it.",
        as_json=as_json,
    )


@secondary.command("show", cls=Command)
@zone_first
@JSON
def show(zone: str | None, as_json: bool) -> None:
    """Say when ZONE was transferred, and why not. Exits with 1 when DNS answers SERVFAIL for it.

    \b
      edgecli dns secondary show example.org
    """
    server = api()
    found = zone_of(server, zone)
    shown: Json = server.call("GET", f"/zones/{found['id']}/secondary_dns/incoming")["result"]
    show_one(shown, _members, as_json=as_json)
    if shown["expired"] or not shown["checked_time"]:
        raise Failed(
            f"{found['name']} is answered with SERVFAIL: {shown['problem'] or 'it was not transferred yet'}.",
            "Does its primary allow transfers to the address of this server?",
        )


@secondary.command("transfer", cls=Command)
@zone_first
@JSON
def transfer(zone: str | None, as_json: bool) -> None:
    """Have all of ZONE transferred again, now.

    \b
      edgecli dns secondary transfer example.org
    """
    server = api()
    found = zone_of(server, zone)
    server.call("POST", f"/zones/{found['id']}/secondary_dns/force_axfr", json_body={})
    words = f"{found['name']} is transferred; `edgecli dns secondary show` says whether it came."
    show_lines({"id": found["id"]}, words, as_json=as_json)


def _begun(server: "Api", account: str, name: str) -> Json | None:
    """The secondary zone of that name that has no primaries yet: an earlier `add` was cut short behind it."""
    from edgestead.cli.http import Refused

    query = {"name": name.removesuffix("."), "account.id": account}
    for zone in server.call("GET", "/zones", query=query)["result"]:
        if zone["type"] == "secondary":
            try:
                server.call("GET", f"/zones/{zone['id']}/secondary_dns/incoming")
            except Refused as refusal:
                if NO_PRIMARIES in refusal.codes:
                    return dict(zone)
                raise
    return None


def peer_at(server: Any, account: str, place: str, key_id: str | None, *, tls: bool) -> str:
    """The id of the account's peer at a place with that key and protocol, which is made if there is none."""
    ip, at, port_text = place.partition("@")
    if at and not port_text.isdigit():
        raise click.UsageError(f"{place} is no ADDRESS or ADDRESS@PORT.")
    port = int(port_text) if at else TLS_PORT if tls else PORT
    path = f"/accounts/{account}/secondary_dns/peers"
    for peer in server.call("GET", path)["result"]:
        if (peer["ip"], peer["port"], peer["tsig_id"], peer["tls"]) == (ip, port, key_id, tls):
            return str(peer["id"])
    body = {"name": place, "ip": ip, "port": port, "tsig_id": key_id, "tls": tls}
    return str(server.call("POST", path, json_body=body, repeat=False)["result"]["id"])


def _members(shown: Json) -> list[tuple[str, object]]:
    return [
        ("serial", shown["soa_serial"] or None),
        ("primary last answered", shown["checked_time"]),
        ("served", not shown["expired"] and bool(shown["checked_time"])),
        ("problem", shown["problem"] or None),
    ]
