"""Digests that we make of zones (RFC 8976): dnspython and ldns accept each, and Knot follows by them."""

import shutil
import subprocess

import dns.rdatatype
import dns.zone
import pytest

from edgestead.model import names, zonemd
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.serving import digests as serving
from edgestead.usecases.zone import digests
from tests.dns import secondaries as stock_secondaries
from tests.dns.secondaries import secondaries
from tests.dns.signed import SECOND_US, zone_text
from tests.dns.test_signed import APEX
from tests.dns.test_signed_live import SignedPrimary, wait_until_equal

CHANGES, MANY_CHANGES = 25, 200
LDNS = shutil.which("ldns-verify-zone")


@pytest.fixture
def world(new_world):
    made = new_world(5)
    for _ in range(12):
        made.change()
    return made


def switch(world, **switches):
    answer = world.signed.api.patch(f"/zones/{world.signed.ids[APEX]}/dnssec", switches)
    assert answer.status == 200, answer.json
    world.signed.take()
    return answer.result


def served(world):
    return dns.zone.from_text(
        zone_text(world.signed.table, f"{APEX}."), origin=f"{APEX}.", relativize=False, check_origin=False
    )


def digest_of(world):
    """Whether it has a digest; raises where that is not of its content and serial."""
    zone = served(world)
    if not zone.get_rdataset(f"{APEX}.", "ZONEMD"):
        return False
    zone.verify_digest()
    (made,) = zone.find_rdataset(f"{APEX}.", "ZONEMD")
    return made.serial == zone.find_rdataset(f"{APEX}.", "SOA")[0].serial


def ldns(world, folder):
    """ldns wants a digest, and of a signed zone its signature."""
    if LDNS is None:
        pytest.skip("NOT VERIFIED BY ldns-verify-zone: apt-get install ldnsutils")
    (folder / "zone").write_text(zone_text(world.signed.table, f"{APEX}."))
    found = subprocess.run([LDNS, "-Z", folder / "zone"], capture_output=True, text=True, timeout=300)
    return found.returncode == 0, found.stdout + found.stderr


def make_due(world):
    """One round of the background; returns how many digests it made or put off."""
    store, call = world.signed.api.store, world.signed.call
    due = store.read(lambda reader: digests.due(reader, call.now_us))
    for zone_id in due:
        found = store.read(lambda reader, zone_id=zone_id: digests.read(reader, zone_id))
        store.write(
            lambda tx, zone_id=zone_id, found=found: digests.finish(
                call, tx, world.signed.api.platform, zone_id, found
            )
        ).result()
    world.signed.take()
    return len(due)


def live(world, folder, changes):
    for number in range(changes):
        world.change()
        assert digest_of(world), zone_text(world.signed.table, f"{APEX}.")
        if number % 10 == 0 and LDNS:
            is_good, said = ldns(world, folder)
            assert is_good, f"{said}\n{zone_text(world.signed.table, f'{APEX}.')}"


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("is_signed", [False, True], ids=["unsigned", "signed"])
def test_each_serial_has_its_digest(new_world, tmp_path, is_signed, seed):
    world = new_world(seed)
    assert switch(world, zonemd=True)["zonemd"] is True
    if is_signed:
        switch(world, status="active")
    live(world, tmp_path, CHANGES)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 200))
def test_each_serial_of_many_zones_has_its_digest(new_world, tmp_path, seed):
    world = new_world(seed)
    switch(world, zonemd=True)
    live(world, tmp_path, MANY_CHANGES)
    switch(world, status="active")
    live(world, tmp_path, MANY_CHANGES)


def test_it_stays_while_signatures_are_renewed_and_keys_roll(world):
    switch(world, zonemd=True, status="active", key_layout="ksk-zsk", zsk_lifetime_days=30)
    for _ in range(60):
        world.signed.later(86_400 * SECOND_US)
        world.signed.work()
        assert digest_of(world)


def test_ldns_finds_another_content(world, tmp_path):
    switch(world, zonemd=True)
    world.signed.add(APEX, "damaged", "A", "192.0.2.77")
    assert ldns(world, tmp_path)[0]
    path = tmp_path / "zone"
    path.write_text(path.read_text().replace("192.0.2.77", "192.0.2.78"))
    found = subprocess.run([LDNS, "-Z", path], capture_output=True, text=True, timeout=300)
    assert found.returncode != 0
    assert "matching the zone data" in found.stdout + found.stderr


def test_a_change_without_effect_makes_none_and_the_switch_takes_it_away(world):
    switch(world, zonemd=True)
    before = zone_text(world.signed.table, f"{APEX}.")
    made = world.signed.add(APEX, "www", "A", "192.0.2.1")
    world.signed.remove(APEX, made.result["id"])
    assert digest_of(world)
    path = f"/zones/{world.signed.ids[APEX]}/dns_records"
    made = world.signed.add(APEX, "www", "A", "192.0.2.1").result
    between = zone_text(world.signed.table, f"{APEX}.")
    assert world.signed.api.patch(f"{path}/{made['id']}", {"comment": "x"}).status == 200
    world.signed.take()
    assert zone_text(world.signed.table, f"{APEX}.") == between != before

    assert switch(world, zonemd=False)["zonemd"] is False
    assert " ZONEMD " not in zone_text(world.signed.table, f"{APEX}.")


@pytest.fixture
def large(world, monkeypatch):
    monkeypatch.setattr(serving, "AT_ONCE_RECORDS_MAX", -1)  # the random one may have none
    return world


@pytest.mark.parametrize("is_signed", [False, True], ids=["unsigned", "signed"])
def test_a_large_zone_has_one_again_when_it_is_quiet(large, tmp_path, is_signed):
    switch(large, zonemd=True)
    if is_signed:
        switch(large, status="active")
    for _ in range(5):
        assert not digest_of(large)
        assert not make_due(large)
        large.signed.later((serving.QUIET_SECONDS + 1) * SECOND_US)
        assert make_due(large) == 1
        assert digest_of(large)
        assert not make_due(large), "and no further one"
        large.signed.later(60 * SECOND_US)
        before = zone_text(large.signed.table, f"{APEX}.")
        while zone_text(large.signed.table, f"{APEX}.") == before:
            large.change()


def test_a_change_between_reading_and_serving_puts_it_off(large):
    switch(large, zonemd=True)
    large.signed.later((serving.QUIET_SECONDS + 1) * SECOND_US)
    zone_id, store, platform = large.signed.ids[APEX], large.signed.api.store, large.signed.api.platform
    found = store.read(lambda reader: digests.read(reader, zone_id))
    large.signed.add(APEX, "meanwhile", "A", "192.0.2.1")
    store.write(lambda tx: digests.finish(large.signed.call, tx, platform, zone_id, found)).result()
    large.signed.take()
    assert not digest_of(large)
    large.signed.later((serving.QUIET_SECONDS + 1) * SECOND_US)
    make_due(large)
    assert digest_of(large)


@pytest.mark.parametrize("end", ["deleted", "switched off", "too large"])
def test_what_waits_for_one_may_end_before(large, monkeypatch, end):
    switch(large, zonemd=True)
    large.signed.later((serving.QUIET_SECONDS + 1) * SECOND_US)
    if end == "deleted":
        large.signed.api.delete(f"/zones/{large.signed.ids[APEX]}")
    elif end == "switched off":
        switch(large, zonemd=False)
    else:
        monkeypatch.setattr(serving, "OCTETS_MAX", 100)
    make_due(large)
    assert not make_due(large)


def test_a_zone_that_is_kept_elsewhere_has_none_of_ours(world):
    body = {"name": "elsewhere.test", "type": "secondary"}
    made = world.signed.api.post("/zones", body).result
    assert world.signed.api.patch(f"/zones/{made['id']}/dnssec", {"zonemd": True}).status == 400
    read = world.signed.api.store.read(lambda reader: digests.due(reader, 1 << 62))
    assert made["id"] not in read


def test_knot_follows_by_our_digests_alone(world, tmp_path, monkeypatch):
    if not stock_secondaries.BINARIES["Knot"]:
        pytest.skip("KNOT IS NOT INSTALLED: nobody wants our digests (apt-get install knot)")
    form = stock_secondaries.FORMS["Knot"]
    head = form.head.replace("zonefile-sync: -1", "zonefile-sync: -1\n    zonemd-verify: on")
    assert head != form.head
    monkeypatch.setitem(stock_secondaries.FORMS, "Knot", form._replace(head=head))
    knot = {"Knot": stock_secondaries.BINARIES["Knot"]}
    switch(world, zonemd=True, status="active")
    with (
        SignedPrimary(world).running() as primary,
        secondaries(tmp_path, primary.port, (f"{APEX}.",), knot) as followers,
    ):
        primary.notify([(follower.host, follower.port) for follower in followers])
        for _ in range(20):
            primary.change(world.change)
        ours = wait_until_equal(primary, followers, f"{APEX}.")
        primary.change(lambda: world.signed.add(APEX, "one-more", "A", "192.0.2.9"))
        ours = wait_until_equal(primary, followers, f"{APEX}.")
    assert any("zonemd" in line.lower() for line in ours), ours[:5]


def test_the_octets_of_names_are_those_of_the_whole_digest():
    """What is made name by name is what is judged of a whole transfer."""
    apex = names.wire_from_text("zone.test")
    soa = (apex, 6, 60, b"\0\0" + (7).to_bytes(4, "big") + bytes(16))
    rrsets = {
        apex: [(2, 60, (b"\2NS\7example\0",))],
        b"\1b" + apex: [(16, 5, (b"\1z", b"\1a", b"\1a"))],
        b"\1a\1b" + apex: [(5, 1, (b"\3WWW\0",))],
        b"\1c" + apex: [(1, 60, (b"abcd",)), (15, 9, (b"\0\1\1A\0", b"\0\1\1a\0"))],
    }
    records = [
        (owner, type_, ttl, one)
        for owner, found in rrsets.items()
        for type_, ttl, rdatas in found
        for one in rdatas
    ]
    parts = [zonemd.name_octets(apex, [(6, 60, (soa[3],)), *rrsets.pop(apex)])]
    parts += [zonemd.name_octets(owner, found) for owner, found in rrsets.items()]
    assert zonemd.made(parts) == zonemd.digest(apex, [soa, *records], zonemd.MADE_HASH)
    assert dns.rdatatype.ZONEMD == zonemd.ZONEMD


def test_a_name_that_is_rendered_again_as_it_was_makes_no_serial(world):
    """Of which the apex has types behind ZONEMD's place."""
    caa = {"flags": 0, "tag": "issue", "value": "ca.test"}
    assert world.signed.add(APEX, "@", "CAA", None, data=caa).status == 200
    switch(world, zonemd=True)
    before = served(world)
    api, zone_id = world.signed.api, world.signed.ids[APEX]

    def again(tx):
        edit = ZoneEdit(world.signed.call, tx, api.platform, zone_id)
        edit.refresh((f"nothing.{APEX}",))
        edit.finish()

    api.store.write(again).result()
    world.signed.take()
    assert served(world).to_text() == before.to_text()
