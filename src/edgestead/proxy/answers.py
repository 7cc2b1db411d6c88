"""Answers of the edge's own to requests that rules stop.

Owns  which form a client wants (a page, JSON, plain text), the block page, its headers.
Asks  nobody.
Tells the phases that stop requests.
Not   errors of origins (52x); the challenge page (`challenge_page`).
"""

import html
import json

from edgestead.proxy.exchange import Exchange, Headers, Response

_REASONS = {403: "Forbidden", 429: "Too many requests"}
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{status} {title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34em;padding:0 1em;color:#222}}
small{{color:#666}}@media(prefers-color-scheme:dark){{body{{background:#181818;color:#ddd}}}}</style>
<h1>{title}</h1>
<p>{words}</p>
<p><small>Request {ray}</small></p>
</html>
"""
_NO_STORE = (b"cache-control", b"private, no-store")


def wants_page(exchange: Exchange) -> bool:
    """Whether somebody looks at the answer: browsers ask for HTML by name when they open a page."""
    return b"text/html" in (exchange.header(b"accept") or b"").lower()


def wants_json(exchange: Exchange) -> bool:
    accept = (exchange.header(b"accept") or b"").lower()
    return b"json" in accept or (
        b"json" in (exchange.header(b"content-type") or b"").lower() and not wants_page(exchange)
    )


def stopped(exchange: Exchange, status: int, code: str, words: str, more: Headers | None = None) -> Response:
    """A refusal in the form that the client wants. `code` is for programs, `words` are for people."""
    ray = exchange.ray.decode("ascii", "replace")
    if wants_page(exchange):
        kind = b"text/html; charset=utf-8"
        title = _REASONS.get(status, "Refused")
        text = _PAGE.format(status=status, title=title, words=html.escape(words), ray=html.escape(ray))
    elif wants_json(exchange):
        kind = b"application/json"
        text = json.dumps(
            {"success": False, "errors": [{"code": code, "message": words}], "ray_id": ray, "result": None}
        )
    else:
        kind = b"text/plain; charset=utf-8"
        text = f"{words}\nRequest {ray}\n"
    headers = [(b"content-type", kind), _NO_STORE, *(more or ())]
    return Response(status, headers, text.encode())
