"""PowerDNS over SQLite in a folder, as Debian packages it.

Owns  its configuration and database, and loading a zone file.
Not   a server that runs: `test_sources`.
"""

import contextlib
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"
SCHEMA = Path("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql")

needed = pytest.mark.skipif(
    not SCHEMA.exists() or shutil.which("pdnsutil", path=SBIN) is None,
    reason="pdns-backend-sqlite3 or pdns-server is not installed",
)


def make_folder(folder, *settings):
    """A new configuration with an empty database; returns the path of that."""
    database = folder / "pdns.sqlite3"
    with contextlib.closing(sqlite3.connect(database)) as made:
        made.executescript(SCHEMA.read_text())
    lines = (
        "launch=gsqlite3",
        f"gsqlite3-database={database}",
        f"socket-dir={folder}",
        "loglevel=3",
        *settings,
    )
    (folder / "pdns.conf").write_text("\n".join(lines) + "\n")
    return database


def pdnsutil(folder, *words):
    """What it said. Raises CalledProcessError."""
    command = [shutil.which("pdnsutil", path=SBIN), f"--config-dir={folder}", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
