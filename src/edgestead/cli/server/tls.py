"""`edgecli tls`, and `tls dev`: certificates for development, from an authority of this machine's own.

Owns  where they are kept, and that the authority's key is nobody else's to read.
Not   making anybody trust it; certificates of other programs (`cli.server.tls_take`).
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgestead.cli.server.tls_take import take
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

if TYPE_CHECKING:
    from edgestead.cli.server.authority import Authority

_AUTHORITY = "authority"  # the folder beside the certificates; the edge takes no notice of it
NAMES_MAX = 100


@click.group(short_help="Take over certificates, or make them for development.")
def tls() -> None:
    """Certificates that the edge serves with `--https` and `--tls-dir`."""


tls.add_command(take)


@tls.command(cls=Command, short_help="Certificates from an authority of this machine's own.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--tls-dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("tls"),
    help="Folder of the certificates. Default: tls.",
)
@JSON
def dev(names: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Make a certificate for each host NAME (*.example.com for all names below example.com).

    The first time it makes an authority, too. Browsers accept the certificates once they trust the
    authority's own, DIR/authority/ca.pem. Names that have a certificate get a new one.

    \b
      edgecli tls dev www.example.com '*.example.org' --tls-dir tls
    """
    from edgestead.server import files

    if len(names) > NAMES_MAX:
        raise click.UsageError(f"at most {NAMES_MAX} names at a time")
    hosts = [_host(name) for name in names]
    made = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        authority = _authority(folder / _AUTHORITY)
        for host in hosts:
            issued = authority.issue([host], datetime.now(UTC))
            path = folder / f"{host.replace('*', '_')}.pem"
            files.replace_private(path, issued.pem)
            made[host] = str(path)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    authority_file = folder / _AUTHORITY / "ca.pem"
    lines = (f"{host}: {path}" for host, path in made.items())
    found = {"certificates": made, "authority": str(authority_file)}
    show_lines(found, *lines, f"Browsers have to trust {authority_file}", as_json=as_json)


def _host(name: str) -> str:
    from edgestead import config_values

    wildcard = name[:2] if name.startswith("*.") else ""
    if name == "localhost":
        return name
    try:
        return wildcard + config_values.host_name(name.removeprefix(wildcard))
    except ValueError:
        raise click.UsageError(f"{name} is no host name") from None


def _authority(folder: Path) -> "Authority":
    """The folder's authority, made when there is none. Raises OSError, ValueError."""
    from edgestead.cli.server.authority import Authority
    from edgestead.server import files

    folder.mkdir(mode=0o700, exist_ok=True)
    key, certificate = folder / "ca.key", folder / "ca.pem"
    kept = files.read_private(key), files.read_private(certificate)
    if kept[0] is not None and kept[1] is not None:
        return Authority.load(kept[0], kept[1])
    made = Authority.new(datetime.now(UTC))
    files.replace_private(key, made.key_pem)
    files.replace_private(certificate, made.certificate_pem)
    return made
