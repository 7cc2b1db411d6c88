"""What tests of the whole server share."""

import pytest

BARRIER_MS = 30_000


@pytest.fixture
def patience(tmp_path):
    """Flags for a server whose processes are not ended for being late, as a busy machine makes them."""
    settings = tmp_path / "patient.toml"
    settings.write_text(f"barrier-ms = {BARRIER_MS}\n")
    return "--config", str(settings)
