"""`edgecli rule test`: which rules of a zone a request would match.

Owns  the request that the options describe; the line of each rule.
Not   matching: the edge's own compiler and fields decide; what a rule would count; answers of an origin.
"""

import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed
from edgestead.cli.rule.phases import full_name, word_of
from edgestead.cli.rule.rules import Found, every_rule
from edgestead.cli.rule.target import JSON, ZONE, Command, zone_target
from edgestead.cli.table import show_list
from edgestead.cli.target import Json

if TYPE_CHECKING:
    from edgestead.edge.exchanges.exchange import Exchange
    from edgestead.language import View

_HEADS = ("phase", "place", "matches", "action", "expression", "description")
_ENDS = frozenset({"block", "challenge", "js_challenge", "managed_challenge", "redirect"})
_PORTS = {"http": 80, "https": 443}


@click.command("test", cls=Command)
@click.argument("url", metavar="URL")
@click.option("-X", "--method", metavar="METHOD", default="GET", help="Its method; GET by default.")
@click.option(
    "headers", "-H", "--header", metavar="'NAME: VALUE'", multiple=True, help="One header; repeatable."
)
@click.option("--ip", metavar="ADDRESS", default="192.0.2.1", help="Its client; 192.0.2.1 by default.")
@click.option("--data", metavar="TEXT", help="Its body; @FILE reads one.")
@click.option("--phase", metavar="PHASE", help="Only the rules of this phase.")
@click.option(
    "expression", "--expression", metavar="EXPRESSION", help="Try this instead of the zone's rules."
)
@ZONE
@JSON
def try_request(
    url: str,
    method: str,
    headers: tuple[str, ...],
    ip: str,
    data: str | None,
    phase: str | None,
    expression: str | None,
    zone: str | None,
    as_json: bool,
) -> None:
    """Say which rules a request for URL would match, in the order of evaluation. No request is sent.

    Rules behind the first one that ends the request are shown, too, and marked. Skips, and what rate limits
    count, are not tried; `edgecli waf explain` tries the managed rules.
    """
    from edgestead.edge.rules.fields import view_of

    target = zone_target(zone)
    request = _request(url, method.upper(), headers, ip, data)
    wanted = full_name(phase) if phase else None
    if expression is not None:
        rules = [_own(expression, wanted or "http_request_firewall_custom")]
    else:
        rules = [found for found in every_rule(target, wanted) if not _needs_answer(found)]
    rows: list[Json] = []
    ended = False
    for found in rules:
        matched = found.rule.get("enabled", True) and _matches(found, view_of(request))
        shown = "off" if not found.rule.get("enabled", True) else "yes" if matched else "no"
        rows.append(
            {
                **found.rule,
                "phase": found.ruleset["phase"],
                "place": found.place,
                "matches": shown,
                "reached": not ended,
            }
        )
        ended = ended or (matched and found.rule["action"] in _ENDS)
    show_list(rows, _HEADS, _row, as_json=as_json)


def _needs_answer(found: Found) -> bool:
    return str(found.ruleset["phase"]).startswith("http_response")


def _own(expression: str, phase: str) -> Found:
    return Found({"phase": phase}, {"action": "log", "expression": expression, "enabled": True}, 1)


def _matches(found: Found, view: "View") -> bool:
    from edgestead.language import FilterError, compile_filter

    try:
        matches = compile_filter(found.rule["expression"], found.ruleset["phase"])
        return matches(view)
    except FilterError as error:
        raise Failed(f"{found.rule['expression']}: {error}") from None


def _request(url: str, method: str, headers: tuple[str, ...], ip: str, data: str | None) -> "Exchange":
    from edgestead.edge.exchanges.exchange import Exchange, ZoneFacts
    from edgestead.http1.head import by_name

    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise click.BadParameter(f"{url!r} is not like http://www.example.com/path.", param_hint="URL")
    try:
        port = parts.port or _PORTS[parts.scheme]
        client = str(ip_address(ip))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    host = parts.hostname.encode("idna")
    lines = [(b"host", host), *(_header(line) for line in headers)]
    body = _body(data)
    if body:
        lines.append((b"content-length", b"%d" % len(body)))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    made = Exchange(
        client=client,
        peer=client,
        scheme=parts.scheme.encode(),
        port=port,
        version=b"HTTP/1.1",
        method=method.encode(),
        target=target.encode(),
        headers=lines,
        by_name=by_name(lines),
        host=host,
        zone=ZoneFacts("", b"", "", "free", {}),
        ray=b"0" * 16,
        arrived_us=time.time_ns() // 1_000,
    )
    made.body, made.body_length = body, len(body)
    return made


def _header(line: str) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{line!r} is not like 'NAME: VALUE'.", param_hint="--header")
    return name.strip().lower().encode(), value.strip().encode()


def _body(data: str | None) -> bytes:
    if data is None:
        return b""
    if not data.startswith("@"):
        return data.encode()
    return Path(data[1:]).read_bytes()


def _row(rule: Json) -> tuple[object, ...]:
    matches = rule["matches"] if rule["reached"] or rule["matches"] != "yes" else "yes, not reached"
    phase = word_of(rule["phase"])
    return (phase, rule["place"], matches, rule["action"], rule["expression"], rule.get("description"))
