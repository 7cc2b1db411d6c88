"""Catalogs of other name servers by the API; their members on an invented clock.

The producer is a function. Stock producers are in tests/server/test_followed_catalogs.py.
"""

import struct
import threading

import msgspec
import pytest

from edgestead.model import names
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.refusals import DiskFull
from edgestead.model.refusals.setting import ZoneOnHold
from edgestead.model.served import KIND_ZONE, decode_zone
from edgestead.server.control import followed as rounds
from edgestead.server.control import pauses
from edgestead.server.control.followed import FollowedCatalogs
from edgestead.tables import settings
from edgestead.usecases import limits
from edgestead.usecases.account import following
from edgestead.usecases.serving import followed
from edgestead.usecases.zone import hold, secondary
from edgestead.usecases.zone.secondary import Content, Rr
from tests.rest.conftest import AT_NEWEST
from tests.support.api import CREDENTIALS, FIRST_US

pytestmark = AT_NEWEST
ACCOUNT = f"/accounts/{CREDENTIALS.account_id}"
DNS = f"{ACCOUNT}/secondary_dns"
CATALOGS = f"{DNS}/catalogs"
DAY = 86_400
REFRESH, RETRY = 3_600, 600
NS, PTR, TXT = 2, 12, 16


def wire(name):
    return names.wire_from_text(name)


def text(value):
    return bytes((len(value),)) + value.encode()


class Listing:
    """What a producer says, as lines of (name below the catalog, type, value)."""

    def __init__(self, *members, version="2", more=()):
        self.records = [("version", TXT, text(version))] if version else []
        for label, name, *of in members:
            self.records.append((f"{label}.zones", PTR, wire(name)))
            for kind, value in of:
                rdata = text(value) if kind == "group" else wire(value)
                self.records.append((f"{kind}.{label}.zones", TXT if kind == "group" else PTR, rdata))
        self.records += more

    def content(self, catalog, serial):
        soa = wire("invalid") * 2 + struct.pack("!5I", serial, REFRESH, RETRY, 2**31 - 2, 0)
        below = [Rr(wire(f"{name}.{catalog}"), type_, 0, rdata) for name, type_, rdata in self.records]
        return Content(soa, 0, frozenset([Rr(wire(catalog), NS, 0, wire("invalid")), *below]))


class World:
    """Catalogs, their producer and the clock."""

    def __init__(self, api):
        self.api = api
        self.now = FIRST_US + 3_600_000_000
        self.serial = 1
        self.says = {}
        self.asked = []
        self.peer = api.post(f"{DNS}/peers", {"name": "producer", "ip": "192.0.2.1"}).result["id"]
        self.followed = FollowedCatalogs(api.app.context.barrier, api.platform, self._call, self._fetch)

    def follow(self, name="catalog.test", **more):
        made = self.api.post(CATALOGS, {"name": name, "peers": [self.peer], **more})
        assert made.status == 200, made.body
        return made.result["id"]

    def _call(self):
        return Call(
            actor=Actor(kind="account", id=""),
            as_of=self.api.app.context.as_of,
            profile=Profile.SPEC,
            now_us=self.now,
            request_id="",
        )

    def _fetch(self, peer, apex, serial, present, whole, key):
        self.asked.append((peer.name, names.text_from_wire(apex), serial, whole))
        says = self.says[names.text_from_wire(apex)]
        if isinstance(says, Exception):
            raise says
        content = says if isinstance(says, Content) else says.content(names.text_from_wire(apex), self.serial)
        return None if serial == content.serial and not whole else content

    def hear(self, listing, catalog="catalog.test", seconds=following.NOTICE_PAUSE_SECONDS):
        """The producer says something new, and says so."""
        self.says[catalog] = listing
        self.serial += 1
        self.followed.hear([("192.0.2.1", catalog)])
        self.after(seconds)

    def after(self, seconds):
        self.now += int(seconds * 1_000_000)
        self.api._loop.run_until_complete(self.followed.poll())

    def zones(self):
        return {zone["name"]: zone["id"] for zone in self.api.get("/zones?per_page=50").result}

    def members(self, catalog_id):
        found = self.api.get(f"{CATALOGS}/{catalog_id}/zones").result
        return {one["name"]: one for one in found}

    def peers_of(self, zone_id):
        return self.api.get(f"/zones/{zone_id}/secondary_dns/incoming").result["peers"]


@pytest.fixture
def world(api):
    return World(api)


ONE, TWO = ("l1", "one.example"), ("l2", "two.example")


def test_members_become_secondary_zones_and_are_transferred_from_the_catalogs_peers(world, api):
    catalog_id = world.follow()
    world.hear(Listing(ONE, TWO))

    ids = world.zones()
    assert set(ids) == {"one.example", "two.example"}
    assert world.peers_of(ids["one.example"]) == [world.peer]
    assert api.get(f"/zones/{ids['one.example']}").result["type"] == "secondary"
    shown = api.get(f"{CATALOGS}/{catalog_id}").result
    assert (shown["zones"], shown["refused"], shown["problem"]) == (2, 0, "")
    assert shown["serial"] == world.serial
    assert api.get(CATALOGS).result == [shown]

    entries = api.get(f"{ACCOUNT}/audit_logs?zone.name=two.example").result
    assert [(one["action"]["type"], one["interface"]) for one in entries] == [("create", "catalog")]


def test_a_catalog_that_could_not_be_reached_is_asked_for_when_its_peer_is_corrected(world, api):
    world.says["catalog.test"] = OSError("unreachable")
    world.follow()
    for _ in range(3):
        world.after(REFRESH)
    asked = len(world.asked)
    world.says["catalog.test"] = Listing(ONE)

    world.after(1)
    assert len(world.asked) == asked
    api.put(f"{DNS}/peers/{world.peer}", {"name": "producer", "ip": "192.0.2.2"})
    world.after(0)

    assert (len(world.asked), set(world.zones())) == (asked + 1, {"one.example"})


def test_a_new_serial_is_asked_for_by_a_notice_of_a_peer_or_at_refresh(world):
    world.follow()
    world.hear(Listing(ONE))
    before = len(world.asked)
    world.says["catalog.test"] = Listing(ONE, TWO)
    world.serial += 1
    world.followed.hear([("192.0.2.9", "catalog.test"), ("192.0.2.1", "other.test")])
    world.after(1)
    assert len(world.asked) == before

    world.after(REFRESH)
    assert "two.example" in world.zones()


class TestLeaving:
    def test_a_zone_stays_for_the_grace_and_is_deleted_then(self, world, api):
        catalog_id = world.follow(grace_seconds=2 * DAY)
        world.hear(Listing(ONE, TWO))
        world.hear(Listing(ONE))
        left = world.members(catalog_id)["two.example"]
        assert (left["status"], left["zone_id"]) == ("leaving", world.zones()["two.example"])
        assert left["deleted_on"]

        world.after(DAY)
        assert "two.example" in world.zones()
        world.after(DAY + 100)
        assert set(world.zones()) == {"one.example"}
        entries = api.get(f"{ACCOUNT}/audit_logs?zone.name=two.example").result
        assert {one["action"]["type"] for one in entries} == {"create", "delete"}

    def test_a_zone_that_comes_back_is_the_same(self, world):
        catalog_id = world.follow(grace_seconds=DAY)
        world.hear(Listing(ONE, TWO))
        before = world.zones()
        world.hear(Listing(ONE))
        world.hear(Listing(ONE, TWO))
        world.after(2 * DAY)

        assert world.zones() == before
        assert world.members(catalog_id)["two.example"]["status"] == "member"

    def test_a_zone_that_is_kept_stays(self, world, api):
        world.follow(grace_seconds=DAY)
        world.hear(Listing(ONE, TWO))
        world.hear(Listing(ONE))
        kept = world.zones()["two.example"]
        answer = api.post(f"/zones/{kept}/secondary_dns/keep", {})
        assert answer.result == {"id": kept, "name": "two.example"}
        world.after(2 * DAY)

        assert world.zones()["two.example"] == kept
        assert api.post(f"/zones/{kept}/secondary_dns/keep", {}).codes == [9611]

    def test_without_grace_it_goes_at_once(self, world):
        world.follow(grace_seconds=0)
        world.hear(Listing(ONE, TWO))
        world.hear(Listing(TWO))
        assert set(world.zones()) == {"two.example"}

    def test_a_catalog_that_is_unfollowed_leaves_its_zones(self, world, api):
        catalog_id = world.follow(grace_seconds=DAY)
        world.hear(Listing(ONE, TWO))
        world.hear(Listing(ONE))
        before = world.zones()
        assert api.delete(f"{CATALOGS}/{catalog_id}").result == {"id": catalog_id}
        world.after(3 * DAY)

        assert world.zones() == before
        assert api.get(f"{CATALOGS}/{catalog_id}").codes == [9609]
        assert api.post("/zones", {"name": "catalog.test"}).status == 200


class TestBroken:
    @pytest.mark.parametrize(
        ("listing", "words"),
        [
            (Listing(ONE, ("l3", "three.example"), version="1"), "version '1'"),
            (Listing(ONE, ("l3", "three.example"), version=None), "no records of its version"),
            (
                Listing(("l3", "three.example"), more=[("version", TXT, text("3"))]),
                "2 records of its version",
            ),
            (
                Listing(("l3", "three.example"), more=[("l3.zones", PTR, wire("four.example"))]),
                "its label l3 has 2 PTR records",
            ),
            (Listing(("l3", "three.example"), ("l4", "three.example")), "lists three.example twice"),
        ],
    )
    def test_nothing_of_it_is_taken_and_nothing_is_lost(self, world, api, listing, words):
        catalog_id = world.follow(grace_seconds=0)
        world.hear(Listing(ONE, TWO))
        before, serial = world.zones(), api.get(f"{CATALOGS}/{catalog_id}").result["serial"]
        world.hear(listing)

        assert world.zones() == before
        shown = api.get(f"{CATALOGS}/{catalog_id}").result
        assert words in shown["problem"]
        assert shown["serial"] == serial
        (trouble,) = rounds.troubled(api.app.context.barrier)
        assert (trouble.name, words in trouble.problem) == ("catalog.test", True)

        world.hear(Listing(ONE))
        assert set(world.zones()) == {"one.example"}
        assert rounds.troubled(api.app.context.barrier) == ()

    def test_too_many_members_are_none(self, world, api, monkeypatch):
        monkeypatch.setattr(limits, "FOLLOWED_MEMBERS_MAX", 1)
        catalog_id = world.follow()
        world.hear(Listing(ONE, TWO))
        assert world.zones() == {}
        assert "lists more than 1 zones" in api.get(f"{CATALOGS}/{catalog_id}").result["problem"]

    def test_more_than_the_account_may_have_are_none(self, world, api):
        before = api.platform.quotas.account_zones
        msgspec.structs.force_setattr(api.platform.quotas, "account_zones", 1)
        try:
            catalog_id = world.follow()
            world.hear(Listing(ONE, TWO))
            assert world.zones() == {}
            assert "2 new zones" in api.get(f"{CATALOGS}/{catalog_id}").result["problem"]
        finally:
            msgspec.structs.force_setattr(api.platform.quotas, "account_zones", before)

    def test_a_producer_that_is_away_is_asked_again_later_and_later(self, world):
        world.follow()
        world.says["catalog.test"] = OSError("gone")
        world.after(0)
        world.after(1)
        assert len(world.asked) == 1
        world.after(secondary.FIRST_RETRY_SECONDS)
        assert len(world.asked) == 2
        world.after(secondary.FIRST_RETRY_SECONDS)
        assert len(world.asked) == 2


class TestNames:
    def test_a_zone_of_our_own_is_not_touched_and_the_others_are_taken(self, world, api):
        mine = api.post("/zones", {"name": "one.example"}).result["id"]
        catalog_id = world.follow()
        world.hear(Listing(ONE, TWO))

        assert world.zones()["one.example"] == mine
        refused = world.members(catalog_id)["one.example"]
        assert refused["status"] == "refused"
        assert "delete that zone first" in refused["problem"]
        (trouble,) = rounds.troubled(api.app.context.barrier)
        assert trouble.refused == 1

        api.delete(f"/zones/{mine}")
        world.after(REFRESH)
        assert world.members(catalog_id)["one.example"]["status"] == "member"
        assert rounds.troubled(api.app.context.barrier) == ()

    def test_a_zone_of_another_account_is_refused_in_words(self, world, api):
        other = api.post("/accounts", {"name": "other"}).result["id"]
        theirs = api.post("/zones", {"name": "one.example", "account": {"id": other}}).result["id"]
        catalog_id = world.follow()
        world.hear(Listing(ONE))

        assert "another account" in world.members(catalog_id)["one.example"]["problem"]
        assert world.zones() == {"one.example": theirs}

    def test_a_name_that_no_zone_can_have_is_refused(self, world):
        catalog_id = world.follow()
        world.hear(Listing(("l1", "."), TWO))
        assert [one["status"] for one in world.members(catalog_id).values()] == ["refused", "member"]


class TestLabels:
    def test_another_label_begins_the_zone_anew(self, world):
        world.follow()
        world.hear(Listing(ONE))
        before = world.zones()
        world.hear(Listing(("other", "one.example")))
        assert set(world.zones()) == set(before)
        assert world.zones() != before

    def test_a_zone_moves_with_what_it_has_when_both_say_so(self, world):
        old, new = world.follow("old.test"), world.follow("new.test")
        world.says["new.test"] = Listing()
        world.hear(Listing(ONE), "old.test")
        before = world.zones()
        world.hear(Listing(ONE), "new.test")
        assert world.members(new)["one.example"]["status"] == "refused"

        world.hear(Listing((*ONE, ("coo", "new.test"))), "old.test")
        assert world.members(new)["one.example"]["status"] == "member"
        assert world.members(old) == {}
        world.hear(Listing(), "old.test")
        assert world.zones() == before

    def test_one_that_moves_under_another_label_begins_anew(self, world):
        world.follow("old.test")
        new = world.follow("new.test")
        world.says["new.test"] = Listing()
        world.hear(Listing((*ONE, ("coo", "new.test"))), "old.test")
        before = world.zones()
        world.hear(Listing(("l9", "one.example")), "new.test")
        assert world.members(new)["one.example"]["status"] == "member"
        assert world.zones() != before

    @pytest.mark.parametrize("label", [ONE[0], "l9"])
    def test_one_that_two_catalogs_give_to_each_other_stays_where_it_is(self, world, label):
        old, new = world.follow("old.test"), world.follow("new.test")
        world.says["new.test"] = Listing()
        world.hear(Listing((*ONE, ("coo", "new.test"))), "old.test")
        before = world.zones()
        world.hear(Listing((label, "one.example", ("coo", "old.test"))), "new.test")
        for _ in range(4):
            world.after(following.NOTICE_PAUSE_SECONDS)
            assert world.zones() == before
            assert world.members(old)["one.example"]["status"] == "member"
            assert world.members(new)["one.example"]["status"] == "refused"

        world.hear(Listing((label, "one.example")), "new.test")
        assert world.members(new)["one.example"]["status"] == "member"


class TestGroups:
    def test_a_group_says_peers_key_and_overrides(self, world, api):
        other = api.post(f"{DNS}/peers", {"name": "other", "ip": "192.0.2.2"}).result["id"]
        key = api.post(f"{DNS}/tsigs", {"name": "xfr.example.org"}).result["id"]
        groups = {"edge": {"peers": [other], "tsig_id": key, "secondary_overrides": True}}
        catalog_id = world.follow(groups=groups)
        world.hear(Listing((*ONE, ("group", "unknown"), ("group", "edge")), TWO))

        ids = world.zones()
        assert world.peers_of(ids["one.example"]) == [other]
        assert world.peers_of(ids["two.example"]) == [world.peer]
        assert api.get(f"/zones/{ids['one.example']}/dns_settings").result["secondary_overrides"] is True
        tasks = api.app.context.barrier.read(
            lambda reader: [
                secondary.task_of(reader, api.platform, one) for one in secondary.waiting(reader, world.now)
            ]
        )
        assert {task.name: [peer.tsig_id for peer in task.peers] for task in tasks} == {
            "one.example": [key],
            "two.example": [None],
        }
        assert api.delete(f"{DNS}/tsigs/{key}").codes == [1001]
        assert api.delete(f"{DNS}/peers/{other}").codes == [9604]

        api.put(f"{CATALOGS}/{catalog_id}", {"peers": [world.peer], "groups": {}})
        world.after(1)
        assert world.peers_of(ids["one.example"]) == [world.peer]
        world.hear(Listing(ONE, TWO))
        assert world.members(catalog_id)["one.example"]["groups"] == []

    def test_zones_are_served_as_their_primary_signed_them_where_that_is_said(self, world, api):
        """Of each zone: whether that is on, whether names can be proxied, whether it is transferred anew."""

        def switches():
            found = {}
            for name, id_ in world.zones().items():
                overrides = api.get(f"/zones/{id_}/dns_settings").result["secondary_overrides"]
                state = api.app.context.barrier.read(lambda reader, id_=id_: secondary.state_of(reader, id_))
                presigned = api.get(f"/zones/{id_}/dnssec").result["dnssec_presigned"]
                found[name] = presigned, overrides, state.whole
            return found

        groups = {"edge": {"secondary_overrides": True}, "plain": {"dnssec_presigned": False}}
        listing = Listing(ONE, (*TWO, ("group", "edge")), ("l3", "three.example", ("group", "plain")))
        catalog_id = world.follow(groups=groups, dnssec_presigned=True)
        world.hear(listing)
        assert switches() == {
            "one.example": (True, False, True),
            "two.example": (False, True, False),
            "three.example": (False, False, False),
        }

        groups = {"edge": {"dnssec_presigned": True, "secondary_overrides": False}}
        body = {"peers": [world.peer], "groups": groups}
        assert api.put(f"{CATALOGS}/{catalog_id}", body).result["dnssec_presigned"] is None
        world.after(1)
        assert switches() == {
            "one.example": (True, False, True),  # as it is by itself
            "two.example": (True, False, True),
            "three.example": (False, False, False),
        }
        assert world.members(catalog_id)["two.example"]["problem"] == ""

    def test_a_zone_whose_names_are_proxied_is_not_served_as_its_primary_signed_it(self, world, api):
        catalog_id = world.follow()
        world.hear(Listing(ONE))
        path = f"/zones/{world.zones()['one.example']}/dns_settings"
        api.patch(path, {"secondary_overrides": True})
        api.put(f"{CATALOGS}/{catalog_id}", {"peers": [world.peer], "dnssec_presigned": True})
        world.after(1)
        assert "dnssec_presigned" in world.members(catalog_id)["one.example"]["problem"]

        api.patch(path, {"secondary_overrides": False})
        world.hear(Listing(ONE))
        assert world.members(catalog_id)["one.example"]["status"] == "member"


def test_what_is_said_of_a_catalog_is_checked(world, api, zone_id):
    peers = [world.peer]
    for body in (
        {},
        {"name": "catalog.test"},
        {"name": "a..b", "peers": peers},
        {"name": "example.com", "peers": peers},
        {"name": "cat.example.com", "peers": peers},
        {"name": "catalog.test", "peers": ["e" * 32]},
        {"name": "catalog.test", "peers": peers, "grace_seconds": -1},
        {"name": "catalog.test", "peers": peers, "groups": {"": {}}},
        {"name": "catalog.test", "peers": peers, "groups": {"g": {"tsig_id": "e" * 32}}},
        {"name": "catalog.test", "peers": peers, "groups": {"g": {"peers": ["e" * 32]}}},
        {
            "name": "catalog.test",
            "peers": peers,
            "groups": {"g": {"secondary_overrides": True, "dnssec_presigned": True}},
        },
        {"name": "catalog.test", "peers": peers, "groups": {str(n): {} for n in range(51)}},
    ):
        assert api.post(CATALOGS, body).codes == [9610], body
    catalog_id = world.follow()
    assert api.post(CATALOGS, {"name": "catalog.test", "peers": peers}).codes == [9610]
    assert api.put(f"{DNS}/catalog", {"name": "catalog.test"}).codes == [9601]
    assert api.post("/zones", {"name": "catalog.test"}).status == 400
    assert api.put(f"{CATALOGS}/{catalog_id}", {"name": "x.test", "peers": peers}).codes == [9610]
    assert api.get(f"{CATALOGS}/{'e' * 32}").codes == [9609]
    for _ in range(limits.FOLLOWED_MAX - 1):
        world.follow(f"c{_}.test")
    assert api.post(CATALOGS, {"name": "more.test", "peers": peers}).codes == [9610]


def test_nobody_sees_what_a_catalog_lists(world, api):
    catalog_id = world.follow()
    world.hear(Listing(ONE))
    document = api.store.write(lambda tx: tx.newest(followed.scope(catalog_id), KIND_ZONE, "")).result(60)
    assert decode_zone(document.value).lost


def test_nothing_more_is_done_for_a_catalog_that_is_followed_no_longer(world, api):
    catalog_id = world.follow()
    fetch = world._fetch

    def unfollow(*asked):
        found = fetch(*asked)
        api.store.write(lambda tx: following.delete(tx, CREDENTIALS.account_id, catalog_id)).result(60)
        return found

    world.followed._asking._fetch = unfollow
    world.hear(Listing(ONE, TWO))

    assert world.zones() == {}
    assert api.get(CATALOGS).result == []


def test_a_zone_that_begins_anew_needs_no_more_room_than_it_has(world, api):
    catalog_id = world.follow()
    world.hear(Listing(ONE, TWO))
    before, quotas = world.zones(), api.platform.quotas
    room = quotas.account_zones
    msgspec.structs.force_setattr(quotas, "account_zones", 1)
    try:
        world.hear(Listing(("l9", "one.example"), TWO))
    finally:
        msgspec.structs.force_setattr(quotas, "account_zones", room)

    assert set(world.zones()) == set(before)
    assert world.zones()["one.example"] != before["one.example"]
    assert world.members(catalog_id)["one.example"]["status"] == "member"


def test_a_zone_that_may_not_begin_anew_stays_as_it_is(world, monkeypatch):
    catalog_id = world.follow()
    world.hear(Listing(ONE, TWO))
    before = world.zones()

    def on_hold(call, reader, account_id, name):
        raise ZoneOnHold(name=name, pointer="/name")

    monkeypatch.setattr(hold, "check_free", on_hold)
    world.hear(Listing(("l9", "one.example"), TWO))

    assert world.zones() == before
    assert "hold" in world.members(catalog_id)["one.example"]["problem"]


def test_a_group_with_overrides_is_not_for_a_zone_that_is_signed_elsewhere(world, api):
    catalog_id = world.follow(groups={"proxied": {"secondary_overrides": True}})
    world.hear(Listing(ONE, TWO))
    zone_id = world.zones()["one.example"]
    api.patch(f"/zones/{zone_id}/dnssec", {"dnssec_presigned": True})
    world.hear(Listing((*ONE, ("group", "proxied")), TWO))

    assert "secondary_overrides" in world.members(catalog_id)["one.example"]["problem"]
    assert api.get(f"/zones/{zone_id}/dns_settings").result["secondary_overrides"] is False


def test_a_groups_key_is_in_use_until_a_zone_that_it_gave_it_to_has_peers_of_its_own(world, api):
    key = api.post(f"{DNS}/tsigs", {"name": "k.test"}).result["id"]
    catalog_id = world.follow(groups={"keyed": {"tsig_id": key}})
    world.hear(Listing((*ONE, ("group", "keyed"))))
    api.delete(f"{CATALOGS}/{catalog_id}")

    assert "one.example" in str(api.delete(f"{DNS}/tsigs/{key}").body)

    zone_id = world.zones()["one.example"]
    api.put(f"/zones/{zone_id}/secondary_dns/incoming", {"peers": [world.peer]})
    assert api.delete(f"{DNS}/tsigs/{key}").status == 200


def test_a_slow_producer_of_one_account_does_not_hold_up_another_one(world, api):
    world.follow("aaa.test")
    other = world.follow("bbb.test")

    def move(tx):
        catalog = msgspec.structs.replace(followed.one(tx, other), account_id="other")
        followed.put(tx, catalog, world.now)
        peer = settings.one(tx, CREDENTIALS.account_id, f"{secondary.PEERS}.{world.peer}")
        settings.put(tx, "other", f"{secondary.PEERS}.{world.peer}", peer.value, world.now)

    api.store.write(move).result(60)
    asked, waited = threading.Event(), []

    def fetch(peer, apex, *more):
        if apex == wire("aaa.test"):
            waited.append(asked.wait(60))
        else:
            asked.set()
        raise OSError("nothing")

    world.followed._asking._fetch = fetch
    world.after(1)

    assert waited == [True]


def test_a_catalog_of_which_nothing_can_be_written_is_fetched_once_a_pause(world, api, monkeypatch):
    asked_for = world.follow()
    other = world.follow("other.test")
    world.says |= {"catalog.test": Listing(ONE), "other.test": OSError("refused")}

    def refuse(*_):
        raise DiskFull

    with monkeypatch.context() as full:
        full.setattr(following, "took", refuse)
        full.setattr(following, "failed", refuse)
        for _ in range(int(2.5 * pauses.PAUSE_SECONDS)):
            world.after(1)

    assert [name for _, name, *_ in world.asked] == ["catalog.test", "other.test"] * 2
    api.store.write(lambda tx: followed.ask_soon(tx, asked_for, world.now, again=True)).result(60)
    world.after(1)
    assert [name for _, name, *_ in world.asked][4:] == ["catalog.test"], "who asks does not wait"
    world.after(2 * pauses.PAUSE_SECONDS)
    assert api.get(f"{CATALOGS}/{other}").result["problem"] == "producer: refused"


def test_a_catalog_whose_peers_cannot_be_read_keeps_no_other_from_its_turn(world, api, caplog):
    broken, other = world.follow("broken.test"), world.follow("other.test")
    world.says = {"other.test": Listing(ONE)}

    def spoil(tx):
        catalog = msgspec.structs.replace(followed.one(tx, broken), account_id="another")
        followed.put(tx, catalog, world.now)
        settings.put(tx, "another", f"{secondary.PEERS}.{world.peer}", "{", world.now)

    api.store.write(spoil).result(60)
    world.after(1)
    world.after(1)

    assert [name for _, name, *_ in world.asked] == ["other.test"]
    assert api.get(f"{CATALOGS}/{other}").result["serial"] == world.serial
    said = [one for one in caplog.messages if "could not be finished" in one]
    assert said == [f"a look at the catalog {broken} could not be finished"], "and it pauses"


@pytest.mark.parametrize("says", [None, TimeoutError()], ids=["nothing new", "no answer"])
def test_what_is_asked_for_during_an_attempt_is_done_at_once(world, api, says):
    catalog_id = world.follow()
    world.hear(Listing(ONE))

    def meanwhile(*asked):
        world.followed._asking._fetch = world._fetch
        api.store.write(lambda tx: followed.ask_soon(tx, catalog_id, world.now, again=True)).result(60)
        if says is not None:
            raise says

    world.followed._asking._fetch = meanwhile
    world.after(86_400)
    before = len(world.asked)
    world.after(1)

    assert len(world.asked) == before + 1
    assert world.asked[-1][-1]  # for all of it
    assert api.get(f"{CATALOGS}/{catalog_id}").result["problem"] == ""


def test_a_notice_does_not_undo_the_back_off(world, api):
    catalog_id = world.follow()
    for _ in range(3):
        world.hear(OSError("refused"))

    assert api.store.write(lambda tx: followed.state_of(tx, catalog_id)).result(60).value.tries == 3


def test_notices_have_a_catalog_fetched_once_in_a_while(world):
    world.follow()
    world.hear(Listing(ONE))
    before = len(world.asked)
    for _ in range(3):
        world.hear(Listing(ONE), seconds=0.1)
    assert len(world.asked) == before
    world.after(following.NOTICE_PAUSE_SECONDS)
    assert len(world.asked) == before + 1


def test_a_notice_that_cannot_be_written_is_acted_on_when_it_can(world, monkeypatch):
    world.follow()
    world.hear(Listing(ONE))
    before = len(world.asked)

    def refuse(*_):
        raise DiskFull

    with monkeypatch.context() as full:
        full.setattr(following, "wake", refuse)
        with pytest.raises(DiskFull):
            world.hear(Listing(ONE, TWO))

    world.after(1)
    world.after(1)
    assert len(world.asked) == before + 1
    assert set(world.zones()) == {"one.example", "two.example"}


def test_a_notice_from_an_ipv4_address_in_ipv6_form_is_that_addresss(world):
    world.follow()
    world.hear(Listing(ONE))
    before = len(world.asked)
    world.followed.hear([("::ffff:192.0.2.1", "catalog.test")])
    world.after(following.NOTICE_PAUSE_SECONDS)
    assert len(world.asked) == before + 1
