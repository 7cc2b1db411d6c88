"""pytest fixtures of the real server.

Owns  `edge_server` and `new_server`.
Asks  `testing.server`.
Tells tests through their parameters.
Not   what a test does with it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgestead.testing.server import EdgeServer


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[..., EdgeServer]]:
    """Call it with flags for a server that is not started yet; all of them are ended after the test."""
    made: list[EdgeServer] = []

    def make(*flags: str, name: str = "data") -> EdgeServer:
        made.append(EdgeServer(tmp_path / name, *flags))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def edge_server(new_server: Callable[..., EdgeServer]) -> EdgeServer:
    """A started server with defaults, on free ports and with a data folder of its own."""
    return new_server().start()
