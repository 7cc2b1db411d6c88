"""What the benchmarks share: a port and a started peer, and the processor time of a process."""

import os
import socket
import time
from pathlib import Path

START_SECONDS_MAX = 30


def free_port() -> int:
    """A port for a peer that takes no listening socket. Somebody else may take it first."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    """Until something takes connections there. Ends the benchmark when nothing does."""
    end = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


def processor_seconds(pid: int) -> float:
    """User and system time so far, of all threads, without ended or other processes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
