"""Record the quick start: `.venv/bin/python -m docs.pictures.recording` runs its commands on a new server.

Owns  the files docs/pictures/quick-start.svg, which moves, and quick-start.cast, which asciinema plays.
Not   the commands: each stands in docs/quick-start.md, and a test looks.

What is shown is what was printed, with the time it took; pauses are for readers. Identifiers are those of the
run.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer
from tests.docs.conftest import ROOT, Checkout

FOLDER = Path(__file__).parent
SVG, CAST = FOLDER / "quick-start.svg", FOLDER / "quick-start.cast"
PAGE = "docs/quick-start.md"
# Lines of the page, as they stand there; those that begin with a blank are typed and not shown.
SHOWN = (
    ' eval "$(.venv/bin/edgecli env)"',
    ' PATH="$PWD/.venv/bin:$PATH"',
    "edgecli zone create example.com",
    "edgecli record create example.com mail A 192.0.2.1",
    'dig +short -p "${EDGE_DNS_ADDR##*:}" @"${EDGE_DNS_ADDR%:*}" mail.example.com',
    "edgecli record create example.com www A 127.0.0.1 --proxied",
    "edgecli tls dev www.example.com",
    ' visit() { curl -s --cacert tls/authority/ca.pem --connect-to "::$EDGE_HTTPS_ADDR"'
    ' "https://www.example.com$@"; }',
    " status() { visit \"$@\" -o /dev/null -w '%{http_code}\\n'; }",
    "visit / --retry 20 --retry-delay 1 --retry-all-errors",
    "edgecli rule add custom managed_challenge 'http.request.uri.path eq \"/signup\"'",
    "status /signup",
    "edgecli object call Booking friday hold 1A ann",
    "before=$(edgecli object bookmark Booking friday)",
    "edgecli object call Booking friday cancel_show",
    'edgecli object restore Booking friday "$before" --yes',
    "edgecli object call Booking friday seats",
)
COLUMNS, ROWS = 100, 24
_LINE_PX, _CHARACTER_PX, _MARGIN_PX, _FONT_PX = 18, 8.4, 14, 14
_TYPING_SECONDS, _READING_SECONDS, _LAST_SECONDS = 0.025, 1.0, 6.0
_OUTPUT_SECONDS_MAX = 1.5  # that a command is waited for in the recording
_DONE = "--done--"


class Moment(NamedTuple):
    """A line that appears; `is_typed` is a command, which appears letter by letter."""

    at_seconds: float
    text: str
    is_typed: bool


def record(folder: Path) -> list[Moment]:
    """Run the commands on a server with a site, as the page has it. Raises AssertionError: one failed."""
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "index.html").write_text("<h1>Hello from the origin</h1>\n")
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder / "site")))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    checkout = folder / "checkout"
    server = EdgeServer(
        folder / "data",
        *("--https", "{}:{}".format(*private_place()), "--tls-dir", str(checkout / "tls")),
        *("--origin-port", str(site.server_port), "--objects", str(ROOT / "examples")),
    )
    try:
        return list(_typed(Checkout(checkout, server.start())))
    finally:
        server.close()
        site.shutdown()
        site.server_close()


def _typed(checkout: Checkout) -> Iterator[Moment]:
    with subprocess.Popen(
        ["bash"],
        cwd=checkout.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": str(COLUMNS)},
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        now = 0.5
        for line in SHOWN:
            begun = time.monotonic()
            shell.stdin.write(f"{line}\necho {_DONE} $?\n")
            shell.stdin.flush()
            printed = []
            while not (text := shell.stdout.readline()).startswith(_DONE):
                assert text, f"the shell ended at {line}"
                printed.append(text.rstrip("\n"))
            assert text.split()[1] == "0", f"{line}: {printed}"
            if not line.startswith(" "):
                yield Moment(now, line, True)
                now += _TYPING_SECONDS * len(line) + min(time.monotonic() - begun, _OUTPUT_SECONDS_MAX)
                yield from (Moment(now, one, False) for text in printed for one in _wrapped(text))
                now += _READING_SECONDS


def _wrapped(text: str) -> list[str]:
    return [text[at : at + COLUMNS] for at in range(0, len(text), COLUMNS)] or [""]


def cast(moments: Sequence[Moment]) -> str:
    """asciicast, version 2."""
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "title": "Edgestead: quick start"})]
    for moment in moments:
        at = moment.at_seconds
        if not moment.is_typed:
            lines.append(json.dumps([round(at, 3), "o", moment.text + "\r\n"]))
            continue
        lines.append(json.dumps([round(at, 3), "o", "$ "]))
        for letter in (*moment.text, "\r\n"):
            at += _TYPING_SECONDS
            lines.append(json.dumps([round(at, 3), "o", letter]))
    return "\n".join(lines) + "\n"


def svg(moments: Sequence[Moment]) -> str:
    """A picture that moves by itself, without a script; lines scroll up when the screen is full."""
    seconds = moments[-1].at_seconds + _LAST_SECONDS
    rows = [row for moment in moments for row in _rows(moment)]
    scrolls = [
        (at, max(0, number + 1 - ROWS) * _LINE_PX) for number, (at, _, _) in enumerate(rows) if number >= ROWS
    ]
    width, height = round(COLUMNS * _CHARACTER_PX + 2 * _MARGIN_PX), ROWS * _LINE_PX + 2 * _MARGIN_PX
    steps = "".join(f"{at / seconds:.4%}{{transform:translateY(-{px}px)}}" for at, px in [(0.0, 0), *scrolls])
    style = [
        f"text{{font:{_FONT_PX}px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d7dde4}}",
        ".c{fill:#8fd3a8;font-weight:600}",
        f"#all{{animation:up {seconds:.2f}s infinite step-end}}",
        f"@keyframes up{{{steps}}}",
        *(
            f"#l{number}{{animation:k{number} {seconds:.2f}s infinite step-end}}"
            f"@keyframes k{number}{{0%{{opacity:0}}{at / seconds:.4%}{{opacity:1}}}}"
            for number, (at, _, _) in enumerate(rows)
        ),
        "@media (prefers-reduced-motion:reduce){text,#all{animation:none!important}}",
    ]
    texts = (
        f'<text id="l{number}" class="{"c" if is_typed else "o"}" x="{_MARGIN_PX}" '
        f'y="{_MARGIN_PX + (number + 1) * _LINE_PX - 4}">{escape(text, quote=False)}</text>'
        for number, (_, text, is_typed) in enumerate(rows)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
            f' viewBox="0 0 {width} {height}">',
            "<title>The quick start, recorded</title>",
            f"<style>{''.join(style)}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#10151b"/>',
            f'<svg x="0" y="{_MARGIN_PX // 2}" width="{width}" height="{height - _MARGIN_PX}"><g id="all">',
            *texts,
            "</g></svg></svg>\n",
        ]
    )


def _rows(moment: Moment) -> Iterator[tuple[float, str, bool]]:
    """A command of more than one line goes on in the next."""
    for text in _wrapped(f"$ {moment.text}" if moment.is_typed else moment.text):
        yield moment.at_seconds, text, moment.is_typed


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        moments = record(Path(folder))
    for path, text in ((SVG, svg(moments)), (CAST, cast(moments))):
        path.write_text(text)
        sys.stdout.write(f"{path.name}: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
