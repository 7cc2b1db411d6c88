"""What a flattened name hangs on, what is served at it, and which targets are asked for and when."""

from datetime import date
from ipaddress import ip_address

import pytest

from edgestead.model import names, served
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.served import PENDING, ServedRRset
from edgestead.tables import flattened
from edgestead.usecases import limits
from edgestead.usecases.serving import flattening
from edgestead.usecases.serving.flattening import Answer
from edgestead.usecases.zone import refreshing
from tests.support.api import CREDENTIALS

A, AAAA = 1, 28
OUTSIDE = "target.example.net"
SECOND_US = 1_000_000
NOW_US = 2_000_000_000 * SECOND_US


def addresses(*texts, ttl_seconds=60):
    return ServedRRset(A, ttl_seconds, tuple(ip_address(text).packed for text in texts))


class World:
    """An API with zones, and the upkeep done by hand."""

    def __init__(self, api):
        self.api = api
        self.zones = {}

    def zone(self, name):
        self.zones[name] = self.api.post("/zones", {"name": name}).result["id"]
        return self.zones[name]

    def record(self, type_, name, content, **fields):
        zone = max((zone for zone in self.zones if f".{name}".endswith(f".{zone}")), key=len)
        path = f"/zones/{self.zones[zone]}/dns_records"
        body = {"type": type_, "name": name, "content": content} | fields
        return f"{path}/{self.api.post(path, body).result['id']}"

    def serves(self, name):
        """{type: TTL and addresses} as the feed said last; no type when the name serves nothing."""
        key = names.wire_from_text(name).hex()
        found = [one for one in self.api.changes if (one.kind, one.key) == (served.KIND_NAME, key)]
        rrsets = served.decode_name(found[-1].doc).rrsets if found and found[-1].doc else ()
        return {
            one.type: [one.ttl_seconds, *(str(ip_address(rdata)) for rdata in one.rdatas if rdata)]
            for one in rrsets
            if one.type in (A, AAAA, PENDING)
        }

    def write(self, use_case, *arguments):
        return self.api.store.write(lambda tx: use_case(tx, *arguments)).result().value

    def read(self, use_case, *arguments):
        return self.api.store.read(lambda reader: use_case(reader, *arguments))

    def answer(self, target, *rrsets, now_us=NOW_US, **more):
        self.write(
            lambda tx: refreshing.answered(
                self.call(now_us), tx, self.api.platform, target, Answer(rrsets, **more)
            )
        )

    def upkeep(self):
        """Until no zone waits; returns in how many rounds."""
        rounds = 0
        while self.write(lambda tx: refreshing.go_on(self.call(NOW_US), tx, self.api.platform)):
            rounds += 1
        return rounds

    def due(self, now_us=NOW_US):
        return [one.name for one in self.read(flattening.due, now_us, 100)]

    @staticmethod
    def call(now_us):
        actor = Actor(kind="account", id="")
        return Call(actor=actor, as_of=date(2026, 1, 1), profile=Profile.SPEC, now_us=now_us, request_id="")


@pytest.fixture
def world(api):
    made = World(api)
    made.zone("example.com")
    return made


def test_a_name_above_the_target_that_hides_a_wildcard_takes_its_answer_away(world):
    world.record("CNAME", "example.com", "a.b.example.com")
    world.record("A", "*.example.com", "192.0.2.1", ttl=60)
    assert world.serves("example.com") == {A: [60, "192.0.2.1"]}

    hiding = world.record("TXT", "b.example.com", "here")
    assert world.serves("example.com") == {}

    world.api.delete(hiding)
    assert world.serves("example.com") == {A: [60, "192.0.2.1"]}


def test_a_delegation_above_the_target_makes_it_a_target_outside(world):
    world.record("CNAME", "example.com", "a.sub.example.com")
    world.record("A", "a.sub.example.com", "192.0.2.1", ttl=60)
    assert world.serves("example.com") == {A: [60, "192.0.2.1"]}
    assert world.due() == []

    world.record("NS", "sub.example.com", "ns.example.net")

    assert world.serves("example.com") == {PENDING: [0]}
    assert world.due() == ["a.sub.example.com"]


def test_an_empty_name_above_the_target_hides_a_wildcard_for_as_long_as_it_is_there(world):
    world.zone("lb.example.net")
    world.zone("shop.example")
    world.record("A", "*.lb.example.net", "192.0.2.1")
    world.record("CNAME", "shop.example", "blue.eu.lb.example.net", ttl=120)
    assert world.serves("shop.example") == {A: [120, "192.0.2.1"]}

    below = world.record("A", "green.eu.lb.example.net", "192.0.2.2")
    assert world.serves("shop.example") == {}

    world.api.delete(below)
    assert world.serves("shop.example") == {A: [120, "192.0.2.1"]}


def test_an_empty_target_has_no_addresses_whatever_a_wildcard_says(world):
    world.zone("lb.example.net")
    world.zone("shop.example")
    world.record("A", "*.lb.example.net", "192.0.2.1")
    world.record("A", "one.deep.eu.lb.example.net", "192.0.2.2")
    world.record("CNAME", "shop.example", "eu.lb.example.net")

    assert world.serves("shop.example") == {}


def test_a_wildcard_that_is_an_alias_is_flattened_too(world):
    world.record("CNAME", "*.example.com", "www.example.com", settings={"flatten_cname": True})
    assert world.serves("*.example.com") == {PENDING: [0]}  # it covers its own target: a ring

    record = world.record("A", "www.example.com", "192.0.2.1", ttl=60)
    assert world.serves("*.example.com") == {A: [60, "192.0.2.1"]}

    world.api.delete(record)
    assert world.serves("*.example.com") == {PENDING: [0]}


TARGETS_AS_WRITTEN = {
    "escapes": (r"we\.ird\032one.example.net", r"we\.ird\032one.example.net"),
    "another script": ("bücher.example.net", "xn--bcher-kva.example.net"),
    "capitals": ("WWW.Example.NET.", "www.example.net"),
}


@pytest.mark.parametrize(("written", "known"), TARGETS_AS_WRITTEN.values(), ids=TARGETS_AS_WRITTEN)
def test_a_target_is_known_by_one_spelling(world, written, known):
    world.record("CNAME", "example.com", written)
    assert world.due() == [known]

    world.answer(known, addresses("198.51.100.1"))
    assert world.serves("example.com") == {A: [60, "198.51.100.1"]}


def test_a_chain_in_the_world_that_comes_back_to_us_gets_what_we_serve_now(world):
    world.record("CNAME", "example.com", OUTSIDE)
    record = world.record("A", "www.example.com", "192.0.2.1", ttl=60)
    world.answer(OUTSIDE, addresses("192.0.2.99"), aliases=(names.wire_from_text("www.example.com"),))
    assert world.serves("example.com") == {A: [60, "192.0.2.1"]}

    world.api.patch(record, {"content": "192.0.2.2"})
    assert world.serves("example.com") == {A: [60, "192.0.2.2"]}


def test_a_chain_that_comes_back_to_its_own_beginning_does_not_keep_itself_alive(world):
    world.record("CNAME", "example.com", OUTSIDE)
    world.answer(OUTSIDE, addresses("198.51.100.1"))
    assert world.serves("example.com") == {A: [60, "198.51.100.1"]}

    world.answer(OUTSIDE, addresses("198.51.100.1"), aliases=(names.wire_from_text("example.com"),))

    assert world.serves("example.com") == {PENDING: [0]}


def test_one_family_that_nobody_can_say_does_not_take_the_other_away(world):
    world.record("CNAME", "example.com", OUTSIDE)
    world.answer(OUTSIDE, addresses("198.51.100.1"), unknown=AAAA)
    assert world.serves("example.com") == {A: [60, "198.51.100.1"], PENDING: [0]}

    six = ServedRRset(AAAA, 60, (ip_address("2001:db8::1").packed,))
    world.answer(OUTSIDE, addresses("198.51.100.1"), six)
    world.answer(OUTSIDE, addresses("198.51.100.2"), unknown=AAAA)
    assert world.serves("example.com") == {A: [60, "198.51.100.2"], AAAA: [60, "2001:db8::1"]}

    world.answer(OUTSIDE)
    assert world.serves("example.com") == {}


TTLS = {
    "of the target": (60, 1, 60),
    "at most 300": (86_400, 86_400, 300),
    "at least 20": (0, 1, 20),
    "of the alias when it is shorter": (200, 60, 60),
}


@pytest.mark.parametrize(("of_target", "of_alias", "seen"), TTLS.values(), ids=TTLS)
def test_the_ttl_of_an_answer_from_outside_is_bounded(world, of_target, of_alias, seen):
    world.record("CNAME", "example.com", OUTSIDE, ttl=of_alias)

    world.answer(OUTSIDE, addresses("198.51.100.1", ttl_seconds=of_target))

    assert world.serves("example.com") == {A: [seen, "198.51.100.1"]}


def test_targets_that_were_never_asked_come_first_and_the_newest_before_the_others(world):
    for number in range(4):
        options = {"settings": {"flatten_cname": True}}
        world.record("CNAME", f"w{number}.example.com", f"t{number}.example.net", **options)
    world.answer("t1.example.net", addresses("198.51.100.1"), now_us=NOW_US - 100 * SECOND_US)
    world.answer("t2.example.net", addresses("198.51.100.1"), now_us=NOW_US - 90 * SECOND_US)

    assert world.due() == ["t3.example.net", "t0.example.net", "t1.example.net", "t2.example.net"]


def test_a_target_that_fails_is_asked_again_later_and_later(world):
    world.record("CNAME", "example.com", OUTSIDE)
    waits, now_us = [], NOW_US
    for _ in range(8):
        (due,) = world.read(flattening.due, now_us, 10)
        world.write(flattening.take_failure, due, now_us)
        waits.append(next(n for n in range(100) if world.due(now_us + n * SECOND_US)))
        now_us += waits[-1] * SECOND_US

    assert waits == [1, 2, 5, 10, 30, 60, 60, 60]


def test_a_target_that_nothing_hangs_on_or_that_became_ours_is_forgotten_and_not_asked(world):
    world.record("CNAME", "example.com", "gone.example.net")
    record = world.record("CNAME", "w.example.com", "ours.example.org", settings={"flatten_cname": True})
    world.api.patch(record, {"settings": {"flatten_cname": False}})
    assert not world.read(flattening.is_wanted, "ours.example.org")
    world.api.patch(record, {"settings": {"flatten_cname": True}})
    assert world.read(flattening.is_wanted, "ours.example.org")

    world.zone("example.org")
    world.upkeep()
    world.write(flattening.forget, ["gone.example.net", "ours.example.org"])

    assert world.due() == ["gone.example.net"]


def test_a_clock_that_was_ahead_does_not_silence_targets_for_longer_than_their_ttl(world):
    world.record("CNAME", "example.com", OUTSIDE)
    world.answer(OUTSIDE, addresses("198.51.100.1"), now_us=NOW_US + 10**6 * SECOND_US)

    world.write(lambda tx: refreshing.start(world.call(NOW_US), tx, world.api.platform))

    assert world.due(NOW_US + 299 * SECOND_US) == []
    assert world.due(NOW_US + 301 * SECOND_US) == [OUTSIDE]


def test_a_name_that_an_earlier_version_did_not_serve_is_served_after_a_start(world):
    delegation = world.record("NS", "sub.example.com", "ns.example.net")
    world.record("DS", "sub.example.com", "1 13 2 " + "ab" * 32)
    world.api.delete(delegation)
    key = names.wire_from_text("sub.example.com").hex()
    world.write(lambda tx: tx.emit(world.zones["example.com"], served.KIND_NAME, key, None))

    world.write(lambda tx: refreshing.start(world.call(NOW_US), tx, world.api.platform))
    world.upkeep()

    newest = [one for one in world.api.changes if one.key == key][-1]
    assert newest.doc is not None
    assert served.decode_name(newest.doc).rrsets == (served.mark(served.EXISTS),)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(limits, "HANGING_MAX", 3)


def test_of_many_zones_that_hang_on_one_target_none_is_left_out(world, few):
    zones = [f"zone-{number}.example" for number in range(6)]
    for zone in zones:
        world.zone(zone)
        world.record("CNAME", zone, OUTSIDE)

    world.answer(OUTSIDE, addresses("198.51.100.1"))
    assert world.upkeep() == 6

    assert [world.serves(zone) for zone in zones] == [{A: [60, "198.51.100.1"]}] * 6


def test_of_many_names_that_hang_on_one_of_ours_none_is_left_out(world, few):
    zones = [f"zone-{number}.example" for number in range(6)]
    for zone in zones:
        world.zone(zone)
        world.record("CNAME", zone, "www.example.com")

    world.record("A", "www.example.com", "192.0.2.1", ttl=60)
    world.upkeep()

    assert [world.serves(zone) for zone in zones] == [{A: [60, "192.0.2.1"]}] * 6


def test_no_zone_waits_for_all_names_of_another_one(world, monkeypatch):
    monkeypatch.setattr(limits, "REFRESHED_NAMES_MAX", 2)
    world.zone("example.org")
    for number in range(5):
        world.record("A", f"w{number}.example.com", "192.0.2.1", proxied=True)
    world.write(flattened.refresh_every_zone)
    call = world.call(NOW_US)

    for _ in range(2):
        world.write(lambda tx: refreshing.go_on(call, tx, world.api.platform))

    assert world.read(flattened.counts)[2] == 1, "the small zone is done, the large one waits"
    assert world.read(flattened.next_refresh)[0] == world.zones["example.com"]
    assert world.upkeep() == 2


def test_what_hangs_on_a_proxied_name_follows_its_zones_settings(world):
    zone_id = world.zones["example.com"]
    world.zone("shop.example")
    world.record("A", "www.example.com", "192.0.2.1", proxied=True)
    world.record("CNAME", "shop.example", "www.example.com")
    assert set(world.serves("shop.example")) == {A, AAAA}

    world.api.patch(f"/zones/{zone_id}/settings/ipv6", {"value": "off"})
    world.upkeep()
    assert set(world.serves("www.example.com")) == set(world.serves("shop.example")) == {A}

    account = f"/accounts/{CREDENTIALS.account_id}/dns_settings"
    world.api.patch(account, {"enforce_dns_only": True})
    world.upkeep()
    assert world.serves("www.example.com") == world.serves("shop.example") == {A: [300, "192.0.2.1"]}

    world.api.patch(account, {"enforce_dns_only": False})
    world.api.patch(f"/zones/{zone_id}/settings/ipv6", {"value": "on"})
    world.upkeep()
    assert set(world.serves("www.example.com")) == set(world.serves("shop.example")) == {A, AAAA}


def test_a_proxied_alias_of_a_zone_that_is_dns_only_is_an_alias_and_flattened_at_the_apex(world):
    world.record("A", "www.example.com", "192.0.2.1", ttl=60)
    world.record("CNAME", "example.com", "www.example.com", proxied=True)
    assert set(world.serves("example.com")) == {A, AAAA}

    zone = f"/zones/{world.zones['example.com']}"
    world.api.patch(zone, {"plan": {"id": "enterprise"}})
    world.api.patch(f"{zone}/dns_settings", {"zone_mode": "dns_only"})

    assert world.serves("example.com") == {A: [60, "192.0.2.1"]}


def test_many_zones_of_an_account_are_served_dns_only_one_after_another(world, monkeypatch):
    monkeypatch.setattr("edgestead.usecases.zone.dns_settings.ZONES_SERVED_ANEW_MAX", 2)
    zones = [f"zone-{number}.example" for number in range(4)]
    for zone in zones:
        world.zone(zone)
        world.record("A", zone, "192.0.2.1", proxied=True)

    world.api.patch(f"/accounts/{CREDENTIALS.account_id}/dns_settings", {"enforce_dns_only": True})
    assert world.upkeep() > 3

    assert [world.serves(zone) for zone in zones] == [{A: [300, "192.0.2.1"]}] * 4
