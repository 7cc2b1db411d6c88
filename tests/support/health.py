"""What a server says of its own health, for tests that wait for a row of it.

Owns  reading the rows.
Not   which there are (`edgestead.health`).
"""

from typing import Any

from edgestead.testing.server import EdgeServer


def rows(server: EdgeServer) -> list[dict[str, Any]]:
    """Those of readiness; none while a process is missing, as it may be for a moment on a busy machine."""
    answer = server.call("GET", "//health/ready")
    found: list[dict[str, Any]] = answer.result["checks"] if answer.status == 200 else []
    return found
