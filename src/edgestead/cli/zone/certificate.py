"""`edgecli certificate`: the certificates that the edge serves a zone's names with.

Owns  arguments, options and output.
Not   which certificates are right: the server says. Imports click and the standard library only.
"""

import json
from pathlib import Path
from typing import Final

import click

from edgestead.cli import files
from edgestead.cli.dry_run import DRY_RUN, is_dry_run, tell_unsent
from edgestead.cli.failure import Failed, confirmed
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, YES, Command, Json, api, pages, zone_first, zone_of

PEM_BYTES_MAX: Final = 64 << 10  # of one file: a chain of ten certificates has half of it
_KEY: Final = "-----BEGIN"
_UNTOLD = "(not printed)"
_HEADS = ("id", "kind", "status", "ends", "hosts")


@click.group(short_help="List, renew, upload and remove certificates.")
def certificate() -> None:
    """Certificates that the edge serves a zone's names with. Files of `--tls-dir` go before them."""


@certificate.command("list", cls=Command)
@zone_first
@JSON
def list_certificates(zone: str | None, as_json: bool) -> None:
    """List the certificates of ZONE, with the day on which each ends.

    \b
      edgecli certificate list example.com
    """
    server = api()
    path = f"/zones/{zone_of(server, zone)['id']}"
    found = [
        *pages(server, f"{path}/ssl/certificate_packs", {"status": "all"}),
        *pages(server, f"{path}/custom_certificates", {}),
    ]
    show_list(found, _HEADS, _row, as_json=as_json)


@certificate.command("renew", cls=Command)
@zone_first
@click.option("--id", "pack_id", metavar="ID", help="This one alone. Default: all that authorities issue.")
@DRY_RUN
@JSON
def renew(zone: str | None, pack_id: str | None, as_json: bool) -> None:
    """Order the certificates of ZONE anew at once; what is served goes on until the new ones are there.

    \b
      edgecli certificate renew example.com
    """
    from edgestead.cli.http import segment

    server = api()
    found = zone_of(server, zone)
    path = f"/zones/{found['id']}/ssl/certificate_packs"
    ids = [pack_id] if pack_id else [one["id"] for one in pages(server, path, {"status": "all"})]
    if not ids:
        raise Failed(
            f"{found['name']} has no certificate of an authority.",
            "Is the server started with --acme, and has the zone a proxied name?",
        )
    done = [server.call("PATCH", f"{path}/{segment(one)}")["result"] for one in ids]
    lines = [f"{', '.join(one['hosts'])}: {one['status']}." for one in done]
    show_lines(done, *lines, as_json=as_json)


@certificate.command("upload", cls=Command)
@zone_first
@click.argument("chain", metavar="CERTIFICATE", type=click.Path(path_type=Path))
@click.option(
    "--key", metavar="FILE", type=click.Path(path_type=Path), help="Its key, where it is a file of its own."
)
@click.option("--replace", metavar="ID", help="Put it in the place of this one.")
@DRY_RUN
@JSON
def upload(zone: str | None, chain: Path, key: Path | None, replace: str | None, as_json: bool) -> None:
    """Upload a certificate with its chain and key, in PEM.

    The edge serves it within seconds to all names of ZONE that stand in it.

    \b
      edgecli certificate upload example.com fullchain.pem --key privkey.pem
      edgecli certificate upload example.com bought.pem --replace 0123456789abcdef0123456789abcdef
    """
    from edgestead.cli.http import segment

    chain_text, key_text = _read(chain, key)
    server = api()
    found = zone_of(server, zone)
    path = f"/zones/{found['id']}/custom_certificates"
    method, path = ("PATCH", f"{path}/{segment(replace)}") if replace else ("POST", path)
    if is_dry_run():
        tell_unsent(method, path, json.dumps({"certificate": chain_text, "private_key": _UNTOLD}).encode())
    made = server.call(method, path, json_body={"certificate": chain_text, "private_key": key_text})["result"]
    day = made["expires_on"][:10]
    line = f"{found['name']}: {', '.join(made['hosts'])} until {day}, {made['id']}."
    show_lines(made, line, as_json=as_json)


@certificate.command("remove", cls=Command)
@zone_first
@click.argument("certificate_id", metavar="ID")
@YES
@DRY_RUN
@JSON
def remove(zone: str | None, certificate_id: str, yes: bool, as_json: bool) -> None:
    """Remove an uploaded certificate and its key from ZONE, after a y/n question.

    \b
      edgecli certificate remove example.com 0123456789abcdef0123456789abcdef
    """
    from edgestead.cli.http import segment

    server = api()
    found = zone_of(server, zone)
    if confirmed(
        f"Remove certificate {certificate_id} of {found['name']}?", yes=yes, verb="remove", quiet=as_json
    ):
        path = f"/zones/{found['id']}/custom_certificates/{segment(certificate_id)}"
        done = server.call("DELETE", path, repeat=False)["result"]
        show_lines(done, f"Removed certificate {certificate_id}.", as_json=as_json)


def _row(found: Json) -> tuple[object, ...]:
    """Of a pack, or of a certificate that was uploaded."""
    packed = found.get("certificates")
    kind = "uploaded" if packed is None else found["type"]
    ends = [one["expires_on"][:10] for one in ([found] if packed is None else packed)]
    return (found["id"], kind, found["status"], *(ends or [None]), ", ".join(found["hosts"]))


def _read(chain: Path, key: Path | None) -> tuple[str, str]:
    """Raises Failed."""
    text = files.read_path(chain, PEM_BYTES_MAX).decode("ascii", "replace")
    if key is not None:
        return text, files.read_path(key, PEM_BYTES_MAX).decode("ascii", "replace")
    blocks = [_KEY + block for block in text.split(_KEY)[1:]]
    keys = [block for block in blocks if "PRIVATE KEY-----" in block.partition("\n")[0]]
    if len(keys) != 1:
        raise Failed(f"{chain} holds {len(keys)} keys.", "Name the file of the key: --key FILE.")
    return "".join(block for block in blocks if block is not keys[0]), keys[0]
