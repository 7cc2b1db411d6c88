"""The patterns of the system's managed rules, compiled once for all test processes.

Owns  the folder that has them.
Not   compiling.

Compiling takes 15 seconds of a core or more. A file is named by what it was made from, and checked before it
is used (`server.waf_part`).
"""

import os
import tempfile
from pathlib import Path

DATABASES = Path(tempfile.gettempdir()) / f"edgestead-test-patterns-{os.getuid()}"


def share_patterns(data_dir: Path) -> None:
    """Have the server of this data folder take them from there, and leave there what it compiles."""
    DATABASES.mkdir(mode=0o700, exist_ok=True)
    (data_dir / "rules").symlink_to(DATABASES)
