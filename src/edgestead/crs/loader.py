"""Rule files from a folder or a release archive. The only module of the room that touches the disk.

Owns  the locations of rule sets, which of their files are read and in which order, limits on reading.
Not   parsing them.

A rule set is a setup file (``crs-setup.conf``, else its ``.example``), ``rules/*.conf`` with data files, and
optionally ``plugins/``. An archive is a tar, plain or gzip, as releases are. Nothing is unpacked to disk.
Links, devices, absolute names and names with ``..`` are refused or left out, so nothing outside is read.
"""

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from edgestead.crs.errors import RulesMissing, RulesUnreadable

SYSTEM_RULES = Path("/usr/share/modsecurity-crs")  # Debian's package modsecurity-crs
SYSTEM_SETUP = Path("/etc/modsecurity/crs")
FILES_MAX = 1_000  # a release has about 60
FILE_BYTES_MAX = 4 << 20  # the largest of a release has 70 KB
TOTAL_BYTES_MAX = 64 << 20  # a release has 0.7 MB
ARCHIVE_MEMBERS_MAX = 50_000  # a release has some thousands, tests included
ARCHIVE_BYTES_MAX = 256 << 20  # unpacked, everything counted
_SETUPS = ("crs-setup.conf", "crs-setup.conf.example")


class RuleFiles(msgspec.Struct, frozen=True):
    """What `parser.parse` needs, and what identifies it.

    `digest` is the SHA-256 of names and contents; `modified_us` the newest file's time, microseconds since
    the epoch.
    """

    source: str
    files: dict[str, str]
    entries: tuple[str, ...]
    digest: str
    modified_us: int


def load(path: Path | None = None) -> RuleFiles:
    """The rule set at `path` (folder or archive), or the system's.

    Raises  RulesMissing: none was named, none is installed; RulesUnreadable: no rule set there, unreadable,
            or over a limit.
    Limits  `FILES_MAX`, `FILE_BYTES_MAX`, `TOTAL_BYTES_MAX`, `ARCHIVE_MEMBERS_MAX`, `ARCHIVE_BYTES_MAX`.
    """
    try:
        if path is None:
            return _load_system()
        return _arranged(str(path), _from_folder(path) if path.is_dir() else _from_archive(path))
    except RulesUnreadable:
        raise
    except (OSError, tarfile.TarError, EOFError, zlib.error) as error:
        raise RulesUnreadable(f"{path or SYSTEM_RULES}: {error}") from None


def _load_system(rules: Path = SYSTEM_RULES, setup: Path = SYSTEM_SETUP) -> RuleFiles:
    if not rules.is_dir():
        raise RulesMissing(f"{rules}: no rule set is installed; Debian's package is modsecurity-crs")
    found = dict(_from_folder(rules))
    if setup.is_dir():
        # the operator's exclusions before and after the rules are next to the setup file
        for name, item in _from_folder(setup):
            found[name if name.startswith("crs-setup") else f"rules/{name}"] = item
    return _arranged(str(rules), iter(found.items()))


Found = Iterator[tuple[str, tuple[bytes, int]]]


def _from_folder(root: Path) -> Found:
    """(name, (content, time)) of the files that matter in the folder, rules/ and plugins/."""
    resolved = root.resolve()
    for folder in (root, root / "rules", root / "plugins"):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not (_matters(path.name) and path.is_file()):
                continue
            if not path.resolve().is_relative_to(resolved):
                raise RulesUnreadable(f"{path}: leads out of {root}")
            if path.stat().st_size > FILE_BYTES_MAX:
                raise RulesUnreadable(f"{path}: larger than {FILE_BYTES_MAX} bytes")
            with path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
                yield (
                    str(PurePosixPath(path.relative_to(root))),
                    (content, os.fstat(file.fileno()).st_mtime_ns // 1_000),
                )


class _Bounded(io.RawIOBase):
    """A stream that refuses to yield more than `ARCHIVE_BYTES_MAX`: archives can unpack to anything."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._left = ARCHIVE_BYTES_MAX

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(chunk)
        if self._left < 0:
            raise RulesUnreadable(f"{self._name}: unpacks to more than {ARCHIVE_BYTES_MAX} bytes")
        return chunk


def _from_archive(path: Path) -> Found:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream: BinaryIO = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
        with tarfile.open(fileobj=_Bounded(stream, str(path)), mode="r|") as archive:
            yield from _members(archive, path)


def _members(archive: tarfile.TarFile, path: Path) -> Found:
    for count, member in enumerate(archive):
        if count >= ARCHIVE_MEMBERS_MAX:
            raise RulesUnreadable(f"{path}: more than {ARCHIVE_MEMBERS_MAX} members")
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise RulesUnreadable(f"{path}: {member.name} leads out of the archive")
        top = name.parts[:1]  # releases have one top-level folder
        inner = name if top in (("rules",), ("plugins",)) or len(name.parts) < 2 else name.relative_to(*top)
        if not (member.isreg() and _matters(name.name) and str(inner.parent) in (".", "rules", "plugins")):
            continue
        if member.size > FILE_BYTES_MAX:
            raise RulesUnreadable(f"{path}: {member.name} is larger than {FILE_BYTES_MAX} bytes")
        content = archive.extractfile(member)
        assert content is not None
        yield str(inner), (content.read(), int(member.mtime) * 1_000_000)


def _matters(name: str) -> bool:
    return name.endswith((".conf", ".data")) or name in _SETUPS


def _arranged(source: str, found: Found) -> RuleFiles:
    """The files in order: setup, plugin configuration, plugins before, rules, plugins after."""
    contents: dict[str, bytes] = {}
    total = modified_us = 0
    for name, (content, time_us) in found:
        contents[name] = content
        total, modified_us = total + len(content), max(modified_us, time_us)
        if len(contents) > FILES_MAX or total > TOTAL_BYTES_MAX:
            raise RulesUnreadable(f"{source}: more than {FILES_MAX} files or {TOTAL_BYTES_MAX} bytes")
    setup = next((name for name in _SETUPS if name in contents), None)
    names = sorted(name for name in contents if name.endswith(".conf"))
    rules = [name for name in names if name.startswith("rules/")]
    if setup is None or not rules:
        raise RulesUnreadable(f"{source}: expected {_SETUPS[0]} or {_SETUPS[1]}, and rules/*.conf")
    plugins = [name for name in names if name.startswith("plugins/")]
    order = [name for end in ("-config.conf", "-before.conf") for name in plugins if name.endswith(end)]
    after = [name for name in plugins if name.endswith("-after.conf")]
    digest = sha256()
    for name in sorted(contents):
        digest.update(b"%d %d " % (len(name), len(contents[name])) + name.encode() + contents[name])
    texts = {name: content.decode("utf-8", "surrogateescape") for name, content in contents.items()}
    return RuleFiles(source, texts, (setup, *order, *rules, *after), digest.hexdigest(), modified_us)
