"""One server and its origins for a module's tests: names of `edge.example` lead to scripted origins."""

import itertools

import pytest

from edgestead.edge.tools.phase import local_tools
from edgestead.testing.server import EdgeServer
from tests.edge.made import Edge, Seen
from tests.edge.origin import HTTP_200, Origin, loopback
from tests.edge.talk import get
from tests.support.patience import patient


class Site:
    """A server with one zone. `origin(...)` makes a proxied name with origins of its own."""

    def __init__(self, folder, *flags, zone="edge.example"):
        self._numbers = itertools.count()
        self._origins = []
        self._names = itertools.count()
        self.zone = zone
        self.first = self._listen(HTTP_200)
        if "--config" not in flags:
            flags = (*patient(folder), *flags)
        self.server = EdgeServer(folder / "data", "--origin-port", str(self.first.port), *flags)
        self.server.start()
        self.zone_id = self.server.make_zone(zone)

    def _listen(self, answer):
        port = self._origins[0].port if self._origins else 0
        self._origins.append(Origin(loopback(next(self._numbers)), port, answer))
        return self._origins[-1]

    @property
    def http(self):
        return self.server.ready["http"]

    def origin(self, answer=HTTP_200):
        """(host, origin) of a new proxied name."""
        origin = self._listen(answer)
        return self.name(origin.host), origin

    def name(self, *contents, type_="A", proxied=True):
        host = f"n{next(self._names)}.{self.zone}"
        for content in contents:
            answer = self.server.make_record(self.zone_id, type_, host, content, proxied=proxied)
            assert answer.status == 200, answer
        return host

    def address(self):
        """A loopback address of this site that nobody listens on."""
        return loopback(next(self._numbers))

    def set(self, setting, value):
        path = f"/zones/{self.zone_id}/settings/{setting}"
        answer = self.server.call("PATCH", path, {"value": value})
        assert answer.status == 200, answer

    def get(self, host, path="/", *headers, method="GET"):
        return get(self.http, host, path, *headers, method=method)

    def close(self):
        self.server.close()
        for origin in self._origins:
            origin.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture
def edge():
    """A zone's phases alone, without a server."""
    seen = Seen()
    return Edge(local_tools(seen), seen)
