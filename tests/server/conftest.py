"""What tests of the whole server share."""

import pytest

from tests.server.resolver import Resolver
from tests.support.frozen import Frozen

BARRIER_MS = 30_000
SILENCE_SECONDS = 600
PATIENCE = f"barrier-ms = {BARRIER_MS}\nsilence-seconds = {SILENCE_SECONDS}\nobjects-blocked-seconds = 60\n"


@pytest.fixture
def patience(tmp_path):
    """Flags for a server whose processes are not ended for being late, as a busy machine makes them."""
    settings = tmp_path / "patient.toml"
    settings.write_text(PATIENCE)
    return "--config", str(settings)


@pytest.fixture
def freeze():
    """Have processes hang, by pid; `thaw` of what is given lets one go on, as the end of the test does."""
    made = []

    def one(pid):
        made.append(Frozen(pid))
        return made[-1]

    yield one
    for frozen in made:
        frozen.thaw()


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
