"""CNAME origins: asked of the resolver, remembered as long as they may be."""

import asyncio

import pytest

from edgestead.edge import limits
from edgestead.edge.exchanges.origins import Origins
from edgestead.edge.http.resolving import Resolver
from tests.edge.conftest import Site
from tests.edge.origin import headers_of
from tests.server.resolver import Resolver as Outside

ONE, OTHER = "192.0.2.1", "192.0.2.2"


class World:
    """What a resolver says by name, how often it was asked, and what time it is."""

    def __init__(self):
        self.says, self.asked, self.now, self.own = {}, [], 0.0, {}
        self.resolver = Resolver(self._ask, self.own.get, lambda: self.now)

    async def _ask(self, name):
        self.asked.append(name)
        await asyncio.sleep(0)
        return self.says.get(name)

    def addresses(self, *hosts):
        async def ask():
            return await asyncio.gather(*(self.resolver.addresses(host) for host in hosts))

        return asyncio.run(ask())


@pytest.fixture
def world():
    return World()


def test_an_answer_is_remembered_for_its_ttl(world):
    world.says["a.example"] = ((ONE,), 60.0)
    assert world.addresses(b"a.example") == [(ONE,)]
    world.says["a.example"] = ((OTHER,), 60.0)
    world.now = 59.0
    assert world.addresses(b"a.example") == [(ONE,)]
    world.now = 61.0
    assert world.addresses(b"a.example") == [(OTHER,)]


def test_a_ttl_of_nothing_or_of_a_year_is_not_taken_literally(world):
    world.says |= {"short.example": ((ONE,), 0.0), "long.example": ((ONE,), 31_536_000.0)}
    world.addresses(b"short.example", b"long.example")
    world.now = limits.RESOLVED_SECONDS_MIN / 2
    world.addresses(b"short.example", b"long.example")
    assert len(world.asked) == 2
    world.now = limits.RESOLVED_SECONDS_MAX + 1
    world.addresses(b"long.example")
    assert len(world.asked) == 3


def test_many_who_ask_at_once_are_one_question(world):
    world.says["a.example"] = ((ONE,), 60.0)
    assert world.addresses(*[b"a.example"] * 20) == [(ONE,)] * 20
    assert world.asked == ["a.example"]


def test_old_addresses_serve_while_nobody_answers_but_not_for_ever(world):
    world.says["a.example"] = ((ONE,), 60.0)
    world.addresses(b"a.example")
    world.says.clear()
    world.now = 60.0 + limits.RESOLVED_STALE_SECONDS_MAX - 1
    assert world.addresses(b"a.example") == [(ONE,)]
    world.now += 2
    assert world.addresses(b"a.example") == [()]


def test_what_is_remembered_is_bounded(world, monkeypatch):
    monkeypatch.setattr(limits, "RESOLVED_NAMES_MAX", 3)
    hosts = [f"h{number}.example" for number in range(5)]
    world.says |= dict.fromkeys(hosts, ((ONE,), 60.0))
    for host in hosts:
        world.addresses(host.encode())
    world.asked.clear()
    world.addresses(b"h4.example")
    assert world.asked == []
    world.addresses(b"h0.example")
    assert world.asked == ["h0.example"]


def test_aliases_among_our_own_names_are_followed_and_circles_end(world):
    packed = bytes((192, 0, 2, 1))
    world.own |= {
        b"a.example": Origins((), b"b.example"),
        b"b.example": Origins((packed,)),
        b"c.example": Origins((), b"d.example"),
        b"d.example": Origins((), b"c.example"),
    }
    assert world.addresses(b"a.example", b"c.example") == [(ONE,), ()]
    assert world.asked == []


@pytest.mark.parametrize("host", [b"192.0.2.1", b"2001:db8::1"])
def test_an_address_needs_no_question(world, host):
    assert world.addresses(host) == [(host.decode(),)]
    assert world.asked == []


def test_a_proxied_alias_to_the_outside_is_served(tmp_path):
    outside = Outside()
    site = Site(tmp_path, "--resolver", outside.address)
    try:
        _, origin = site.origin()
        outside.says("origin.elsewhere.example", origin.host)
        outside.leads("alias.elsewhere.example", "target.elsewhere.example", origin.host)
        for target in ("origin.elsewhere.example", "alias.elsewhere.example"):
            host = site.name(target, type_="CNAME")
            for _ in range(3):
                assert site.get(host).status == 200
            assert headers_of(origin.heads[-1])[b"host"] == host.encode()
        assert outside.asked.count(("origin.elsewhere.example", "A")) == 1
        outside.fails("broken.elsewhere.example")
        assert site.get(site.name("broken.elsewhere.example", type_="CNAME")).status == 530
    finally:
        site.close()
        outside.close()
