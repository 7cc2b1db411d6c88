"""`edgecli logs`: the server's log and its security events, as they come.

Owns  arguments and output; where the log is; following a file that is put aside.
Not   what is logged (`server.log`), and what is an event (`edgecli waf events`).
"""

import json
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import IO

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import folder_options
from edgestead.cli.target import JSON, Command, Json

LEVELS = ("debug", "info", "warning", "error")
LINES_DEFAULT, LINES_MAX = 20, 100_000
LINE_BYTES_MAX = 1 << 20
FOLLOW_SECONDS = 0.3
UNIT = "edgestead"


@click.command("logs", cls=Command)
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option(
    "lines_max",
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(0, LINES_MAX),
    default=LINES_DEFAULT,
    help=f"How many of the newest; {LINES_DEFAULT} by default.",
)
@click.option("--part", metavar="NAME", help="Only this part: control, edge, dns-0 … or the start of a name.")
@click.option(
    "--level", type=click.Choice(LEVELS), default="debug", help="Only lines of this weight or more."
)
@click.option("--zone", metavar="NAME", help="Only lines that name this zone, or its id.")
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path), help="This log, not the server's."
)
@folder_options
@JSON
def logs(
    follow: bool,
    lines_max: int,
    part: str | None,
    level: str,
    zone: str | None,
    file: Path | None,
    data_dir_given: str | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Show the newest lines of the server's log, and with -f those that come.

    The log is the file of the setting log-file, or the journal of the unit edgestead. Security events have a
    command of their own, `edgecli waf events -f`: they are many, and are kept apart.

    \b
      edgecli logs -f --level warning
      edgecli logs --part edge --zone example.com --json
      edgecli logs --file edge.log -n 100
    """
    wanted = _Wanted(part, level, zone)
    source = file or _log_file(data_dir_given, config_file)
    if source is None and not _has_journal():
        raise Failed(
            f"The server has no log-file, and the journal has no line of the unit {UNIT} that you may read.",
            "A server in a terminal logs there. Set its setting log-file, or name a log with --file.",
        )
    try:
        lines = (
            _of_journal(lines_max, follow=follow)
            if source is None
            else _of_file(source, lines_max, wanted, follow=follow)
        )
        for line in lines:
            found = wanted.line(line)
            if found is not None:
                click.echo(json.dumps(found, ensure_ascii=False) if as_json else _text(found))
    except KeyboardInterrupt:
        pass


class _Wanted:
    """Which lines are shown."""

    def __init__(self, part: str | None, level: str, zone: str | None) -> None:
        self._part, self._zone = part or "", zone or ""
        self._levels = (*LEVELS[LEVELS.index(level) :], "critical")

    def line(self, line: str) -> Json | None:
        """A line's members, or None where it is not wanted. What is no JSON is a message."""
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            found = {"message": line}
        if str(found.get("level", "info")) not in self._levels:
            return None
        if not str(found.get("process", "")).startswith(self._part) or self._zone not in line:
            return None
        return found


def _log_file(given: str | None, config_file: Path | None) -> Path | None:
    from edgestead import config

    try:
        return config.load({"data-dir": given}, config_file).log_file
    except config.ConfigError as error:
        raise Failed(str(error), "`edgecli logs --help` says what it takes.") from None


def _has_journal() -> bool:
    """Whether the journal has a line of the unit: without one, following it would wait in vain."""
    if which("journalctl") is None:
        return False
    words = ["journalctl", "-q", "-u", UNIT, "-o", "cat", "-n", "1"]
    return bool(subprocess.run(words, capture_output=True, check=False).stdout)


def _of_journal(lines_max: int, *, follow: bool) -> Iterator[str]:
    words = ["journalctl", "-u", UNIT, "-o", "cat", "-n", str(lines_max), *(["-f"] if follow else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, errors="replace") as journal:
        assert journal.stdout is not None
        try:
            yield from (line.rstrip("\n") for line in journal.stdout)
        finally:
            journal.terminate()


def _of_file(path: Path, lines_max: int, wanted: _Wanted, *, follow: bool) -> Iterator[str]:
    """The last lines that are wanted, then what is appended, also to the file that takes its place."""
    file = path.open(errors="replace")
    try:
        newest: deque[str] = deque(maxlen=lines_max)
        newest.extend(line for line in _whole_lines(file) if wanted.line(line) is not None)
        yield from newest
        while follow:
            yield from _whole_lines(file)
            if _is_another(path, file):
                yield from _whole_lines(file)
                file.close()
                file = path.open(errors="replace")
            else:
                time.sleep(FOLLOW_SECONDS)
    finally:
        file.close()


def _whole_lines(file: IO[str]) -> Iterator[str]:
    """Up to the last line end; what is behind it is read again when it is whole."""
    while True:
        at = file.tell()
        line = file.readline(LINE_BYTES_MAX)
        if not line.endswith("\n") and len(line) < LINE_BYTES_MAX:
            file.seek(at)
            return
        yield line.rstrip("\n")


def _is_another(path: Path, file: IO[str]) -> bool:
    import os

    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False  # between the old file and the new one


def _text(found: Json) -> str:
    from edgestead.model import log_text

    if "time_us" not in found:
        return str(found.get("message", json.dumps(found, ensure_ascii=False)))
    known = ("time_us", "event", "process", "level", "message", "fault")
    words = str(found.get("message", ""))
    rest = " ".join(f"{name}={value}" for name, value in found.items() if name not in known)
    line = log_text.line(
        int(found["time_us"]),
        str(found.get("process", "control")),
        str(found.get("level", "info")),
        " ".join(part for part in (words or str(found.get("event", "")), rest) if part),
        str(found.get("fault", "")),
    )
    return line.decode().rstrip("\n")
