"""No form of a request is read in two ways: what the edge takes for one request, its origin does too.

Every request that the edge sends carries a ray of its own. So an origin that reads a request without one, or
two with the same, has found a request where the edge saw none.
"""

import random
import re
from contextlib import suppress

import pytest

from tests.edge.conftest import Site
from tests.edge.forms import FORMS, written
from tests.edge.origins import RealOrigin
from tests.edge.talk import connected, read_answer

KINDS = ("nginx", "apache", "caddy", "python")
RAY = re.compile(r"[0-9a-f]{16}")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def origins(site, tmp_path_factory):
    """(host, origin) of each kind."""
    folder, made = tmp_path_factory.mktemp("origins"), {}
    try:
        for kind in KINDS:
            origin = RealOrigin(kind, folder / kind, site.address(), site.first.port)
            made[kind] = (site.name(origin.host), origin)
        for host, origin in made.values():
            origin.wait(lambda host=host: site.get(host, "/started").status < 500)
        yield made
    finally:
        for _, origin in made.values():
            origin.close()


def statuses(address, data):
    """Of the answers to some bytes, in order, until the connection ends."""
    found = []
    with connected(address) as connection, connection.makefile("rb") as stream:
        connection.sendall(data)
        try:
            while (answer := read_answer(stream)) is not None:
                if answer.status >= 200:
                    found.append(answer.status)
        except ConnectionError:
            pass
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "form", "outcome"), FORMS, ids=[row[0] for row in FORMS])
def test_a_form_is_read_in_one_way(site, origins, kind, name, form, outcome):
    host, origin = origins[kind]
    number = [row[0] for row in FORMS].index(name)
    identity = f"f{number:03d}"
    paths, refusal = outcome

    got = statuses(site.http, written(form, host.encode(), identity.encode()))
    probe = site.get(host, f"/{identity}-probe")
    site.server.wait_until(lambda: any(path == f"/{identity}-probe" for _, path in origin.seen), 60)

    refusals = refusal if isinstance(refusal, tuple) else (refusal,)
    assert (got[-1] in refusals) == (refusal is not None), got
    assert probe.status < 500
    own = [(ray, path) for ray, path in origin.seen if path.startswith(f"/{identity}-")]
    complete = paths if refusal is None else ()  # one that is cut off in its body may or may not be logged
    seen = [path.removeprefix(f"/{identity}-") for _, path in own]
    assert [path for path in seen if path not in ("probe", *set(paths).difference(complete))] == list(
        complete
    )
    assert len(got) == len(complete) + (refusal is not None)
    assert_rays(own)


def assert_rays(seen):
    rays = [ray for ray, _ in seen]
    assert all(RAY.fullmatch(ray) for ray in rays), seen
    assert len(set(rays)) == len(rays)


def test_nothing_else_was_read_by_any_origin(origins):
    for _, origin in origins.values():
        assert_rays(origin.seen)
        assert not [path for _, path in origin.seen if "smuggled" in path]


def test_there_are_enough_forms():
    assert len(FORMS) >= 60
    assert len({name for name, _, _ in FORMS}) == len(FORMS)


MUTATIONS = 150
LEFT_SECONDS = 0.3  # when nothing comes, because the edge waits for more: left, whatever would have come
PIECES = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"0", b"5", b"chunked", b"\xff"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n"),
    *(b"0\r\n\r\n", b"GET / HTTP/1.1\r\n", b"Host: x\r\n"),
)


def test_forms_that_are_damaged_at_random_are_read_in_one_way_too(site, origins):
    chance = random.Random(20_261_121)
    host, origin = origins["nginx"]
    for number in range(MUTATIONS):
        identity = f"m{number:03d}"
        data = written(chance.choice(FORMS)[1], host.encode(), identity.encode())
        head, found, tail = data.partition(b"HTTP/1.1\r\n")
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(tail) + 1)
            cut = chance.choice((0, 0, 1, 2))
            tail = tail[:at] + chance.choice(PIECES) + tail[at + cut :]
        with connected(site.http) as connection, connection.makefile("rb") as stream:
            connection.sendall(head + found + tail)
            connection.settimeout(LEFT_SECONDS)
            with suppress(ConnectionError, TimeoutError, AssertionError, ValueError):
                while read_answer(stream) is not None:
                    pass
    assert site.get(host, "/last").status == 200
    site.server.wait_until(lambda: any(path == "/last" for _, path in origin.seen), 60)
    assert_rays([row for row in origin.seen if row[1] != "-"])
