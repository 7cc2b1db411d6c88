"""`edgecli tls take`: certificates of another program into the folder that the edge serves from.

Owns  finding them below a folder of certbot, lego, Caddy or acme.sh, and a file for each of their names.
Not   having them issued; what the edge does with files (`edge.http.certificates`).

The edge finds a certificate by its file's name, and those programs name a folder by the first of several. So
each name of a certificate gets a copy, also because the service may not read where they keep keys.
"""

import os
import ssl
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from edgestead.cli.failure import Failed
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

FILES_MAX = 100_000  # that are looked at
FILE_BYTES_MAX = 1 << 20  # a chain has under 20 KB
LINEAGE_VARIABLE = "RENEWED_LINEAGE"  # what certbot's deploy hooks are told
_CHAIN, _KEY = "fullchain", ("privkey.pem", "privkey.key")


class _Pair(NamedTuple):
    """`certificate` is the chain's first one, `ends` its last moment."""

    chain: Path
    key: Path
    names: tuple[str, ...]
    ends: datetime
    content: bytes


@click.command(cls=Command, short_help="Certificates of certbot, lego, acme.sh or Caddy.")
@click.argument("source", metavar="[FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--tls-dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("tls"),
    help="Folder of the certificates. Default: tls.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@JSON
def take(source: Path | None, folder: Path, dry_run: bool, as_json: bool) -> None:
    """Put the certificates below FOLDER where the edge serves them from, a file for each of their names.

    FOLDER is one of certbot (/etc/letsencrypt/live, or one certificate's folder in it), lego, acme.sh or
    Caddy. Of several certificates for a name the one that ends last is taken. The files belong to the owner
    of DIR, or to its group where DIR has the bit g+s, so that the service may read them. Run it again after a
    renewal; without FOLDER it is certbot's deploy hook.

    \b
      edgecli tls take /etc/letsencrypt/live --tls-dir /etc/edgestead/tls
      edgecli tls take /var/lib/caddy/.local/share/caddy/certificates --tls-dir tls
    """
    if source is None:
        if not (lineage := os.environ.get(LINEAGE_VARIABLE)):
            raise click.UsageError("FOLDER is missing; certbot's is /etc/letsencrypt/live.")
        source = Path(lineage)
    if not source.is_dir():
        raise click.UsageError(f"{source} is no folder; certbot's is /etc/letsencrypt/live.")
    left: list[str] = []
    chosen = _by_name(_pairs(source, left))
    if not chosen:
        raise Failed(
            f"There is no certificate with its key below {source}.",
            "fullchain.pem with privkey.pem, or NAME.crt with NAME.key, are looked for; may you read them?",
            *left,
        )
    found = []
    for name, pair in sorted(chosen.items()):
        path = folder / f"{name.replace('*', '_', 1)}.pem"
        is_new = _is_new(path, pair.content)
        if is_new and not dry_run:
            _put(path, pair.content)
        state = "unchanged" if not is_new else "would be written" if dry_run else "written"
        ends = pair.ends.strftime("%Y-%m-%d")
        found.append({"name": name, "file": str(path), "from": str(pair.chain), "ends": ends, "state": state})
    lines = [f"{one['name']}: {one['file']}, until {one['ends']}, {one['state']}" for one in found]
    show_lines(found, *lines, as_json=as_json)
    for line in left:
        click.echo(f"Left out: {line}", err=True)


def _pairs(source: Path, left: list[str]) -> Iterator[_Pair]:
    """Every certificate with its key; why one is left out goes to `left`."""
    looked = 0
    for place, folders, names in os.walk(source):
        folders.sort()
        looked += len(names)
        if looked > FILES_MAX:
            raise Failed(f"There are more than {FILES_MAX} files below {source}.")
        for name in sorted(names):
            chain = Path(place, name)
            key = _key_of(chain, names)
            if key is None:
                continue
            try:
                yield _read(chain, key)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                reason = getattr(error, "strerror", None) or error
                left.append(f"{chain}: {reason}")


def _key_of(chain: Path, names: list[str]) -> Path | None:
    """The key beside a certificate with its chain, None: it is none, or has no key here."""
    if chain.stem == _CHAIN and chain.suffix in (".pem", ".cer"):
        own = (*_KEY, f"{chain.parent.name.removesuffix('_ecc')}.key")  # certbot's, and acme.sh's
        return next((chain.with_name(one) for one in own if one in names), None)
    if chain.suffix == ".crt" and not chain.name.endswith(".issuer.crt"):
        key = chain.with_suffix(".key")
        return key if key.name in names else None
    return None


def _read(chain: Path, key: Path) -> _Pair:
    """Raises OSError, ValueError."""
    from cryptography import x509

    texts = [_bounded(chain), _bounded(key)]
    content = b"".join(text.rstrip() + b"\n" for text in texts)
    _hold_to_each_other(content)
    certificate = x509.load_pem_x509_certificate(texts[0])
    ends = certificate.not_valid_after_utc
    if ends < datetime.now(UTC):
        raise ValueError(f"it ended on {ends:%Y-%m-%d}")
    try:
        said = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise ValueError("it is for no host name") from None
    names = tuple(name.lower() for name in said.get_values_for_type(x509.DNSName) if _is_host(name))
    if not names:
        raise ValueError("it is for no host name")
    return _Pair(chain, key, names, ends, content)


def _hold_to_each_other(content: bytes) -> None:
    """Whether chain and key are a pair, of what was read: files may change. Raises OSError."""
    with open(os.memfd_create("pair", os.MFD_CLOEXEC), "wb") as stream:
        stream.write(content)
        stream.flush()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            f"/proc/self/fd/{stream.fileno()}", password=""
        )


def _is_host(name: str) -> bool:
    """Whether a file may be called so."""
    from edgestead import config_values

    try:
        config_values.host_name(name.removeprefix("*."))
    except ValueError:
        return False
    return True


def _bounded(path: Path) -> bytes:
    """Never waits: whoever may write there could have put a pipe or a device in the file's place."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is no file")
        content = stream.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"it is larger than {FILE_BYTES_MAX} bytes")
    return content


def _by_name(pairs: Iterator[_Pair]) -> dict[str, _Pair]:
    chosen: dict[str, _Pair] = {}
    for pair in pairs:
        for name in pair.names:
            if name not in chosen or chosen[name].ends < pair.ends:
                chosen[name] = pair
    return chosen


def _is_new(path: Path, content: bytes) -> bool:
    """Also where it is there, and others than the owner, or than the folder's group, may read it."""
    try:
        return path.read_bytes() != content or bool(path.stat().st_mode & 0o777 & ~_mode(path.parent))
    except FileNotFoundError:
        return True


def _mode(folder: Path) -> int:
    return 0o640 if folder.stat().st_mode & stat.S_ISGID else 0o600


def _put(path: Path, content: bytes) -> None:
    """In its place at once, and readable from then on: the edge reads a file once. Raises OSError."""
    from edgestead.server import files

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.new")
    files.replace_private(aside, content)
    aside.chmod(_mode(path.parent))
    aside.rename(path)
