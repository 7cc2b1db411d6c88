"""One server for all clients and profile."""

from typing import NamedTuple

import pytest

from edgestead.model.call import Profile
from edgestead.testing.server import EdgeServer
from tests.support import follower
from tests.support.patience import patient

ZONE = "clients.example"


class Running(NamedTuple):
    """A server, and the environment that the clients' scripts read."""

    server: EdgeServer
    environment: dict[str, str]


@pytest.fixture(scope="module")
def clients_server(request, tmp_path_factory):
    yield from _running(request, tmp_path_factory, "clients")


@pytest.fixture(scope="module")
def spec_server(request, tmp_path_factory):
    """The same with the default profile, for what it refuses."""
    yield from _running(request, tmp_path_factory, "spec")


def _running(request, tmp_path_factory, profile):
    """With --through-follower a node of a cluster that follows, which the run ends."""
    lent = follower.emptied(request, Profile(profile))
    folder = tmp_path_factory.mktemp(profile)
    server = lent or EdgeServer(folder / "data", *patient(folder), "--profile", profile).start()
    server.make_zone(ZONE)
    environment = {
        "EDGE_API_BASE": server.ready["api_base"],
        "EDGE_TOKEN": server.ready["api_token"],
        "EDGE_EMAIL": server.ready["email"],
        "EDGE_KEY": server.ready["api_key"],
        "EDGE_ACCOUNT_ID": server.ready["account_id"],
        "EDGE_ZONE_NAME": ZONE,
        "EDGE_DNS_ADDR": server.ready["dns"],
    }
    yield Running(server, environment)
    if lent is None:
        server.close()
