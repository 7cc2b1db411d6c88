"""Who holds a port: the words for a refusal.

Owns  reading /proc for the process behind a socket.
Not   deciding anything: an empty answer only makes a message shorter.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

_TCP_LISTEN = "0A"  # /proc/net/tcp, column st: TCP_LISTEN


def process_words(pid: int) -> str:
    """`process 12 (nginx)`, or without the name when the process is gone."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({name})"


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def port_holder(transport: Literal["tcp", "udp"], port: int) -> str | None:
    """The words for a process with a listening (tcp) or bound (udp) socket on `port`, if we may know."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(transport, port)}
    if not wanted:
        return None
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and wanted & set(_open_files(entry)):
            return process_words(int(entry.name))
    return None


def _inodes(transport: str, port: int) -> Iterator[str]:
    for table in (f"/proc/net/{transport}", f"/proc/net/{transport}6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if int(columns[1].rpartition(":")[2], 16) == port and (
                transport == "udp" or columns[3] == _TCP_LISTEN
            ):
                yield columns[9]


def _open_files(process: Path) -> Iterator[str]:
    try:
        for descriptor in (process / "fd").iterdir():
            yield os.readlink(descriptor)
    except OSError:
        return
