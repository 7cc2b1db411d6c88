"""One server for all clients and profile."""

import pytest

from edgestead.testing.server import EdgeServer

ZONE = "clients.example"


@pytest.fixture(scope="module")
def clients_server(tmp_path_factory):
    """The environment that the clients' scripts read."""
    yield from _running(tmp_path_factory, "clients")


@pytest.fixture(scope="module")
def spec_server(tmp_path_factory):
    """The same with the default profile, for what it refuses."""
    yield from _running(tmp_path_factory, "spec")


def _running(tmp_path_factory, profile):
    server = EdgeServer(tmp_path_factory.mktemp(profile) / "data", "--profile", profile).start()
    server.make_zone(ZONE)
    yield {
        "EDGE_API_BASE": server.ready["api_base"],
        "EDGE_TOKEN": server.ready["api_token"],
        "EDGE_EMAIL": server.ready["email"],
        "EDGE_KEY": server.ready["api_key"],
        "EDGE_ACCOUNT_ID": server.ready["account_id"],
        "EDGE_ZONE_NAME": ZONE,
        "EDGE_DNS_ADDR": server.ready["dns"],
    }
    server.close()
