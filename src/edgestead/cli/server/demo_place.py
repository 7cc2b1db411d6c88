"""Where a demo lives: a temporary folder, the server's process, and the site behind it.

Owns  that nothing of them is left: not after the end, and not after the next start where a demo was killed.
Not   what is shown (`cli.server.demo`).

A folder that nobody holds (`cli.demo_folder`) is what a killed demo left; its server ended with it, because
the kernel was told to end it so.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import click

from edgestead.cli.demo_folder import held
from edgestead.cli.failure import Failed
from edgestead.cli.parent import end_with_parent
from edgestead.cli.source import Source

PREFIX = "edgestead-demo-"
START_SECONDS_MAX = 300.0  # of a process that lives; on a quiet machine it takes a second
END_SECONDS_MAX = 60.0
_FACES = ("api", "dns", "http", "objects-http")
_LOG_LINES = 5
_LOOK_SECONDS = 0.2  # after which the end of the server is noticed
_OBJECTS = "edgestead.cli.server.demo_objects"
_PAGE = b"<!doctype html><title>The origin</title><h1>Hello from the origin behind the edge</h1>\n"


class Place(NamedTuple):
    """A running demo. `ready` is what `edgecli serve --ready-file` writes."""

    data_dir: Path
    ready: Mapping[str, Any]
    process: "subprocess.Popen[bytes]"

    @property
    def source(self) -> Source:
        headers = {"Authorization": f"Bearer {self.ready['api_token']}"}
        return Source("the demo", self.ready["api_base"], headers, self.ready["account_id"])

    def dashboard_link(self) -> str:
        from edgestead.cli.server.dashboard import link_of

        return link_of(self.data_dir)

    def wait(self, words: str) -> None:
        """Say so, and wait until Ctrl-C or SIGTERM. Raises Failed when the server ends by itself."""
        with suppress(KeyboardInterrupt):
            click.echo(words)  # whoever reads it may press Ctrl-C at once
            while (code := self.process.poll()) is None:
                time.sleep(_LOOK_SECONDS)  # a signal just before a wait without an end would be lost
            raise Failed(f"The server ended with {code}.", "`edgecli doctor` looks at this machine.")


@contextmanager
def opened() -> Iterator[Place]:
    """A demo's server, with a site behind it. Raises Failed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with held(PREFIX) as folder:
        process = None
        site = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
        threading.Thread(target=site.serve_forever, name="site", daemon=True).start()
        try:
            process = _serve(folder, site.server_address[1])
            yield Place(folder / "data", _ready(folder, process), process)
        finally:
            if process is not None:
                _end(process)
            site.shutdown()
            site.server_close()


def _serve(folder: Path, origin_port: int) -> "subprocess.Popen[bytes]":
    addresses = [part for key in _FACES for part in (f"--{key}", "127.0.0.1:0")]
    served = ["--origin-port", str(origin_port), "--objects", _OBJECTS]
    files = ["--data-dir", str(folder / "data"), "--ready-file", str(folder / "ready.json")]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "edgestead", "serve", *files, *addresses, *served],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is the demo's, which ends it in order
            preexec_fn=end_with_parent,
        )


def _ready(folder: Path, process: "subprocess.Popen[bytes]") -> Mapping[str, Any]:
    file = folder / "ready.json"
    ends_s = time.monotonic() + START_SECONDS_MAX
    while not file.exists():
        if process.poll() is not None or time.monotonic() > ends_s:
            lines = (folder / "log").read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise Failed("The server did not start.", *lines, "`edgecli doctor` looks at this machine.")
        time.sleep(0.05)
    ready: dict[str, Any] = json.loads(file.read_bytes())
    return ready


def _end(process: "subprocess.Popen[bytes]") -> None:
    """In order; at once when that takes too long, or when somebody is impatient."""
    process.terminate()
    try:
        process.wait(END_SECONDS_MAX)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


class _Site(BaseHTTPRequestHandler):
    """One page, whatever is asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the demo's own words are on the terminal."""
