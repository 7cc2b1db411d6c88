"""How long does somebody wait who types the pages for newcomers, command by command?

    python benchmarks/tutorial.py [PAGE …]     the first page of the docs, the quick start and the tutorial

Each page's commands go as they stand to a server of their own, by the shell that also says when each began.
The server's own start is the first row. Each round of a loop that waits (`until`) is a row of its own.
The first page starts at a bare system, so its commands are typed in one, by root: from the Debian package,
which is made before, to the backup that was restored. It needs root, debootstrap and a network, and says so.
"""

import argparse
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer
from tests.docs.conftest import ROOT, Checkout, shell_of
from tests.packaging.bare import Tree, base
from tests.packaging.first_page import as_root, first_page, furnish

FIRST = first_page()
PAGES = (FIRST, "docs/quick-start.md", "docs/tutorial.md")
SUITE = "bookworm"
SHOWN = 12  # the slowest
# Before each command: when, and what.
_TOLD = """trap 'printf "%s\\t%s\\0" "$EPOCHREALTIME" "$BASH_COMMAND" >&9' DEBUG\n"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def on_a_bare_system(folder: Path) -> Iterator[tuple[str, float]]:
    """Each command of the first page, with its seconds. Raises pytest's Skipped where it cannot be."""
    base(SUITE)
    tree = Tree(folder / "bare")
    furnish(tree)
    made = subprocess.run(
        [ROOT / "scripts" / "build-deb", folder], check=True, stdout=subprocess.PIPE, text=True
    )
    tree.copy(made.stdout.split()[-1], "root")
    install, rest = (f"set -eu\nexec 9>>/typed/told\n{_TOLD}{script}\n:\n" for script in as_root(SUITE))
    # What was told goes with the bare system: it is printed last, behind a mark that no command prints.
    printed = tree.type(SUITE, install, f"{rest}trap - DEBUG\nprintf '\\f'\ncat /typed/told\n", shell="bash")
    yield from rows_of(printed.rpartition("\f")[2])


def rows_of(told: str) -> Iterator[tuple[str, float]]:
    """What a shell said by `_TOLD`."""
    rows = [row.split("\t", 1) for row in told.split("\0")[:-1]]
    for (at, command), (then, _) in pairwise(rows):
        yield re.sub(r"\s+", " ", command), float(then) - float(at)


def typed(page: str, folder: Path) -> Iterator[tuple[str, float]]:
    """Each command of a page, with its seconds."""
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text("<h1>Hello from the origin</h1>\n")
    origin = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder / "site")))
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    began = time.perf_counter()
    server = EdgeServer(
        folder / "data",
        *("--https", "{}:{}".format(*private_place()), "--tls-dir", str(folder / "checkout" / "tls")),
        *("--origin-port", str(origin.server_port), "--objects", str(ROOT / "examples")),
    ).start()
    yield "the server starts", time.perf_counter() - began
    try:
        checkout = Checkout(folder / "checkout", server)
        told = folder / "told"
        script = f"exec 9>'{told}'\n{_TOLD}{shell_of(page)}\n:\n"
        environ = {**os.environ, "XDG_CACHE_HOME": str(checkout.folder / "cache")}
        subprocess.run(
            ["bash", "-euc", script], check=True, cwd=checkout.folder, env=environ, stdout=subprocess.DEVNULL
        )
    finally:
        server.stop()
        server.close()
        origin.shutdown()
    yield from rows_of(told.read_text())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="*", default=PAGES)
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as name:
            try:
                rows = list(on_a_bare_system(Path(name)) if page == FIRST else typed(page, Path(name)))
            except pytest.skip.Exception as skipped:
                print(f"{page}: not timed: {skipped}")
                continue
        print(f"{page}: {len(rows)} commands, {sum(seconds for _, seconds in rows):.1f} s in all")
        for command, seconds in sorted(rows, key=lambda row: -row[1])[:SHOWN]:
            print(f"  {seconds:6.2f} s  {command[:90]}")


if __name__ == "__main__":
    main()
