"""The edge's own pages for what went wrong.

Owns  their words and their two forms, HTML and JSON.
Not   pages of rules (blocked, challenged).

A page says nothing that its client sent, except that the host is escaped and shown.
"""

import html
import json

from edgestead.edge.exchanges.answers import words
from edgestead.edge.exchanges.exchange import Response

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{status} {title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;padding:0 1em;color:#222}}
h1{{font-weight:600;font-size:1.6em}}small{{color:#666}}
@media(prefers-color-scheme:dark){{body{{background:#181818;color:#ddd}}small{{color:#999}}}}</style></head>
<body><h1>{status} {title}</h1><p>{reason}</p><p><small>{host}Ray ID: {ray}</small></p></body></html>
"""


def page(status: int, reason: str, *, ray: bytes, host: bytes = b"", accept: bytes | None = None) -> Response:
    """JSON for who asks for it and not for HTML; never stored by a cache."""
    headers = [(b"cache-control", b"no-store")]
    if accept is not None and b"json" in accept and b"html" not in accept:
        error = {"code": status, "message": f"{words(status)}: {reason}"}
        body = json.dumps(
            {"success": False, "errors": [error], "messages": [], "result": None, "ray_id": ray.decode()}
        ).encode()
        return Response(status, [(b"content-type", b"application/json"), *headers], body)
    shown = f"{html.escape(host.decode('ascii', 'replace'))} · " if host else ""
    text = _PAGE.format(
        status=status,
        title=html.escape(words(status)),
        reason=html.escape(reason),
        host=shown,
        ray=ray.decode(),
    )
    return Response(status, [(b"content-type", b"text/html; charset=utf-8"), *headers], text.encode())
