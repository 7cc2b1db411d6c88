"""Started servers that tests share by the flags of their start; each test finds its own empty.

Owns  the fixtures `lend` and `lent`.
Not   emptying (`edgestead.testing.emptying`). Counters, peers, keys and what a rate limit has counted stay: a
      test about those, or one that kills or damages what it was lent, starts a server by `new_server`.
"""

from collections.abc import Callable, Iterator

import pytest

from edgestead.testing.edge import Edge
from edgestead.testing.platforms import Platforms
from edgestead.testing.server import EdgeServer
from tests.support import leftovers


def _as_it_starts(edge: Edge) -> None:
    """Nothing is put into a server that is lent."""


@pytest.fixture
def lend(edge_platforms: Platforms) -> Iterator[Callable[..., EdgeServer]]:
    """Call it with flags for a started server without zones, keys, tokens and objects. It goes on running."""
    given: list[EdgeServer] = []

    def one(*flags: str) -> EdgeServer:
        platform = edge_platforms.get(None, flags, _as_it_starts)
        platform.for_a_test()
        given.append(platform.server)
        return platform.server

    yield one
    leftovers.keep(server.pid for server in given if server.is_started)


@pytest.fixture
def lent(lend: Callable[..., EdgeServer]) -> EdgeServer:
    """One with defaults."""
    return lend()
