"""Signed zones in the background: one that nothing can be done for keeps no other one waiting."""

import asyncio

import pytest

from edgestead.model import names
from edgestead.server.control import digests as rounds
from edgestead.server.control import parents
from edgestead.server.control.digests import Digests
from edgestead.server.control.parents import Parents
from edgestead.server.control.signatures import POLL_SECONDS, Signatures
from edgestead.tables import signing as rows
from edgestead.testing.simulation import simulate
from edgestead.usecases.serving import digests as serving
from edgestead.usecases.serving import keyset
from edgestead.usecases.zone import digests, signing, zones
from tests.dns.signed import DAY_US, Signed, zone_text

BROKEN, OTHER = "example.com", "example.net"
ROUNDS_MAX = 100


class Data:
    """The store as control's loop has it."""

    def __init__(self, store):
        self.read = store.read
        self._store = store

    async def read_long(self, fn):
        return self._store.read(fn)

    async def write(self, fn):
        return self._store.write(fn).result().value


@pytest.fixture
def signed(tmp_path):
    made = Signed(tmp_path)
    for name in (BROKEN, OTHER):
        made.zone(name)
        made.add(name, "www", "A", "192.0.2.1")
    yield made
    made.close()


def sign(signed, zone, **settings):
    path = f"/zones/{signed.ids[zone]}/dnssec"
    assert signed.api.patch(path, {"status": "active", **settings}).status == 200
    signed.take()


def lose_zsk(signed):
    """No key is left that signs the zone's records: whatever is done for the zone fails."""
    (zsk,) = (row for row in signed.keys(BROKEN) if row.role == keyset.ZSK)
    signed.api.store.write(lambda tx: rows.remove_key(tx, zsk.id)).result()


def pass_days(signed, days):
    signatures = Signatures(Data(signed.api.store), signed.api.platform, lambda: signed.call)
    for _ in range(days):
        signed.later(DAY_US)
        assert any(asyncio.run(signatures.poll()) == POLL_SECONDS for _ in range(ROUNDS_MAX)), (
            "the work never ends"
        )
        signed.take()


def ds_of(signed, zone):
    return keyset.digests(names.wire_from_text(zone), signed.keys(zone))


def test_a_zone_that_cannot_be_signed_keeps_no_other_one_waiting(signed, caplog):
    sign(signed, BROKEN, key_layout="ksk-zsk")
    sign(signed, OTHER)
    signed.api.patch(f"/zones/{signed.ids[BROKEN]}/dnssec", {"key_layout": "csk"})
    lose_zsk(signed)
    pass_days(signed, 40)

    assert signed.state(BROKEN) == "signed"
    assert [(key.role, key.phase) for key in signed.keys(BROKEN)] == [("ksk", "active")], "half a step stayed"
    assert signed.state(OTHER) == "offered"
    assert min(signed.signature_ends(OTHER)) * 1_000_000 > signed.now_us + 14 * DAY_US
    for kind in ("keys", "names", "state"):
        assert f"{kind} of zone {signed.ids[BROKEN]} wait" in caplog.text


def test_what_is_left_of_a_deleted_zone_keeps_no_other_one_waiting(signed, monkeypatch):
    """Who deleted it was killed before the sweep."""
    monkeypatch.setattr(signing, "SIGNED_AT_ONCE", 1)
    for zone in (BROKEN, OTHER):
        sign(signed, zone)
    gone = signed.ids[BROKEN]
    signed.api.store.write(lambda tx: zones.delete(signed.call, tx, signed.api.platform, gone)).result()
    signed.take()
    assert signed.counts(gone) == (0, 2)

    pass_days(signed, 40)

    assert signed.counts(gone) == (0, 0)
    assert min(signed.signature_ends(OTHER)) * 1_000_000 > signed.now_us + 14 * DAY_US


def fail(*_):
    raise RuntimeError("the disk of the machine is on fire")


def test_a_zone_that_was_never_signed_in_whole_is_not_served_as_if_it_were(signed, monkeypatch):
    monkeypatch.setattr(signing, "AT_ONCE_RECORDS_MAX", 0)
    sign(signed, BROKEN)
    with monkeypatch.context() as broken:
        broken.setattr(signing, "_sign", fail)
        pass_days(signed, 3)
    assert signed.state(BROKEN) == "signing"
    pass_days(signed, 3)

    assert signed.state(BROKEN) == "offered"
    assert {name for name, _ in signed.signatures(BROKEN)} == {"", "www"}


def test_a_zone_that_cannot_follow_its_parent_keeps_no_other_one_waiting(signed, monkeypatch, caplog):
    monkeypatch.setattr(parents, "PER_POLL_MAX", 1)
    for zone in (BROKEN, OTHER):
        sign(signed, zone, key_layout="ksk-zsk")
    pass_days(signed, 2)
    signed.parent_says(BROKEN, *ds_of(signed, BROKEN))
    lose_zsk(signed)
    asked = []

    def resolver():
        async def ask(name):
            asked.append(name)
            return ds_of(signed, OTHER) if name == OTHER else ()

        return ask

    async def poll():
        following = Parents(Data(signed.api.store), signed.api.platform, lambda: signed.call, resolver)
        for _ in range(3):
            await following.poll()

    asyncio.run(poll())

    assert sorted(asked) == [BROKEN, OTHER]
    assert (signed.state(BROKEN), signed.state(OTHER)) == ("active", "active")
    assert f"zone {signed.ids[BROKEN]} does not follow its parent" in caplog.text


def test_a_zone_that_cannot_be_read_keeps_no_other_one_without_its_digest(signed, monkeypatch, caplog):
    monkeypatch.setattr(serving, "AT_ONCE_RECORDS_MAX", -1)
    for zone in (BROKEN, OTHER):
        assert signed.api.patch(f"/zones/{signed.ids[zone]}/dnssec", {"zonemd": True}).status == 200
    signed.take()
    read = digests.read

    def fail_for_one(reader, zone_id):
        return fail() if zone_id == signed.ids[BROKEN] else read(reader, zone_id)

    def poll(seconds):
        signed.later(seconds * 1_000_000)
        making = Digests(Data(signed.api.store), signed.api.platform, lambda: signed.call)
        asyncio.run(making.poll())
        signed.take()
        return [" ZONEMD " in zone_text(signed.table, f"{zone}.") for zone in (BROKEN, OTHER)]

    with monkeypatch.context() as broken:
        broken.setattr(digests, "read", fail_for_one)
        assert poll(serving.QUIET_SECONDS + 1) == [False, True]
    assert f"the digest of zone {signed.ids[BROKEN]} waits" in caplog.text
    assert poll(rounds.LATER_SECONDS + 1) == [True, True]


def test_more_zones_than_are_asked_for_in_a_minute_have_their_parents_asked_in_turn(signed, monkeypatch):
    zones = [BROKEN, OTHER, *(f"{number}.example.org" for number in range(4))]
    monkeypatch.setattr(parents, "PER_POLL_MAX", 1)
    monkeypatch.setattr(parents, "WAITING_SECONDS", 2 * parents.POLL_SECONDS)
    for zone in zones[2:]:
        signed.zone(zone)
    for zone in zones:
        sign(signed, zone)
    asked = []

    def resolver():
        async def ask(name):
            asked.append(name)
            return ()

        return ask

    async def poll(_):
        following = Parents(Data(signed.api.store), signed.api.platform, lambda: signed.call, resolver)
        for _ in range(2 * len(zones)):
            await following.poll()
            await asyncio.sleep(parents.POLL_SECONDS)

    simulate(poll, seed=1)

    assert sorted(asked) == sorted(2 * zones)
