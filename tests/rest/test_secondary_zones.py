"""Secondary zones by the API; their timers on an invented clock, with a primary that is a function."""

import struct
import threading

import msgspec
import pytest

from edgestead.model import dnssec, names, zonemd
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.refusals import DiskFull
from edgestead.model.served import KIND_JOURNAL, KIND_NAME, KIND_ZONE, decode_change, decode_name, decode_zone
from edgestead.server.control import pauses, secondaries
from edgestead.server.control.secondaries import Secondaries
from edgestead.tables import accounts, carried, settings
from edgestead.tables.accounts import AccountRow
from edgestead.usecases import restored
from edgestead.usecases.zone import dnssec as dnssec_cases
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone.dns_settings import STORED_SET
from edgestead.usecases.zone.secondary import Content, Rr, Unfit
from tests.rest.conftest import AT_NEWEST
from tests.support.api import CREDENTIALS, FIRST_US

pytestmark = AT_NEWEST
PEERS = f"/accounts/{CREDENTIALS.account_id}/secondary_dns/peers"
ZONE = "example.org"
REFRESH, RETRY, EXPIRE = 7_200, 900, 86_400
SECOND = 1_000_000


def wire(name):
    return names.wire_from_text(name)


def rr(name, type_, ttl, rdata):
    return Rr(wire(name), type_, ttl, rdata)


def a(name, last):
    return rr(f"{name}.{ZONE}", 1, 60, bytes((192, 0, 2, last)))


NS = rr(ZONE, 2, 3600, wire("ns.example.net"))


def content(serial, *records):
    soa = (
        wire("ns.example.net")
        + wire("h.example.net")
        + struct.pack("!5I", serial, REFRESH, RETRY, EXPIRE, 60)
    )
    return Content(soa, 300, frozenset((NS, *records)))


class World:
    """One secondary zone, its primary and the clock. `says` is what the primary gives, or an error."""

    def __init__(self, api):
        self.api = api
        self.now = FIRST_US + 3_600 * SECOND
        self.says = content(7, a("www", 1))
        self.asked = []
        peer = api.post(PEERS, {"name": "primary", "ip": "192.0.2.1"}).result["id"]
        self.id = api.post("/zones", {"name": ZONE, "type": "secondary"}).result["id"]
        self.incoming = f"/zones/{self.id}/secondary_dns/incoming"
        api.post(self.incoming, {"name": "in", "peers": [peer]})
        self.peer = peer
        self.heard = ()
        self._loop = api._loop
        self._secondaries = Secondaries(
            *(api.app.context.barrier, api.platform, api.page, self._call, self._fetch), heard=self._hear
        )

    def _hear(self):
        heard, self.heard = self.heard, ()
        return heard

    def _call(self):
        return Call(
            actor=Actor(kind="account", id=""),
            as_of=self.api.app.context.as_of,
            profile=Profile.SPEC,
            now_us=self.now,
            request_id="",
        )

    def _fetch(self, peer, apex, serial, present, whole, key):
        self.asked.append((peer.name, serial, whole))
        if isinstance(self.says, Exception):
            raise self.says
        return None if self.says.serial == serial and not whole else self.says

    def after(self, seconds, says=None):
        """Let time pass, and what is due then be done. Returns how often the primary was asked."""
        self.says = says or self.says
        self.now += int(seconds * SECOND)
        before = len(self.asked)

        async def round_():
            await self._secondaries.poll()
            await self._secondaries.settled()

        self._loop.run_until_complete(round_())
        return len(self.asked) - before

    @property
    def zone(self):
        return decode_zone(self.newest(KIND_ZONE))

    @property
    def serial(self):
        return int.from_bytes(self.zone.soa_rdata[-20:-16], "big")

    def newest(self, kind, key=""):
        return self.api.store.write(lambda tx: tx.newest(self.id, kind, key)).result(60).value

    def rdatas(self, name, type_=1):
        document = self.newest(KIND_NAME, wire(name).hex())
        rrsets = decode_name(document).rrsets if document else ()
        return {rdata for rrset in rrsets if rrset.type == type_ for rdata in rrset.rdatas}

    @property
    def state(self):
        return self.api.get(self.incoming).result


@pytest.fixture
def world(api):
    made = World(api)
    yield made
    made._secondaries.close()


def test_its_digest_is_its_primarys(world, api):
    answer = api.patch(f"/zones/{world.id}/dnssec", {"zonemd": True})

    assert (answer.status, answer.causes) == (400, [9608])
    assert "its digest is made at its primary" in answer.json["errors"][0]["message"]
    assert api.get(f"/zones/{world.id}/dnssec").result["zonemd"] is False
    assert api.patch(f"/zones/{world.id}/dnssec", {"zonemd": False}).status == 200


def test_a_zone_is_lost_until_it_is_transferred_and_served_as_the_primary_has_it(world, api):
    assert world.zone.lost

    assert world.after(0) == 1

    assert (world.zone.lost, world.serial) == (False, 7)
    assert world.rdatas(f"www.{ZONE}") == {bytes((192, 0, 2, 1))}
    assert world.rdatas(ZONE, 2) == {wire("ns.example.net")}
    assert world.zone.soa_rdata == world.says.soa
    assert world.state["soa_serial"] == 7
    assert {one["content"] for one in api.get(f"/zones/{world.id}/dns_records").result} == {
        "192.0.2.1",
        "ns.example.net",
    }


def test_a_change_leads_from_serial_to_serial(world, api):
    world.after(0)
    api.changes.clear()

    world.after(REFRESH, content(9, a("www", 2), a("new", 3)))

    kinds = [change.kind for change in api.changes]
    assert kinds[-2:] == [KIND_JOURNAL, KIND_ZONE]
    row = decode_change(api.changes[-2].doc)
    assert row.whole
    assert (world.serial, world.rdatas(f"www.{ZONE}")) == (9, {bytes((192, 0, 2, 2))})


def test_it_is_asked_for_at_refresh_with_jitter_and_at_retry_with_back_off(world):
    world.after(0)
    assert world.after(REFRESH * 0.85) == 0
    assert world.after(REFRESH * 0.2, OSError("no")) == 1
    assert world.after(RETRY * 0.85) == 0
    assert world.after(RETRY * 0.2) == 1
    assert world.after(RETRY * 1.5) == 0  # the pause has doubled
    assert world.after(RETRY * 0.6) == 1
    assert world.state["problem"] == "primary: no"
    assert not world.zone.lost

    assert world.after(4 * RETRY, content(7, a("www", 1))) == 1
    assert world.state["problem"] == ""


def test_an_expired_zone_is_lost_at_that_moment_and_found_again(world):
    world.after(0)
    world.says = OSError("gone")
    for _ in range(200):
        world.after(600)
        if world.zone.lost:
            break
    assert EXPIRE <= 600 * (_ + 1) <= EXPIRE + 1200
    assert world.state["expired"]
    assert world.rdatas(f"www.{ZONE}")  # stays in the database

    world.after(secondary.RETRY_SECONDS_MAX, content(7, a("www", 1)))
    assert not world.zone.lost
    assert not world.state["expired"]


def test_another_change_does_not_bring_back_a_zone_that_is_lost(world, api):
    world.after(0)
    world.after(EXPIRE + 1, OSError("gone"))
    assert world.zone.lost

    api.patch(f"/zones/{world.id}/dns_settings", {"secondary_overrides": True})
    api.patch(f"/zones/{world.id}/settings/ipv6", {"value": "off"})
    assert world.zone.lost


def test_a_transfer_in_parts_shows_its_soa_at_the_end(world, api, monkeypatch):
    monkeypatch.setattr(secondary, "CHANGES_AT_ONCE_MAX", 3)
    world.after(0)
    api.changes.clear()

    world.after(REFRESH, content(8, *(a(f"n{n}", n) for n in range(10))))

    kinds = [change.kind for change in api.changes]
    assert kinds.count(KIND_ZONE) == 1
    assert kinds[-1] == KIND_ZONE
    assert KIND_JOURNAL not in kinds  # no row leads over it: secondaries fetch the zone
    assert len(api.get(f"/zones/{world.id}/dns_records").result) == 11
    assert world.after(1) == 0  # nobody has asked for it meanwhile


@pytest.fixture
def cut(world, api, monkeypatch):
    """A transfer of serial 8 that came in parts, of which the first one alone was written."""
    monkeypatch.setattr(secondary, "CHANGES_AT_ONCE_MAX", 6)
    take = secondary.take

    def once(call, tx, platform, task, changes, start):
        if start > 0:
            raise OSError("the disk is gone")
        return take(call, tx, platform, task, changes, start)

    world.after(0)
    with monkeypatch.context() as broken:
        broken.setattr(secondary, "take", once)
        world.after(REFRESH, content(8, a("www", 1), *(a(f"n{n}", n) for n in range(10))))
    assert len(api.get(f"/zones/{world.id}/dns_records").result) == 8
    api.changes.clear()
    return world


def test_a_transfer_that_was_cut_between_its_parts_has_no_row_of_changes(cut, api):
    """Its second half leads nowhere for who is at the serial before."""
    assert cut.after(RETRY) == 1

    assert cut.serial == 8
    assert len(api.get(f"/zones/{cut.id}/dns_records").result) == 12
    assert KIND_JOURNAL not in {change.kind for change in api.changes}
    assert cut.after(REFRESH * 0.85) == 0  # nobody has asked

    cut.after(REFRESH, content(9, a("www", 2)))
    cut.after(REFRESH, content(10, a("www", 3)))
    assert api.changes[-2].kind == KIND_JOURNAL


def test_after_a_transfer_that_was_cut_changes_alone_are_not_taken(cut, api):
    """Those that are condensed (RFC 1995 §5) name nothing that came and went since the serial before."""

    def fetch(peer, apex, serial, present, whole, key):
        cut.asked.append((peer.name, serial, whole))
        new = content(9, a("www", 2))
        return new if whole else new._replace(records=present() - {a("www", 1)} | {a("www", 2)})

    cut._secondaries._asking._fetch = fetch
    cut.after(RETRY)

    assert cut.asked[-1] == ("primary", 7, True)
    assert {one["content"] for one in api.get(f"/zones/{cut.id}/dns_records").result} == {
        "192.0.2.2",
        "ns.example.net",
    }


def test_a_transfer_that_is_cut_is_whole_from_the_next_peer_at_once(world, api, monkeypatch):
    monkeypatch.setattr(secondary, "CHANGES_AT_ONCE_MAX", 6)
    other = api.post(PEERS, {"name": "other", "ip": "192.0.2.2"}).result["id"]
    api.put(world.incoming, {"name": "in", "peers": [world.peer, other]})
    world.after(0)
    take, cuts = secondary.take, iter([True])

    def once(call, tx, platform, task, changes, start):
        if start > 0 and next(cuts, False):
            raise OSError("the disk is gone")
        return take(call, tx, platform, task, changes, start)

    monkeypatch.setattr(secondary, "take", once)
    world.after(REFRESH, content(8, *(a(f"n{n}", n) for n in range(10))))

    assert world.asked[-2:] == [("primary", 7, False), ("other", 7, True)]
    assert (world.serial, world.state["problem"]) == (8, "")


def test_what_is_not_stored_here_changes_nothing_and_is_named(world):
    world.after(0)

    world.after(REFRESH, content(8, rr(f"odd.{ZONE}", 65280, 60, b"x")))

    assert "odd.example.org has a record of type 65280" in world.state["problem"]
    assert (world.serial, world.state["soa_serial"]) == (7, 7)


def test_a_zone_that_is_not_what_its_digest_says_is_not_taken(world, api):
    api.patch(f"/zones/{world.id}/dnssec", {"dnssec_presigned": True})
    world.after(0)
    plain = content(8, a("www", 2))
    soa = Rr(wire(ZONE), 6, plain.soa_ttl, plain.soa)
    octets = zonemd.digest(wire(ZONE), [soa, *plain.records], 1)

    world.after(REFRESH, content(8, a("www", 3), digest_of(8, octets)))
    assert "another content" in world.state["problem"]
    assert world.rdatas(f"www.{ZONE}") == {bytes((192, 0, 2, 1))}

    world.after(REFRESH, content(8, a("www", 2), digest_of(8, octets)))
    assert world.state["problem"] == ""
    assert world.rdatas(f"www.{ZONE}") == {bytes((192, 0, 2, 2))}
    assert world.rdatas(ZONE, zonemd.ZONEMD) == {digest_of(8, octets).rdata}


def test_a_zone_with_a_digest_is_taken_and_served_without_it(world):
    """Which is checked all the same: what is served here may be proxied."""
    for serial, last in ((7, 1), (8, 2)):
        plain = content(serial, a("www", last))
        octets = zonemd.digest(wire(ZONE), [Rr(wire(ZONE), 6, plain.soa_ttl, plain.soa), *plain.records], 1)
        world.after(REFRESH, content(serial, a("www", last), digest_of(serial, octets)))
        assert (world.state["problem"], world.serial) == ("", serial)
        assert world.rdatas(f"www.{ZONE}") == {bytes((192, 0, 2, last))}
        assert world.rdatas(ZONE, zonemd.ZONEMD) == set()

    world.after(REFRESH, content(9, a("www", 3), digest_of(9, octets)))
    assert "another content" in world.state["problem"]


def test_changes_that_lead_to_another_digest_have_the_whole_zone_asked_for(world, api):
    """Which TTLs of two seconds were one is not known of what was there before."""
    api.patch(f"/zones/{world.id}/dnssec", {"dnssec_presigned": True})
    one, two = a("one", 1)._replace(ttl=2), a("two", 1)._replace(ttl=2)
    world.after(0, content(7, one, two))
    changed = content(8, one, two, a("three", 3))
    soa = Rr(wire(ZONE), 6, changed.soa_ttl, changed.soa)
    octets = zonemd.digest(wire(ZONE), [soa, *(changed.records - {one}), one._replace(ttl=1)], 1)
    of_all = content(8, one, two, a("three", 3), digest_of(8, octets))
    told = {True: of_all._replace(of_one_second={one}), False: of_all._replace(from_changes=True)}
    world._secondaries._asking._fetch = lambda peer, apex, serial, present, whole, key: told[whole]

    world.after(REFRESH)

    assert world.state["problem"] == ""
    assert world.rdatas(f"three.{ZONE}") == {bytes((192, 0, 2, 3))}


def digest_of(serial, octets):
    return rr(ZONE, zonemd.ZONEMD, 3600, serial.to_bytes(4, "big") + b"\1\1" + octets)


def test_a_zone_has_no_more_records_than_any_other(world, api):
    quotas = api.platform.quotas
    before = quotas.zone_records
    msgspec.structs.force_setattr(quotas, "zone_records", 2)
    try:
        world.after(0, content(7, a("one", 1), a("two", 2)))
    finally:
        msgspec.structs.force_setattr(quotas, "zone_records", before)

    assert "more than 2 records" in world.state["problem"]
    assert world.zone.lost


def test_force_axfr_asks_for_the_whole_zone_at_once(world, api):
    world.after(0)

    assert api.post(f"/zones/{world.id}/secondary_dns/force_axfr", {}).result == "OK"
    assert world.after(0) == 1
    assert world.asked[-1] == ("primary", 7, True)
    assert world.after(0) == 0


class TestReadOnly:
    def test_records_and_most_settings_are_changed_at_the_primary(self, world, api):
        world.after(0)
        records = f"/zones/{world.id}/dns_records"
        one = next(record for record in api.get(records).result if record["type"] == "A")
        new = {"type": "A", "name": "new", "content": "192.0.2.9"}
        refused = [
            api.post(records, new),
            api.delete(f"{records}/{one['id']}"),
            api.patch(f"{records}/{one['id']}", {"content": "192.0.2.9"}),
            api.patch(f"{records}/{one['id']}", {"proxied": True}),
            api.post(f"{records}/batch", {"posts": [new]}),
            api.patch(f"/zones/{world.id}/dns_settings", {"multi_provider": True}),
            api.patch(f"/zones/{world.id}/dnssec", {"status": "active"}),
            api.patch(f"/zones/{world.id}", {"vanity_name_servers": ["ns1.example.org"]}),
        ]

        assert [9608 in answer.codes for answer in refused] == [True] * len(refused)
        assert world.serial == 7

    def test_no_older_view_sets_what_the_primary_says(self, world, api):
        account, zone = f"/accounts/{CREDENTIALS.account_id}", f"/zones/{world.id}"
        alias = rr(f"alias.{ZONE}", 5, 60, wire(f"www.{ZONE}"))
        world.after(0, content(7, a("www", 1), alias))
        api.post(f"{account}/custom_ns", {"ns_name": "ns1.example.net"})
        on = {"value": "on"}

        refused = [
            api.patch(f"{zone}/settings/cname_flattening", on),
            api.patch(f"{zone}/settings", {"items": [{"id": "cname_flattening", **on}]}),
            api.patch(f"{zone}/dns_settings/use_apex_ns", {"value": True}),
            api.put(f"{zone}/custom_ns", {"enabled": True, "ns_set": 1}),
        ]

        assert [answer.codes for answer in refused] == [[9608]] * len(refused)
        assert (world.serial, world.rdatas(f"alias.{ZONE}", 5)) == (7, {alias.rdata})
        assert api.patch(f"{zone}/settings/cname_flattening", {"value": "off"}).status == 200

    def test_name_servers_that_it_should_not_have_are_taken_back(self, world, api):
        custom = '{"type":"custom.account","ns_set":1}'
        api.store.write(lambda tx: settings.put(tx, world.id, STORED_SET, custom, 0)).result()
        assert api.get(f"/zones/{world.id}/custom_ns").json["enabled"] is True

        assert api.put(f"/zones/{world.id}/custom_ns", {"enabled": False}).status == 200
        assert api.get(f"/zones/{world.id}/custom_ns").json["enabled"] is False
        assert api.put(f"/zones/{world.id}/custom_ns", {"enabled": False}).status == 200

    def test_a_peers_key_is_one_of_the_account_and_stays(self, world, api):
        keys = PEERS.replace("peers", "tsigs")
        key = api.post(keys, {"name": "xfr.example.org"}).result["id"]
        body = {"name": "signed", "ip": "192.0.2.2"}
        assert api.post(PEERS, body | {"tsig_id": "e" * 32}).codes == [9603]

        peer = api.post(PEERS, body | {"tsig_id": key}).result

        assert peer["tsig_id"] == api.get(f"{PEERS}/{peer['id']}").result["tsig_id"] == key
        assert api.delete(f"{keys}/{key}").codes == [1001]
        assert api.put(f"{PEERS}/{peer['id']}", body).result["tsig_id"] is None
        assert api.delete(f"{keys}/{key}").status == 200

    def test_what_cannot_be_signed_is_not_asked_for(self, world, api):
        keys = PEERS.replace("peers", "tsigs")
        key = api.post(keys, {"name": "xfr.example.org"}).result["id"]
        api.put(f"{PEERS}/{world.peer}", {"name": "primary", "ip": "192.0.2.1", "tsig_id": key})
        api.store.write(lambda tx: tx.run("delete from tsig_keys", ())).result(60)

        assert world.after(0) == 0

        assert world.state["problem"] == "primary: the TSIG key that it wants is gone"

    def test_zones_that_no_primary_confirms_are_in_the_health(self, world, api):
        def late():
            return [tuple(one) for one in secondaries.late(api.app.context.barrier, world.now)]

        assert late() == []  # not asked yet
        world.after(0, Unfit("no"))
        assert late() == [(ZONE, "primary: no", 0, False)]
        world.after(60, content(7))
        checked = world.now
        assert late() == []

        world.after(EXPIRE / 2 - 1, Unfit("no"))
        assert late() == []
        world.after(1)
        assert late() == [(ZONE, "primary: no", checked, True)]
        world.after(EXPIRE / 2)
        assert late() == [(ZONE, "primary: no", checked, False)]
        world.after(7_200, content(7))
        assert late() == []

    def test_a_peer_that_zones_need_keeps_an_address(self, world, api):
        before = api.get(f"{PEERS}/{world.peer}").result

        assert api.put(f"{PEERS}/{world.peer}", {"name": "primary"}).codes == [9604]
        assert api.get(f"{PEERS}/{world.peer}").result == before

    def test_a_peer_that_is_corrected_is_asked_at_once(self, world, api):
        world.after(0)
        for _ in range(3):
            world.after(REFRESH, OSError("unreachable"))
        assert world.after(1) == 0

        api.put(f"{PEERS}/{world.peer}", {"name": "renamed", "ip": "192.0.2.1"})
        assert world.after(0) == 0
        api.put(f"{PEERS}/{world.peer}", {"name": "renamed", "ip": "192.0.2.2"})

        assert world.after(0, content(8)) == 1
        assert (world.serial, world.state["problem"]) == (8, "")

    def test_peers_and_incoming_are_checked(self, world, api, zone_id):
        assert api.delete(f"{PEERS}/{world.peer}").codes == [9604]
        assert api.get(f"{PEERS}/{'e' * 32}").codes == [9602]
        for body in (
            {},
            {"name": "x", "ip": "no"},
            {"name": "x", "ip": "224.0.0.1"},
            {"name": "x", "port": 0},
        ):
            assert api.post(PEERS, body).codes == [9603]
        for body in ({}, {"peers": ["none"]}, {"peers": [world.peer], "auto_refresh_seconds": 1}):
            assert api.put(world.incoming, body).codes == [9606]
        assert api.get(f"/zones/{zone_id}/secondary_dns/incoming").codes == [9607]
        assert api.delete(world.incoming).status == 200
        assert api.get(world.incoming).codes == [9605]
        assert api.delete(f"{PEERS}/{world.peer}").status == 200


class TestOverrides:
    @pytest.fixture
    def proxied(self, world, api):
        """A name that is proxied on top of what was transferred."""
        world.after(0, content(7, a("www", 1), a("www", 2), a("other", 3)))
        api.patch(f"/zones/{world.id}/dns_settings", {"secondary_overrides": True})
        records = f"/zones/{world.id}/dns_records"
        one = next(r for r in api.get(records).result if r["name"] == f"www.{ZONE}")
        answer = api.patch(f"{records}/{one['id']}", {"proxied": True})
        assert answer.result["proxied"] is True
        return f"{records}/{one['id']}"

    def test_a_name_is_answered_with_the_edge_and_the_others_as_transferred(self, world, api, proxied):
        edge = {bytes(map(int, one.split("."))) for one in api.platform.edge_addresses if "." in one}

        assert world.rdatas(f"www.{ZONE}") == edge
        assert world.rdatas(f"other.{ZONE}") == {bytes((192, 0, 2, 3))}
        assert world.serial > 7

    def test_it_stays_over_transfers_and_serials_go_on(self, world, api, proxied):
        before, edge = world.serial, world.rdatas(f"www.{ZONE}")

        world.after(REFRESH, content(8, a("www", 9), a("other", 3)))

        assert world.rdatas(f"www.{ZONE}") == edge
        assert world.serial == before + 1 > 8
        shown = api.get(f"/zones/{world.id}/dns_records?name=www.{ZONE}").result
        assert [(one["content"], one["proxied"]) for one in shown] == [("192.0.2.9", True)]
        assert world.state["soa_serial"] == 8

    def test_it_ends_with_the_switch_or_by_itself(self, world, api, proxied):
        settings = f"/zones/{world.id}/dns_settings"
        edge = world.rdatas(f"www.{ZONE}")
        both = {bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))}

        api.patch(settings, {"secondary_overrides": False})
        assert world.rdatas(f"www.{ZONE}") == both
        api.patch(settings, {"secondary_overrides": True})
        assert world.rdatas(f"www.{ZONE}") == edge
        api.patch(proxied, {"proxied": False})
        assert world.rdatas(f"www.{ZONE}") == both


def test_changes_that_do_not_fit_are_asked_for_as_a_whole_zone(world):
    world.after(0)
    assert world.after(REFRESH, Unfit("a change removes a record that is not there")) == 2


def test_a_primary_is_heard_and_nobody_else_and_again_after_what_is_running(world):
    world.after(0)
    world.heard = {("192.0.2.9", ZONE), ("192.0.2.1", "example.com"), ("192.0.2.1", "no.zone")}
    assert world.after(0) == 0

    world.heard = {("192.0.2.1", ZONE)}
    assert world.after(0, content(8, a("www", 2))) == 1
    assert world.serial == 8
    assert world.after(0) == 0


def signature(name, covered, made=b"1"):
    head = struct.pack("!HBBIIIH", covered, 13, 2, 300, 2_000_000_000, 1_000_000_000, 1)
    return rr(name, dnssec.RRSIG, 300, head + wire(ZONE) + made * 64)


def link(name, following):
    return rr(name, dnssec.NSEC, 300, dnssec.nsec(wire(following), [1, 46, 47]))


def signed_link(name, following, made=b"1"):
    return link(name, following), signature(name, dnssec.NSEC, made)


def signed(serial, *records, made=b"1"):
    return content(serial, *records, signature(ZONE, 6, made), signature(ZONE, 2, made))


WWW = f"www.{ZONE}"
APEX_LINK = signed_link(ZONE, WWW)
UNLOADABLE = {
    "not signed, or two": (*APEX_LINK, *signed_link(WWW, ZONE), link(WWW, f"a.{ZONE}")),
    "is not signed": (*APEX_LINK, link(WWW, ZONE)),
    "its apex has no NSEC": (a("www", 1),),
    "hashed in more than 2 ways": (
        *APEX_LINK,
        *(rr(ZONE, dnssec.NSEC3PARAM, 0, bytes((1, 0, 0, 0, 1, salt))) for salt in range(3)),
    ),
    "a salt of 65 octets": (*APEX_LINK, rr(ZONE, dnssec.NSEC3PARAM, 0, bytes((1, 0, 0, 0, 65)) + bytes(65))),
}


class TestSignedElsewhere:
    @pytest.fixture
    def world(self, world, api):
        api.patch(f"/zones/{world.id}/dnssec", {"dnssec_presigned": True})
        return world

    @pytest.mark.parametrize("problem", UNLOADABLE)
    def test_what_no_dns_process_could_load_is_not_taken(self, world, problem):
        world.after(0, signed(7, *UNLOADABLE[problem]))

        assert problem in world.state["problem"]
        assert world.zone.lost

    def test_no_part_of_a_transfer_ends_within_a_name(self, world, monkeypatch):
        monkeypatch.setattr(secondary, "CHANGES_AT_ONCE_MAX", 5)

        def zone(serial, made):
            found = [*signed_link(ZONE, f"n0.{ZONE}", made)]
            for at in range(6):
                name, following = f"n{at}.{ZONE}", f"n{at + 1}.{ZONE}" if at < 5 else ZONE
                found += [a(f"n{at}", 1), signature(name, 1, made), *signed_link(name, following, made)]
            return signed(serial, *found, made=made)

        world.after(0, zone(7, b"1"))
        take, seen = secondary.take, []

        def watched(call, tx, *more):
            end = take(call, tx, *more)
            for at in range(6):
                rrsets = decode_name(tx.newest(world.id, KIND_NAME, wire(f"n{at}.{ZONE}").hex())).rrsets
                signatures = next(one.rdatas for one in rrsets if one.type == dnssec.RRSIG)
                seen.append((len(signatures), len({one[-1] for one in signatures})))
            return end

        monkeypatch.setattr(secondary, "take", watched)
        world.after(REFRESH, zone(8, b"2"))

        assert (world.state["problem"], world.serial) == ("", 8)
        assert set(seen) == {(2, 1)}  # both of one signing, at each moment
        assert len(seen) > 6

    @pytest.mark.parametrize("way", ["undo", "restore"])
    def test_the_way_back_in_its_history_has_it_transferred_again(self, world, api, way):
        path = f"/zones/{world.id}"
        world.after(0, signed(7, a("www", 1), *APEX_LINK))
        api.patch(f"{path}/dnssec", {"dnssec_presigned": False})
        world.after(0, content(8, a("www", 1)))
        assert world.after(1, signed(9, a("www", 1), *APEX_LINK)) == 0

        answer = api.post(f"{path}/history/{2 if way == 'undo' else 1}/{way}", {})

        assert (answer.status, api.get(f"{path}/dnssec").result["dnssec_presigned"]) == (200, True)
        assert world.after(1) == 1
        assert (world.asked[-1], world.state["problem"], world.serial) == (("primary", 8, True), "", 9)

    def test_what_excludes_it_does_not_come_back_beside_it(self, world, api):
        path = f"/zones/{world.id}"
        api.patch(f"{path}/dnssec", {"dnssec_presigned": False})
        api.patch(f"{path}/dns_settings", {"secondary_overrides": True})

        answer = api.post(f"{path}/history/2/undo", {})
        api.patch(f"{path}/dns_settings", {"secondary_overrides": False})
        api.patch(f"{path}/dnssec", {"dnssec_presigned": True})
        other = api.post(f"{path}/history/4/undo", {})

        assert (answer.codes, other.codes) == ([9502], [9502])
        assert "Turn secondary_overrides off first" in answer.json["errors"][0]["message"]

    def test_after_a_restore_it_is_transferred_again_and_keeps_its_serial(self, world, api):
        world.after(0, signed(7, a("www", 1), *APEX_LINK))

        def restore(tx):
            restored.mark(tx, world.now)
            while restored.go_on(world._call(), tx, api.platform):
                pass

        api.store.write(restore).result(60)

        assert world.serial == 7
        assert world.after(1, signed(9, a("www", 2), *APEX_LINK)) == 1
        assert (world.asked[-1], world.serial) == (("primary", 7, True), 9)


def test_a_name_has_no_more_records_of_a_type_than_a_message_can_count(world, monkeypatch):
    monkeypatch.setattr(secondary, "RECORDS_OF_A_TYPE_MAX", 2)
    world.after(0, content(7, a("www", 1), a("www", 2), a("www", 3)))

    assert f"{WWW} has more than 2 records of type 1" in world.state["problem"]


def meanwhile(world, do):
    """Have something done while the next transfer runs."""
    fetch = world._secondaries._asking._fetch

    def then(*asked):
        found = fetch(*asked)
        world._secondaries._asking._fetch = fetch
        world.api.store.write(do).result(60)
        return found

    world._secondaries._asking._fetch = then


@pytest.mark.parametrize("serial", [7, 8])
def test_what_is_asked_for_during_a_transfer_is_not_forgotten(world, serial):
    world.after(0)
    meanwhile(world, lambda tx: secondary.transfer_again(world._call(), tx, world.id))
    world.after(REFRESH, content(serial, a("www", 1)))

    assert world.after(1) == 1
    assert world.asked[-1] == ("primary", serial, True)
    assert world.after(1) == 0


def test_what_is_asked_for_during_an_attempt_in_vain_is_done_at_once(world, api):
    """The operator names another primary while the one before does not answer."""
    world.after(0)
    other = api.post(PEERS, {"name": "other", "ip": "192.0.2.2"}).result["id"]

    def name_another(tx):
        body = secondary.IncomingBody(name="in", peers=[other])
        secondary.put(world._call(), tx, api.platform, world.id, body)

    def in_vain(*asked):
        world.api.store.write(name_another).result(60)
        world._secondaries._asking._fetch = world._fetch
        raise TimeoutError

    world._secondaries._asking._fetch = in_vain
    world.after(REFRESH)
    assert world.state["problem"] == ""
    assert world.after(1, content(8, a("www", 2))) == 1

    assert (world.asked[-1], world.serial) == (("other", 7, False), 8)


def move_to_another_account(world, account_id, zone_ids):
    def move(tx):
        accounts.insert_account(tx, AccountRow(account_id, account_id, "standard", 1, world.now))
        peer = settings.one(tx, CREDENTIALS.account_id, f"{secondary.PEERS}.{world.peer}")
        settings.put(tx, account_id, f"{secondary.PEERS}.{world.peer}", peer.value, world.now)
        for zone_id in zone_ids:
            tx.run("update zones set account_id = ? where id = ?", (account_id, zone_id))
            secondary.refresh_soon(world._call(), tx, zone_id)

    world.now += SECOND  # they are the last ones in line
    world.api.store.write(move).result(60)


def test_a_notice_that_cannot_be_written_is_acted_on_when_it_can(world, monkeypatch):
    world.after(0)

    def refuse(*_):
        raise DiskFull

    with monkeypatch.context() as full:
        full.setattr(secondary, "refresh_each", refuse)
        world.heard = {("192.0.2.1", ZONE)}
        with pytest.raises(DiskFull):
            world.after(1, content(8, a("www", 1)))

    assert (world.after(1), world.serial) == (1, 8)
    assert world.after(1) == 0, "and once"


@pytest.mark.parametrize(("slow_accounts", "transfers"), [(1, 4), (2, 6), (3, 7)])
def test_slow_primaries_of_some_accounts_do_not_hold_up_another_one(world, api, slow_accounts, transfers):
    world.after(0)
    slow = []
    for number in range(secondaries.TRANSFERS_MAX * slow_accounts):
        slow.append(api.post("/zones", {"name": f"slow{number}.test", "type": "secondary"}).result["id"])
        api.post(f"/zones/{slow[-1]}/secondary_dns/incoming", {"name": "in", "peers": [world.peer]})
    for number in range(slow_accounts):
        move_to_another_account(world, f"slow{number}", slow[number::slow_accounts])
    move_to_another_account(world, "other", [world.id])
    asked, waited = threading.Event(), []

    def fetch(peer, apex, *more):
        if apex == wire(ZONE):
            asked.set()
        else:
            waited.append(asked.wait(60))
        raise OSError("nothing")

    world._secondaries._asking._fetch = fetch
    world.after(0)

    assert waited == [True] * transfers


def test_a_zone_of_which_nothing_can_be_written_is_fetched_once_a_pause(world, api, monkeypatch, caplog):
    def refuse(*_):
        raise DiskFull

    with monkeypatch.context() as full:
        full.setattr(secondary, "take", refuse)
        full.setattr(secondary, "failed", refuse)
        assert [world.after(1) for _ in range(int(2.5 * pauses.PAUSE_SECONDS))].count(1) == 2
    assert "the transfer of zone example.org could not be finished" in caplog.text

    world.after(2 * pauses.PAUSE_SECONDS)
    assert world.serial == 7


def pausing(world, monkeypatch, seconds, says=None):
    """Let time pass in which nothing can be written of what a primary gives."""

    def refuse(*_):
        raise DiskFull

    with monkeypatch.context() as full:
        full.setattr(secondary, "take", refuse)
        full.setattr(secondary, "failed", refuse)
        for _ in range(0, int(seconds), pauses.PAUSE_SECONDS):
            world.after(pauses.PAUSE_SECONDS, says)


def test_a_zone_that_is_asked_for_does_not_wait_for_the_end_of_a_pause(world, api, monkeypatch):
    pausing(world, monkeypatch, 3 * pauses.PAUSE_SECONDS_MAX)
    assert world.after(1) == 0

    api.store.write(lambda tx: secondary.refresh_soon(world._call(), tx, world.id)).result(60)

    assert (world.after(1), world.serial) == (1, 7)


def test_a_zone_expires_during_a_pause(world, monkeypatch):
    world.after(0)
    pausing(world, monkeypatch, EXPIRE - pauses.PAUSE_SECONDS, OSError("gone"))
    assert not world.zone.lost

    world.after(pauses.PAUSE_SECONDS)
    assert world.zone.lost


def test_a_zone_whose_settings_cannot_be_read_keeps_no_other_from_its_turn(world, api, caplog):
    broken = api.post("/zones", {"name": "broken.test", "type": "secondary"}).result["id"]
    api.post(f"/zones/{broken}/secondary_dns/incoming", {"name": "in", "peers": [world.peer]})

    def spoil(tx):
        settings.put(tx, broken, secondary.INCOMING, "{", world.now)
        secondary.refresh_soon(world._call(), tx, world.id)

    world.now += SECOND  # the other one is the last one in line
    api.store.write(spoil).result(60)
    world.after(0)

    assert (world.serial, f"the transfer of zone {broken} could not be finished" in caplog.text) == (7, True)


def test_a_signed_transfer_is_not_taken_once_that_is_switched_off(world, api):
    api.patch(f"/zones/{world.id}/dnssec", {"dnssec_presigned": True})
    world.after(0, signed(7, *APEX_LINK))

    def switch_off(tx):
        cases = dnssec_cases.DnssecBody(dnssec_presigned=False)
        dnssec_cases.patch(world._call(), tx, api.platform, world.id, cases)

    meanwhile(world, switch_off)
    world.after(REFRESH, signed(8, a("www", 1), *APEX_LINK))
    assert world.after(1, content(9, a("www", 1))) == 1

    assert (world.state["problem"], world.serial) == ("", 9)
    assert api.store.write(lambda tx: carried.is_there(tx, world.id)).result(60).value is False
