"""One server for all clients, started with the profile that bends where real clients need it."""

import pytest

from edgestead.testing.server import EdgeServer

ZONE = "clients.example"


@pytest.fixture(scope="module")
def clients_server(tmp_path_factory):
    """The environment that the clients' scripts read."""
    server = EdgeServer(tmp_path_factory.mktemp("clients") / "data", "--profile", "clients").start()
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
