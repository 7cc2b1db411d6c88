"""What BIND serves: its named.conf, a folder of zone files, or one zone file.

Owns  which zones there are and where their files are, also in a folder copied from another machine; $INCLUDE.
Not   records (`zonefile`).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgestead.cli.failure import Failed
from edgestead.cli.state.sources import files
from edgestead.cli.state.sources.blocks import Statement, named_statements
from edgestead.cli.state.sources.gathered import Gathered
from edgestead.cli.state.sources.zonefile import add_zone

FOLDER_FILES_MAX = 100_000
OF_A_RESOLVER = frozenset({"localhost", "0.in-addr.arpa", "127.in-addr.arpa", "255.in-addr.arpa"})  # RFC 6303
MASTER = frozenset({"master", "primary"})
ENDINGS = (".zone", ".db", ".hosts", ".txt", ".signed", ".master")
RAW = "\0"  # the raw form begins with zeros
_APEX = re.compile(
    r"^(?:\$ORIGIN\s+(?P<origin>\S+\.)|(?P<owner>\S+\.)\s.*\bSOA\b)", re.IGNORECASE | re.MULTILINE
)


_ABSOLUTE = re.compile(r"""\b(?:include|directory|file)\s+["']?(/[^"';\s]+)""")


class _Line(NamedTuple):
    text: str
    path: Path
    number: int


class _Home(NamedTuple):
    """Where a configuration lies now, and whether that is where it was written for."""

    folder: Path
    moved: bool

    def path(self, name: str, beside: Path) -> Path:
        """The file of a name. What was copied along goes before what this machine has at the same place."""
        path = Path(name)
        if path.is_absolute() and self.moved:
            for first in range(1, len(path.parts)):
                copied = self.folder.joinpath(*path.parts[first:])
                if files.included(str(copied), Path()):
                    return copied
        return beside / path


def _home(path: Path) -> _Home:
    """A configuration that names files, and none below its own folder, was written for another place."""
    folder = path.parent.resolve()
    named = [Path(one) for one in _ABSOLUTE.findall(files.text(path))]
    return _Home(path.parent, bool(named) and not any(one.is_relative_to(folder) for one in named))


def gather(place: str, found: Gathered) -> None:
    """Raises Failed."""
    path = Path(place)
    if path.is_dir():
        conf = path / "named.conf"
        if conf.exists():
            _configuration(conf, found)
            return
        for number, file in enumerate(sorted(one for one in path.iterdir() if one.is_file())):
            if number == FOLDER_FILES_MAX:
                raise Failed(f"{path} holds more than {FOLDER_FILES_MAX} files.")
            _lone_file(file, found)
    elif path.suffix == ".conf":
        _configuration(path, found)
    else:
        _lone_file(path, found)


def _lone_file(path: Path, found: Gathered) -> None:
    """A zone file that no configuration names: its apex is what it says itself, else its name."""
    text = files.text(path)
    if text.startswith(RAW) or "SOA" not in text.upper():
        found.leave(str(path), "no zone file, as far as can be seen: it has no SOA record")
        return
    said = _APEX.search(text)
    apex = (said["origin"] or said["owner"]) if said else _named_by(path)
    zone = apex.lower().rstrip(".")
    if found.takes(zone):
        _zone_file(zone, path, path.parent, found)


def _named_by(path: Path) -> str:
    name = path.name.removeprefix("db.")
    ending = next((one for one in ENDINGS if name.endswith(one)), "")
    return name.removesuffix(ending)


def _configuration(path: Path, found: Gathered) -> None:
    home = _home(path)
    statements = list(_statements(path, home, 0))
    folder = path.parent
    for _, options in statements:
        if options.name == "options":
            folder = home.path(options.value("directory", "."), folder)
    views = [(file, one) for file, one in statements if one.name == "view"]
    zones = [(file, one) for file, one in statements if one.name == "zone"]
    for file, view in views:
        zones += [(file, one) for one in view.of("zone")]
    seen: set[str] = set()
    for file, statement in zones:
        where = f"{file}:{statement.line}"
        name = (statement.words[1] if len(statement.words) > 1 else "").lower().rstrip(".")
        if not found.takes(name) or name in OF_A_RESOLVER:
            continue
        if name in seen:
            found.leave(where, f"{name} again, in another view: there is one answer for everybody here")
            continue
        if _is_ours(statement, name, where, found):
            seen.add(name)
            _zone_file(name, _zone_place(statement.value("file"), folder, home), folder, found)


def _zone_place(name: str, folder: Path, home: _Home) -> Path:
    """A relative name lies in the folder of the options, which may have stayed behind."""
    path = folder / name
    return home.path(str(path), folder) if path.is_absolute() else path


def _is_ours(zone: Statement, name: str, where: str, found: Gathered) -> bool:
    kind = zone.value("type", "master")
    if kind == "hint" or not name:
        return False
    if kind in ("slave", "secondary", "mirror"):
        found.leave(where, f"{name} is a copy: take it from its primary, `edgecli apply @HOST --zone {name}`")
    elif kind not in MASTER:
        found.leave(where, f"{name} is of type {kind}")
    elif not zone.value("file"):
        found.leave(where, f"{name} has no file")
    else:
        return True
    return False


def _statements(path: Path, home: _Home, depth: int) -> Iterator[tuple[Path, Statement]]:
    """Those of a file and of the files that it includes. Raises Failed."""
    try:
        found = named_statements(files.text(path))
    except ValueError as error:
        raise Failed(f"{path}, {error}.") from None
    for statement in found:
        if statement.name != "include" or len(statement.words) < 2:
            yield path, statement
        elif depth >= files.INCLUDE_DEPTH_MAX:
            raise Failed(
                f"{path}:{statement.line}: more than {files.INCLUDE_DEPTH_MAX} includes in one another."
            )
        else:
            place = home.path(statement.words[1], path.parent)
            for file in files.included(str(place), Path()):
                yield from _statements(file, home, depth + 1)


def _zone_file(zone: str, path: Path, folder: Path, found: Gathered) -> None:
    text = files.text(path)
    if text.startswith(RAW):
        remedy = f"`named-compilezone -f raw -F text -o FILE {zone} {path}` writes it as text"
        found.leave(str(path), f"{zone} is in the raw form; {remedy}")
        return
    lines = list(_lines(text, path, folder, f"{zone}.", 0))

    def place(number: int) -> str:
        line = lines[min(number, len(lines)) - 1]
        return f"{line.path}:{line.number}"

    add_zone(found, zone, "\n".join(line.text for line in lines), place)


def _lines(text: str, path: Path, folder: Path, origin: str, depth: int) -> Iterator[_Line]:
    """Its lines, with those of the files that $INCLUDE names (RFC 1035 §5.1) in their place."""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split(";")[0].split()
        directive = words[0].upper() if words and line[:1] == "$" else ""
        if directive == "$ORIGIN" and len(words) > 1:
            origin = _absolute(words[1], origin)
        if directive != "$INCLUDE" or len(words) < 2:
            yield _Line(line, path, number)
            continue
        if depth >= files.INCLUDE_DEPTH_MAX:
            raise Failed(f"{path}:{number}: more than {files.INCLUDE_DEPTH_MAX} includes in one another.")
        inner = folder / words[1].strip('"')
        begin = _absolute(words[2], origin) if len(words) > 2 else origin
        yield _Line(f"$ORIGIN {begin}", path, number)
        yield from _lines(files.text(inner), inner, folder, begin, depth + 1)
        yield _Line(f"$ORIGIN {origin}", path, number)


def _absolute(name: str, origin: str) -> str:
    if name == "@":
        return origin
    return name if name.endswith(".") else f"{name}.{origin.lstrip('.')}"
