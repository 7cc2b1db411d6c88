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
from edgestead.cli.target import JSON, YES, Command, Json, api, whole_list, zone_first, zone_of

PEM_BYTES_MAX: Final = 64 << 10  # of one file: a chain of ten certificates has half of it
DAYS: Final = ("7", "30", "90", "365", "730", "1095", "5475")  # those that the API takes
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
    found_zone = zone_of(server, zone)
    path = f"/zones/{found_zone['id']}"
    found = [
        *whole_list(server, f"{path}/ssl/certificate_packs", {"status": "all"}),
        *whole_list(server, f"{path}/custom_certificates", {}),
        *whole_list(server, "/certificates", {"zone_id": found_zone["id"]}),
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
    ids = [pack_id] if pack_id else [one["id"] for one in whole_list(server, path, {"status": "all"})]
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
    body = {"certificate": chain_text, "private_key": key_text}
    made = server.call(method, path, json_body=body, repeat=bool(replace))["result"]
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


@certificate.command("origin", cls=Command)
@zone_first
@click.option(
    "--key",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path("origin.key"),
    help="The origin's key; made where there is none. Default: origin.key.",
)
@click.option("--host", "hosts", metavar="NAME", multiple=True, help="For this name. Default: ZONE, *.ZONE.")
@click.option("--days", type=click.Choice(DAYS), default=DAYS[-1], help=f"Default: {DAYS[-1]}.")
@DRY_RUN
@JSON
def origin(zone: str | None, key: Path, hosts: tuple[str, ...], days: str, as_json: bool) -> None:
    """Print a certificate for an origin of ZONE, whose key stays on this machine.

    The edge trusts it where the zone's setting ssl is strict; browsers do not.

    \b
      edgecli certificate origin example.com --key origin.key > origin.pem
    """
    server = api()
    name = zone_of(server, zone)["name"]
    sent = {"csr": _request(key), "hostnames": list(hosts) or [name, f"*.{name}"]}
    body = sent | {"requested_validity": int(days)}
    made = server.call("POST", "/certificates", json_body=body, repeat=False)["result"]
    click.echo(f"{', '.join(made['hostnames'])} until {made['expires_on'][:10]}, {made['id']}.", err=True)
    show_lines(made, made["certificate"].rstrip(), as_json=as_json)


@certificate.command("revoke", cls=Command)
@click.argument("certificate_id", metavar="ID")
@YES
@DRY_RUN
@JSON
def revoke(certificate_id: str, yes: bool, as_json: bool) -> None:
    """Revoke a certificate for an origin, after a y/n question: the edge takes it no more.

    \b
      edgecli certificate revoke 0123456789abcdef0123456789abcdef
    """
    from edgestead.cli.http import segment

    server = api()
    if confirmed(f"Revoke certificate {certificate_id}?", yes=yes, verb="revoke", quiet=as_json):
        done = server.call("DELETE", f"/certificates/{segment(certificate_id)}", repeat=False)["result"]
        show_lines(done, f"Revoked certificate {certificate_id}.", as_json=as_json)


def _request(path: Path) -> str:
    """A request (PEM) for the key in a file, which is made where there is none. Raises Failed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        if not path.exists() and not is_dry_run():
            key_pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            with files.made(path, 0o600) as file:
                file.write(key_pem)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}.") from None
    if not path.exists():
        return "(of the key that is made)"
    try:
        key = serialization.load_pem_private_key(files.read_path(path, PEM_BYTES_MAX), None)
    except (ValueError, TypeError):
        raise Failed(
            f"{path} holds no key in PEM without a password.", "Name another with --key FILE."
        ) from None
    if not isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
        raise Failed(
            f"{path} holds a key of another kind than RSA or a curve.", "Name another with --key FILE."
        )
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def _row(found: Json) -> tuple[object, ...]:
    """Of a pack, of a certificate that was uploaded, or of one for an origin."""
    if "csr" in found:
        hosts = ", ".join(found["hostnames"])
        return (found["id"], "for origins", "active", found["expires_on"][:10], hosts)
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
