"""Sites of Caddy: its configuration as JSON, or a Caddyfile that `caddy adapt` makes JSON of.

Owns  its HTTP servers' routes and handlers.
Not   what becomes of a site (`sites`).
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from edgestead.cli.failure import Failed
from edgestead.cli.state.document import Json
from edgestead.cli.state.sources import files
from edgestead.cli.state.sources.gathered import Gathered, text_of
from edgestead.cli.state.sources.sites import LOCAL, REDIRECTS, Origin, Sites

ADAPT_SECONDS_MAX = 60
DEPTH_MAX = 32  # of routes in one another
_DONE_BY_THE_EDGE = frozenset({"encode", "vars"})


def gather(place: str, found: Gathered) -> None:
    """Raises Failed."""
    path = Path(place)
    sites = Sites(found)
    try:
        configuration = json.loads(files.text(path) if path.suffix == ".json" else _adapted(path))
        for name, server in configuration["apps"]["http"]["servers"].items():
            for route in server.get("routes", ()):
                _route(sites, route, (), f"{place}, server {name}", 0)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise Failed(f"{place} is no configuration of Caddy with HTTP servers: {error}.") from None
    sites.end()


def _adapted(path: Path) -> str:
    caddy = shutil.which("caddy")
    if caddy is None:
        raise Failed(
            f"{path} is no JSON, and there is no `caddy` here that makes JSON of it.",
            f"Where Caddy runs: caddy adapt --config {path} > caddy.json",
        )
    command = [caddy, "adapt", "--adapter", "caddyfile", "--config", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ADAPT_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Failed(f"`caddy adapt` of {path} took longer than {ADAPT_SECONDS_MAX} seconds.") from None
    if done.returncode:
        raise Failed(f"`caddy adapt` of {path}: {done.stderr.strip()[-500:]}")
    return done.stdout


def _route(sites: Sites, route: Json, hosts: tuple[str, ...], where: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise Failed(f"{where}: more than {DEPTH_MAX} routes in one another.")
    matches = route.get("match", ())
    named = tuple(host for match in matches for host in match.get("host", ())) or hosts
    paths = [path for match in matches for path in match.get("path", ()) if path not in ("/*", "*")]
    for handler in route.get("handle", ()):
        if handler["handler"] == "subroute":
            for inner in handler.get("routes", ()):
                _route(sites, inner, named, where, depth + 1)
            continue
        for host in named or ("",):
            _handler(sites, host, paths, handler, where)


def _handler(sites: Sites, host: str, paths: list[str], handler: Json, where: str) -> None:
    """`paths` are those that it is for; none means all."""
    kind = handler["handler"]
    place = " ".join((f"{where}, {host or 'every host'}", *paths))
    target, status = _redirect(handler)
    if target and status in REDIRECTS and not any("*" in path for path in paths):
        for path in paths or [""]:
            sites.redirect(host, path, status, target, place)
    elif kind == "reverse_proxy" and not paths:
        origins = list(_origins(handler))
        if len(origins) > 1:
            sites.found.leave(place, f"the first of {len(origins)} upstreams is the origin")
        if origins:
            sites.add(host, origins[0], place)
        else:
            sites.found.leave(place, "reverse_proxy: no origin is known from it")
    elif kind == "file_server" and not paths:
        sites.found.leave(place, "a site of files: Caddy stays its origin, at an address of its own")
    elif kind not in _DONE_BY_THE_EDGE:
        sites.found.leave(place, kind)


def _redirect(handler: Json) -> tuple[str, int]:
    """("", 0): it is none."""
    if handler["handler"] != "static_response":
        return "", 0
    targets = handler.get("headers", {}).get("Location", ())
    return next(iter(targets), ""), int(handler.get("status_code") or 302)


def _origins(handler: Json) -> Iterator[Origin]:
    scheme = "https" if "tls" in (handler.get("transport") or {}) else "http"
    for upstream in handler.get("upstreams", ()):
        host, _, port = text_of(upstream.get("dial")).rpartition(":")
        if port.isdigit():
            yield Origin(scheme, host.strip("[]") or LOCAL, int(port))
