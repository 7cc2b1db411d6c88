"""A checkout with a started server, as the pages for newcomers suppose it."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edgestead.server.places import private_place
from tests.support.patience import new_server
from tests.support.patterns import DATABASES, share_patterns

__all__ = ["new_server"]

ROOT = Path(__file__).parents[2]
PAGE_SECONDS_MAX = 800  # a page is a hundred commands, and other tests run beside it


class Checkout:
    """A folder like a checkout after its first start: `.venv/bin/edgecli` talks to the started server."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        data_dir = server.data_dir
        command = folder / ".venv" / "bin" / "edgecli"
        command.parent.mkdir(parents=True)
        command.write_text(
            f'#!/bin/sh\n[ "$1" = env ] && set -- env --data-dir {data_dir}\n'
            f'PYTHONPATH={ROOT / "src"} exec {sys.executable} -P -m edgestead "$@"\n'
        )
        command.chmod(0o755)
        share_patterns(data_dir)  # with the commands, too, which look for them in a cache
        (folder / "cache" / "edgestead").mkdir(parents=True)
        (folder / "cache" / "edgestead" / "rules").symlink_to(DATABASES)

    def run(self, page, before=None, then=""):
        """The `sh` blocks of a page as one script that ends at the first failure; returns what it printed.

        `before` is a heading at which to stop, `then` a script to go on with.
        """
        done = subprocess.run(
            ["sh", "-euc", shell_of(page, before) + then],
            cwd=self.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            capture_output=True,
            text=True,
            timeout=PAGE_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def shell_of(page, before=None):
    """The fenced `sh` blocks of a page, in order, as one script; those above the heading `before`."""
    text = (ROOT / page).read_text()
    if before is not None:
        text, found, _ = text.partition(before)
        assert found, f"{page} has no heading {before}"
    parts = text.split("```sh\n")[1:]
    return "\n".join(part.partition("```")[0] for part in parts)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def origin_port(tmp_path):
    """`python3 -m http.server` with the page of the tutorial, on a port that is held."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<h1>Hello from the origin</h1>\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server.server_port
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def toured(tmp_path, new_server, origin_port):
    """A checkout whose server was started as README and tutorial say."""
    tls = tmp_path / "checkout" / "tls"
    server = new_server(
        *("--https", "{}:{}".format(*private_place()), "--tls-dir", str(tls)),
        *("--origin-port", str(origin_port)),
        *("--objects", str(ROOT / "examples")),
    )
    return Checkout(tmp_path / "checkout", server.start())
