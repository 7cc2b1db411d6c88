"""Sites of nginx: what `proxy_pass` and `return` say, by server name.

Owns  its `http`, `server`, `upstream` and `location` blocks.
Not   what becomes of a site (`sites`). Everything else of a server is named as left behind.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from edgestead.cli.failure import Failed
from edgestead.cli.state.sources import files
from edgestead.cli.state.sources.blocks import Statement, nginx_statements
from edgestead.cli.state.sources.gathered import Gathered
from edgestead.cli.state.sources.sites import LOCAL, REDIRECTS, Origin, Sites

# What is read below, what the edge does by itself, and what is about connections to nginx alone.
_UNDERSTOOD = frozenset(
    """
    listen server_name location return proxy_pass http2 index access_log error_log proxy_set_header
    proxy_http_version proxy_redirect proxy_buffering ssl_certificate ssl_certificate_key ssl_protocols
    ssl_ciphers ssl_prefer_server_ciphers ssl_session_cache ssl_session_timeout ssl_dhparam server_tokens
    root try_files charset autoindex default_type
    """.split()
)
_WHOLE_SITE = (("/",), ("^~", "/"))  # the words of a location


class _Placed(NamedTuple):
    path: Path
    statement: Statement

    def at(self, statement: Statement | None = None) -> str:
        return f"{self.path}:{(statement or self.statement).line}"


def gather(place: str, found: Gathered) -> None:
    """`place` is nginx.conf, a file of sites, or a folder of such. Raises Failed."""
    path = Path(place)
    roots = [path]
    if path.is_dir():
        main = path / "nginx.conf"
        roots = [main] if main.exists() else sorted(one for one in path.iterdir() if one.is_file())
    everything = [one for root in roots for one in _read(root, root.parent, 0)]
    upstreams = {
        one.statement.words[1]: one
        for one in everything
        if one.statement.name == "upstream" and one.statement.words[1:]
    }
    sites = Sites(found)
    for one in everything:
        if one.statement.name == "server" and one.statement.block is not None:
            _Server(one, upstreams, sites).add()
    sites.end()


def _read(path: Path, folder: Path, depth: int) -> Iterator[_Placed]:
    """Statements of a file and of what it includes, those of `http` among them."""
    try:
        statements = nginx_statements(files.text(path))
    except ValueError as error:
        raise Failed(f"{path}, {error}.") from None
    yield from _walk(statements, path, folder, depth)


def _walk(statements: tuple[Statement, ...], path: Path, folder: Path, depth: int) -> Iterator[_Placed]:
    for statement in statements:
        if statement.name == "include" and statement.words[1:]:
            if depth >= files.INCLUDE_DEPTH_MAX:
                limit = f"more than {files.INCLUDE_DEPTH_MAX} includes in one another"
                raise Failed(f"{path}:{statement.line}: {limit}.")
            for file in files.included(statement.words[1], folder):
                yield from _read(file, folder, depth + 1)
        elif statement.name == "http":
            yield from _walk(statement.block or (), path, folder, depth)
        else:
            yield _Placed(path, statement)


class _Server:
    """One `server` block."""

    def __init__(self, placed: _Placed, upstreams: Mapping[str, _Placed], sites: Sites) -> None:
        self._placed = placed
        self._server = placed.statement
        self._upstreams = upstreams
        self._sites = sites
        self._hosts = [
            name for one in self._server.of("server_name") for name in one.words[1:] if name not in ("_", "")
        ]

    def add(self) -> None:
        if not self._hosts:
            self._leave(self._server, "a server without a name")
            return
        for one in self._server.block or ():
            if one.name not in _UNDERSTOOD:
                self._leave(one, f"{one.name} of {self._hosts[0]}")
        answer = next(self._server.of("return"), None)
        if answer is not None:
            self._redirect("", answer)
        else:
            origin = self._origin()
            for host in self._hosts:
                self._sites.add(host, origin, self._placed.at())
        for location in self._server.of("location"):
            self._location(location)

    def _leave(self, statement: Statement, words: str) -> None:
        self._sites.found.leave(self._placed.at(statement), words)

    def _origin(self) -> Origin:
        """Where `location /` passes to; nginx itself for a site that it serves from files."""
        whole = [one for one in self._server.of("location") if one.words[1:] in _WHOLE_SITE]
        targets = (value for one in (*whole, self._server) if (value := one.value("proxy_pass")))
        if target := next(targets, ""):
            return self._passed_to(target)
        self._leave(self._server, "a site of files: nginx stays its origin, at an address of its own")
        port = re.search(r"(\d+)$", self._server.value("listen", "80"))
        return Origin("http", LOCAL, int(port[1]) if port else None)

    def _passed_to(self, target: str) -> Origin:
        parts = urlsplit(target)
        address = parts.netloc
        upstream = self._upstreams.get(address)
        if upstream is not None:
            servers = [one.words[1] for one in upstream.statement.of("server") if one.words[1:]]
            if len(servers) > 1:
                words = f"upstream {address}: the first of {len(servers)} servers is the origin"
                self._sites.found.leave(upstream.at(), words)
            address = next(iter(servers), "")
        host = urlsplit(f"//{address}").hostname or ""
        if not host or "$" in address or host == "unix":
            self._leave(self._server, f"proxy_pass {target}: no origin is known from it")
            return Origin("http", LOCAL)
        port = re.search(r":(\d{1,5})$", address)
        return Origin(parts.scheme or "http", host, int(port[1]) if port else None)

    def _location(self, location: Statement) -> None:
        words = location.words[1:]
        answer = next(location.of("return"), None)
        if answer is not None and len(words) == 2 and words[0] == "=":
            self._redirect(words[1], answer)
        elif words not in _WHOLE_SITE:
            self._leave(location, f"location {' '.join(words)} of {self._hosts[0]}")

    def _redirect(self, path: str, answer: Statement) -> None:
        words = answer.words[1:]
        status = int(words[0]) if words and words[0].isdigit() else 302
        if status not in REDIRECTS or not words or words[-1].isdigit():
            self._leave(answer, f"return {' '.join(words)} of {self._hosts[0]}{path}")
            return
        for host in self._hosts:
            self._sites.redirect(host, path, status, words[-1], self._placed.at(answer))
