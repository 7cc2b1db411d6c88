"""`edgecli zone import|export`: zone files in and out.

Owns  arguments, options and output of the two commands; the form that an import is sent as.
Not   what a zone file may hold: the server says. Imports click and the standard library only.
"""

from typing import BinaryIO

import click

from edgestead.cli.failure import Failed
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, ZONE, Command, api, zone_of

FILE_BYTES_MAX = 256 << 20  # read into memory; the server's own limit is far below


@click.command("import", cls=Command)
@ZONE
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--proxied", is_flag=True, help="Proxy what can be, where FILE does not say.")
@JSON
def import_file(zone: str, file: BinaryIO, proxied: bool, as_json: bool) -> None:
    """Add the records of a zone file (RFC 1035 §5) to a zone; - is standard input.

    Records that are there stay. SOA records and the zone's own NS records are skipped.
    """
    import json
    import secrets

    content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise Failed(f"The file is larger than {FILE_BYTES_MAX} bytes.")
    server = api()
    found = zone_of(server, zone)
    boundary = secrets.token_hex(16)
    body = _form(boundary, content, proxied)
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(len(body)),
    }
    path = f"/zones/{found['id']}/dns_records/import"
    answer = server.request("POST", path, headers=headers, body=lambda: body, repeat=False)
    result = json.loads(b"".join(server.chunks(answer)))["result"]
    added = f"{found['name']}: {result['recs_added']} of {result['total_records_parsed']} records are added."
    show_lines(result, added, as_json=as_json)


@click.command("export", cls=Command)
@ZONE
@click.option(
    "-o", "--output", metavar="FILE", type=click.File("wb", lazy=True), default="-", help="Default: stdout."
)
def export_file(zone: str, output: BinaryIO) -> None:
    """Print a zone's records as a zone file, which `import` takes back."""
    server = api()
    found = zone_of(server, zone)
    for chunk in server.chunks(server.request("GET", f"/zones/{found['id']}/dns_records/export")):
        output.write(chunk)


def _form(boundary: str, content: bytes, proxied: bool) -> bytes:
    """RFC 7578. The boundary is random, so that no file can hold it."""
    part = f"--{boundary}\r\nContent-Disposition: form-data; name="
    head = (
        f'{part}"proxied"\r\n\r\n{str(proxied).lower()}\r\n'
        f'{part}"file"; filename="zone.txt"\r\nContent-Type: text/plain\r\n\r\n'
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
