"""Servers whose processes are not ended for being late, as a busy machine makes them.

Owns  the flags for that, and `new_server` with them; a conftest.py imports it for its folder.
Not   what becomes of a process that is late: tests about that start servers with defaults.

By default a process that gives no sign for a quarter of a second while a write waits for it is killed, and
what it was asked is lost. On two cores with a dozen busy programs beside them that happened within a minute.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from edgestead.testing.server import EdgeServer

BARRIER_MS = 30_000
SILENCE_SECONDS = 600
SETTINGS = f"barrier-ms = {BARRIER_MS}\nsilence-seconds = {SILENCE_SECONDS}\n"


def patient(folder: Path) -> tuple[str, str]:
    """The flags, for a file in this folder."""
    file = folder / "patient.toml"
    file.write_text(SETTINGS)
    return "--config", str(file)


@pytest.fixture
def new_server(new_server: Callable[..., EdgeServer], tmp_path: Path) -> Callable[..., EdgeServer]:
    """As the plugin's, but patient where no configuration is given."""

    def make(*flags: str, name: str = "data") -> EdgeServer:
        return new_server(*(() if "--config" in flags else patient(tmp_path)), *flags, name=name)

    return make
