"""The tests of the API and of clients, asking a node of a cluster that follows.

Owns  the option --through-follower, which tests it takes, the clusters of a run.
Not   what is asked, and how (`follower_api`). Imports little: every run of pytest loads it.
"""

import zlib
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

import pytest

from edgestead.model.call import Profile

if TYPE_CHECKING:
    from edgestead.testing.server import EdgeServer
    from tests.support.follower_api import FollowerApi, FollowerCluster
    from tests.support.postgres import Postgres

OPTION = "--through-follower"
API, CLIENTS = {"api"}, {"clients_server", "spec_server"}  # the fixtures that ask it
MARKER = "inside(why): asks for the process of the test, with --through-follower there is none"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        metavar="N",
        nargs="?",
        const=1,
        type=int,
        help="tests of the API and of clients ask a node of a cluster that follows; of the API each Nth",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what can ask elsewhere, and of the tests of the API each Nth, always the same.

    Not those that patch the product, in this process; nor what says that it is for this process alone.
    """
    every = config.getoption(OPTION)
    if every is None:
        return
    kept, others = [], []
    for item in items:
        uses = set(getattr(item, "fixturenames", ()))
        is_inside = "monkeypatch" in uses or item.get_closest_marker("inside")
        is_one = zlib.crc32(item.nodeid.encode()) % every == 0
        is_taken = uses & CLIENTS or (uses & API and is_one and not is_inside)
        (kept if is_taken else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def _cluster(
    postgres: "Postgres", factory: pytest.TempPathFactory, profile: Profile
) -> "Iterator[FollowerCluster]":
    from tests.support.follower_api import FollowerCluster

    made = FollowerCluster(factory.mktemp("follower") / "nodes", postgres.database(), profile)
    yield made
    made.close()


@pytest.fixture(scope="session")
def follower_of_spec(
    postgres: "Postgres", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[FollowerCluster]":
    yield from _cluster(postgres, tmp_path_factory, Profile.SPEC)


@pytest.fixture(scope="session")
def follower_of_clients(
    postgres: "Postgres", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[FollowerCluster]":
    yield from _cluster(postgres, tmp_path_factory, Profile.CLIENTS)


def emptied(request: pytest.FixtureRequest, profile: Profile) -> "EdgeServer | None":
    """A node that follows, of an empty cluster; None where the option was not given."""
    if request.config.getoption(OPTION) is None:
        return None
    cluster: FollowerCluster = request.getfixturevalue(f"follower_of_{profile}")
    cluster.empty()
    return cluster.server


def api_of(
    request: pytest.FixtureRequest, profile: Profile, as_of: date | None = None
) -> "FollowerApi | None":
    """The same, asked as `LocalApi` is."""
    if (server := emptied(request, profile)) is None:
        return None
    from tests.support.follower_api import FollowerApi

    return FollowerApi(server, as_of)
