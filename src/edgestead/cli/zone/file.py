"""`edgecli zone import|export`: zone files in and out.

Owns  arguments, options and output of the two commands; the form that an import is sent as.
Not   what a zone file may hold: the server says. Imports click and the standard library only.
"""

from pathlib import Path
from typing import BinaryIO

import click

from edgestead.cli import files
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command, api, zone_first, zone_of

FILE_BYTES_MAX = 256 << 20  # read into memory; the server's own limit is far below


@click.command("import", cls=Command)
@zone_first
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--proxied", is_flag=True, help="Proxy what can be, where FILE does not say.")
@click.option("--dry-run", is_flag=True, help="Say what would be added, and change nothing.")
@JSON
def import_file(zone: str | None, file: BinaryIO, proxied: bool, dry_run: bool, as_json: bool) -> None:
    """Add the records of a zone file (RFC 1035 §5) to a zone; - is standard input.

    Records that are there stay. SOA records and the zone's own NS records are skipped.

    \b
      edgecli zone import example.com db.example.com
      edgecli record import example.com - < db.example.com
    """
    import json
    import secrets

    content = files.read_opened(file, "The file", FILE_BYTES_MAX)
    server = api()
    found = zone_of(server, zone)
    boundary = secrets.token_hex(16)
    body = _form(boundary, content, proxied)
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(len(body)),
    }
    path = f"/zones/{found['id']}/dns_records/import"
    query = {"dry_run": "true"} if dry_run else None
    answer = server.request("POST", path, query=query, headers=headers, body=lambda: body, repeat=False)
    result = json.loads(b"".join(server.chunks(answer)))["result"]
    done = "would be added" if dry_run else "are added"
    line = f"{found['name']}: {result['recs_added']} of {result['total_records_parsed']} records {done}."
    show_lines(result, line, as_json=as_json)


@click.command("export", cls=Command)
@zone_first
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=files.STDOUT,
    help="Default: stdout.",
)
@click.option("--served", is_flag=True, help="What DNS answers instead of what is stored: see below.")
@click.option("--unsigned", is_flag=True, help="With --served: without signatures, denials and keys.")
@click.option("--key", metavar="NAME", help="With --served: the TSIG key that may transfer the zone.")
def export_file(zone: str | None, output: Path, served: bool, unsigned: bool, key: str | None) -> None:
    """Print a zone's records as a zone file, which `import` takes back.

    With --served it is the zone as DNS serves it, signed if it is: with its SOA and NS, the edge's addresses
    for proxied names, the targets' for flattened ones. BIND, NSD, Knot and PowerDNS serve that file as it is.
    It is transferred from EDGE_DNS_ADDR, or the server on this machine, which has to allow that (--key, or
    `serve --transfer-to`).

    \b
      edgecli zone export example.com -o db.example.com
      edgecli record export example.com
      edgecli zone export example.com --served --key out.example.com -o db.example.com
    """
    if (unsigned or key) and not served:
        raise click.UsageError("--unsigned and --key go with --served.")
    server = api()
    found = zone_of(server, zone)
    if served:
        from edgestead.cli.zone.served import zone_file

        chunks = zone_file(found["name"], key, unsigned=unsigned)
    else:
        chunks = server.chunks(server.request("GET", f"/zones/{found['id']}/dns_records/export"))
    with files.written(output) as file:
        for chunk in chunks:
            file.write(chunk)


def _form(boundary: str, content: bytes, proxied: bool) -> bytes:
    """RFC 7578. The boundary is random, so that no file can hold it."""
    part = f"--{boundary}\r\nContent-Disposition: form-data; name="
    head = (
        f'{part}"proxied"\r\n\r\n{str(proxied).lower()}\r\n'
        f'{part}"file"; filename="zone.txt"\r\nContent-Type: text/plain\r\n\r\n'
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
