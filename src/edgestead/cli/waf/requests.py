"""What `edgecli waf explain`, `replay` and `suggest` work with: rules, and requests from files.

Owns  loading the rules and their compiled form, reading files, the option --crs.
Not   inspecting. Imports click and the standard library only; the rest when it is needed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import click

from edgestead.cli.failure import Failed, warn
from edgestead.cli.files import read_opened

if TYPE_CHECKING:
    from edgestead.cli.waf.samples import Sample
    from edgestead.crs import Catalogue
    from edgestead.waf.engine import Engine

REQUEST_BYTES_MAX = 16 << 20  # of a file with one request
HAR_BYTES_MAX = 1 << 30
CRS = click.option(
    "--crs", metavar="PATH", help="The rule set: a folder or a release archive. Default: the system's."
)
FILE = click.argument("file", metavar="FILE", type=click.File("rb"))


class Rules(NamedTuple):
    engine: "Engine"
    catalogue: "Catalogue"


def load_rules(crs: str | None, *, fast: bool) -> Rules:
    """The rules with their compiled patterns, where the user's cache has them; `fast` makes them where not.

    Raises Failed.
    """
    from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID, RulesMissing, RulesUnreadable
    from edgestead.server.edge import rules
    from edgestead.waf.engine import Engine

    try:
        found = rules.read(Path(crs) if crs else None, RULESET_ID, ANOMALY_RULE_ID)
        stored = _stored(found.rule_set, make=fast)
        engine = Engine(found.rule_set, stored=stored)
    except RulesMissing as error:
        raise Failed(f"There is no rule set: {error}.", "Name one with --crs PATH.") from None
    except (RulesUnreadable, ValueError, OSError) as error:
        raise Failed(f"The rule set cannot be used: {error}.") from None
    for note in engine.notes:
        warn(note)
    return Rules(engine, found.catalogue)


def _stored(rule_set: object, *, make: bool) -> bytes | None:
    from platformdirs import user_cache_path

    from edgestead.server import waf_part
    from edgestead.waf.load.compile import RuleSet
    from edgestead.waf.plan import scan

    assert isinstance(rule_set, RuleSet)
    if not scan.available():
        return None
    folder = user_cache_path("edgestead") / "rules"
    kept = waf_part.kept(rule_set, folder)
    if kept is None and make:
        click.echo("Compiling the rules' patterns, once; this takes up to a minute.", err=True)
        kept = waf_part.database(rule_set, folder)
    return kept


def name_of(file: BinaryIO) -> str:
    return str(getattr(file, "name", "<stdin>"))


def one_sample(file: BinaryIO) -> "Sample":
    """The request in a file. Raises Failed."""
    from edgestead.cli.waf import samples

    content = read_opened(file, name_of(file), REQUEST_BYTES_MAX)
    try:
        return samples.one_request(content, name_of(file))
    except samples.NotARequest as error:
        raise Failed(f"{name_of(file)}: {error}.") from None


def total_bytes(file: BinaryIO) -> int:
    """0 where nobody knows."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return 0


def all_samples(file: BinaryIO) -> Iterator[tuple["Sample | None", int]]:
    """The requests of a log or a HAR file, each with the bytes since the one before; None for a line that
    holds none. Raises Failed.
    """
    from edgestead.cli.waf import samples

    name = name_of(file)
    ahead = [file.readline(samples.LINE_BYTES_MAX + 1) for _ in range(2)]
    if samples.is_har(b"".join(ahead)):
        content = b"".join(ahead) + read_opened(file, name, HAR_BYTES_MAX)
        try:
            found = samples.requests_of_har(content, name)
        except samples.NotARequest as error:
            raise Failed(f"{name}: {error}.") from None
        for sample in found:
            yield sample, len(content) // len(found)
        return
    lines = _Lines(ahead, file, samples.LINE_BYTES_MAX)
    for one in samples.requests_of(lines, name):
        yield one, lines.taken()


class _Lines:
    """The lines of a file, and how much of it was read."""

    def __init__(self, ahead: list[bytes], file: BinaryIO, line_bytes_max: int) -> None:
        self._ahead = ahead
        self._file = file
        self._line_bytes_max = line_bytes_max
        self._bytes = 0

    def taken(self) -> int:
        """Bytes read since the last time."""
        taken, self._bytes = self._bytes, 0
        return taken

    def __iter__(self) -> Iterator[bytes]:
        while True:
            line = self._ahead.pop(0) if self._ahead else self._file.readline(self._line_bytes_max + 1)
            if not line:
                return
            self._bytes += len(line)
            yield line
