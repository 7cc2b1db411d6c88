"""The rule engine of this machine: its patterns compiled once, kept for the next start.

Owns  the folder of compiled databases, the lock around compiling, what a damaged file leads to.
Not   when inspection may begin (`edge`); rule files (`crs`).

Compiling takes tens of seconds of one core, loading less than half a second. The first process that needs a
database makes it while the others wait for the lock; a file is whole or not there. It is named by what it was
made from, so another rule set or another Hyperscan makes another file.
"""

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgestead.waf.load.compile import RuleSet
from edgestead.waf.plan import scan

DATABASES_MAX = 4  # kept; the oldest go
DATABASE_BYTES_MAX = 256 << 20  # a larger file is not read: the patterns are compiled again
_SUFFIX = ".patterns"
_log = logging.getLogger(__name__)


def database(rule_set: RuleSet, folder: Path) -> bytes:
    """The compiled database of a rule set: read, or made under the lock."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / (scan.key_of(rule_set) + _SUFFIX)
    if (found := _read(rule_set, path)) is not None:
        return found
    with _locked(folder / "lock"):
        if (found := _read(rule_set, path)) is not None:  # made by whoever held the lock
            return found
        _log.info("managed rules: compiling %d patterns, once", scan.size_of(rule_set))
        made = scan.compile_database(rule_set)
        _write(path, made)
        _forget_oldest(folder)
        return made


def kept(rule_set: RuleSet, folder: Path) -> bytes | None:
    """The compiled database of a rule set, when there is one already."""
    return _read(rule_set, folder / (scan.key_of(rule_set) + _SUFFIX))


def _read(rule_set: RuleSet, path: Path) -> bytes | None:
    """The file, when it is there and good."""
    try:
        if path.stat().st_size > DATABASE_BYTES_MAX:
            return None
        found = path.read_bytes()
        scan.check(rule_set, found)
    except FileNotFoundError:
        return None
    except ValueError as error:
        _log.warning("managed rules: %s: %s; it is made again", path, error)
        return None
    return found


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*" + _SUFFIX), key=lambda path: path.stat().st_mtime_ns)
    for path in files[:-DATABASES_MAX]:
        path.unlink(missing_ok=True)
