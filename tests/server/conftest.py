"""What tests of the whole server share."""

import pytest

from tests.server.resolver import Resolver

BARRIER_MS = 30_000


@pytest.fixture
def patience(tmp_path):
    """Flags for a server whose processes are not ended for being late, as a busy machine makes them."""
    settings = tmp_path / "patient.toml"
    settings.write_text(f"barrier-ms = {BARRIER_MS}\nobjects-blocked-seconds = 60\n")
    return "--config", str(settings)


@pytest.fixture
def new_resolver():
    """Make resolvers that say what they are told to."""
    made = []

    def make():
        made.append(Resolver())
        return made[-1]

    yield make
    for resolver in made:
        resolver.close()
