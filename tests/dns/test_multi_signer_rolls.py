"""Keys of two providers that sign one zone (RFC 8901, model 2) roll: nothing that a cache may hold is bogus.

The other provider is a model: two keys at most, each of which the parent is to know and one of which signs
its copy of the zone, and our keys as it copied them last. A resolver may have the keys of one and signatures
of the other.
"""

import base64

import pytest

from edgestead.dns import node, wire
from edgestead.model import dnssec
from edgestead.model.times import six_digits
from edgestead.usecases.serving.rendering import Soa
from edgestead.usecases.zone import waits
from tests.dns.caches import (
    DNSKEY_KEY,
    TTL_SECONDS_MAX,
    ZONE_LAG_SECONDS,
    Bogus,
    Caches,
    History,
    Keys,
)
from tests.dns.signed import DAY_US, Signed
from tests.dns.test_rolls import YEAR_US, Life
from tests.dns.test_signed import APEX, wire_of

IN_TIME_US = DAY_US  # a new key of ours is with the other provider by then
TOO_LATE_US = 3 * DAY_US
STEP_US = 5 * DAY_US  # between the steps of the other provider's roll: caches and followers have the last one


class Shared(Caches):
    """What resolvers may have of either provider."""

    def __init__(self, signed, apex):
        super().__init__(signed, apex)
        self._their_keys = History(TTL_SECONDS_MAX + ZONE_LAG_SECONDS)
        self._their_tags = History(TTL_SECONDS_MAX + ZONE_LAG_SECONDS)

    def others_have(self, keys, tags):
        self._their_keys.is_now(keys, self._signed.now_us)
        self._their_tags.is_now(tags, self._signed.now_us)

    def alive_keys(self, now_us):
        return [*super().alive_keys(now_us), *self._their_keys.alive(now_us)]

    def alive_tags(self, now_us):
        return [*super().alive_tags(now_us), *self._their_tags.alive(now_us)]


class Other:
    """The other provider. Its keys are records of our zone."""

    def __init__(self, life):
        self._life = life
        self._records = {}  # the id of the record by RDATA, the oldest first
        self._copied = frozenset()
        self._moved_us = 0
        self._add()
        self._signing = next(iter(self._records))

    def is_behind(self):
        return self._ours() != self._copied

    def copy(self):
        self._copied = self._ours()

    def roll_on(self):
        """The next step of a roll that never ends: a new key, its use, the old one's end."""
        now_us = self._life.signed.now_us
        newest = list(self._records)[-1]
        if now_us - self._moved_us < STEP_US:
            return
        if len(self._records) == 1:
            self._add()
        elif self._signing != newest and dnssec.ds(wire_of(APEX), newest) in self._life.caches.ds.newest:
            self._signing = newest
        elif self._signing == newest:
            old = next(iter(self._records))
            assert self._life.signed.remove(APEX, self._records.pop(old)).status == 200
        else:
            return  # until the parent has its DS
        self._moved_us = now_us

    def serve(self):
        anchors = frozenset(dnssec.ds(wire_of(APEX), rdata) for rdata in self._records)
        tags = frozenset(map(dnssec.key_tag, [*self._records, *self._copied]))
        self._life.caches.others_have(Keys(anchors, tags), frozenset((dnssec.key_tag(self._signing),)))

    def _add(self):
        public = self._life.random.randbytes(64)
        text = base64.b64encode(public).decode()
        data = {"flags": 257, "protocol": 3, "algorithm": dnssec.ALGORITHM, "public_key": text}
        made = self._life.signed.add(APEX, "@", "DNSKEY", None, data=data)
        assert made.status == 200, made.json
        self._records[dnssec.dnskey(dnssec.FLAGS_SEP, public)] = made.result["id"]

    def _ours(self):
        zone = self._life.signed.table.view.zones[wire_of(APEX)]
        held = node.rrset(zone.names[b""], DNSKEY_KEY)
        return frozenset(rdata for _, _, rdata in wire.records(held[1])) - set(self._records)


class SharedLife(Life):
    """Both sign from the moment on in which the parent knows the keys of both."""

    caches_of = Shared

    def __init__(self, world, copied_after_us):
        super().__init__(world, ends=0)
        self._copied_after_us = copied_after_us
        self.other, self._changed_us = None, None
        path = f"/zones/{self.signed.ids[APEX]}/dnssec"
        assert self.signed.api.patch(path, {"dnssec_multi_signer": True}).status == 200
        other = Other(self)
        while len(self.caches.ds.newest) < 2 or self.signed.state(APEX) != "active":
            self.live(DAY_US)
        other.copy()
        self.live(STEP_US)
        other.copy()
        self.other = other

    def undo(self):
        """Another roll in its place: it could take back the switch that lets the other's keys in."""
        self.roll()

    def step(self):
        if self.other is not None:
            self.other.roll_on()
            if self._left_us() <= 0:
                self.other.copy()
                self._changed_us = None
            self.other.serve()
        super().step()
        if self.other is not None and self.other.is_behind() and self._changed_us is None:
            self._changed_us = self.signed.now_us

    def _pause(self):
        return min(super()._pause(), self._left_us())

    def _left_us(self):
        """Until the other provider copies our keys."""
        if self._changed_us is None:
            return YEAR_US
        return self._changed_us + self._copied_after_us - self.signed.now_us


def test_keys_of_both_roll_and_nothing_is_bogus(new_world):
    life = SharedLife(new_world(1), IN_TIME_US)
    ours = len(life.tags)
    for _ in range(3):
        life.live(YEAR_US)
        life.check_answers()

    assert len(life.tags) > ours + 2, "no key of ours was replaced"


def test_no_key_is_replaced_by_time_while_another_provider_signs(tmp_path):
    signed = Signed(tmp_path)
    signed.later(-400 * DAY_US)
    signed.zone(APEX)
    path = f"/zones/{signed.ids[APEX]}/dnssec"
    body = {"status": "active", "key_layout": "ksk-zsk", "zsk_lifetime_days": 30, "dnssec_multi_signer": True}
    assert signed.api.patch(path, body).status == 200
    keys = signed.shown(APEX)["keys"]
    signed.later(100 * DAY_US)
    signed.work()
    assert signed.shown(APEX)["keys"] == keys

    assert signed.api.post(f"{path}/roll", {"role": "zsk"}).status == 200
    (new,) = (key for key in signed.shown(APEX)["keys"] if key["phase"] == "published")
    assert f"Key {new['key_tag']} is published" in (said := signed.shown(APEX)["next"])
    assert "other providers add its DNSKEY record by" in said
    signed.later(2 * DAY_US)
    signed.work()
    assert [key["phase"] for key in signed.shown(APEX)["keys"] if key["id"] == new["id"]] == ["published"]
    signed.later(DAY_US)
    signed.work()
    assert [key["phase"] for key in signed.shown(APEX)["keys"] if key["id"] == new["id"]] == ["active"]

    assert signed.api.patch(path, {"dnssec_multi_signer": False}).status == 200
    for _ in range(2):  # the old key goes first
        signed.later(50 * DAY_US)
        signed.work()
    assert "published" in [key["phase"] for key in signed.shown(APEX)["keys"]]
    signed.close()


@pytest.mark.parametrize("role", ["zsk", "ksk"])
def test_a_published_key_waits_for_providers_that_come_after_it(tmp_path, role):
    signed = Signed(tmp_path)
    signed.later(-400 * DAY_US)
    signed.zone(APEX)
    path = f"/zones/{signed.ids[APEX]}/dnssec"
    assert signed.api.patch(path, {"status": "active", "key_layout": "ksk-zsk"}).status == 200
    assert signed.api.post(f"{path}/roll", {"role": role}).status == 200

    def phase():
        signed.work()
        return next(key["phase"] for key in signed.shown(APEX)["keys"] if key["id"] == new)

    new = next(key["id"] for key in signed.shown(APEX)["keys"] if key["phase"] == "published")
    signed.later(DAY_US // 24)
    assert signed.api.patch(path, {"dnssec_multi_signer": True}).status == 200
    said = signed.shown(APEX)["next"]
    takes_over_us = signed.now_us + waits.shared_keys_us(Soa())
    assert f"takes over on {six_digits(takes_over_us)[:16].replace('T', ' ')}" in said
    if role == "zsk":
        until = six_digits(signed.now_us + waits.others_us())[:16].replace("T", " ")
        assert f"record by {until}" in said
    signed.later(DAY_US // 2)
    assert phase() == "published"
    assert signed.shown(APEX)["next"] == said
    signed.later(takes_over_us - signed.now_us - DAY_US // 24)
    assert phase() == "published"
    signed.later(DAY_US // 12)
    assert phase() == "active"
    signed.close()


def test_a_key_that_the_other_provider_has_too_late_is_bogus(new_world):
    with pytest.raises(Bogus, match="come from no DNSKEY"):
        SharedLife(new_world(1), TOO_LATE_US).live(3 * YEAR_US)


@pytest.mark.parametrize(
    ("wait", "instead"),
    [
        ("others_us", lambda: 0),
        ("shared_keys_us", lambda soa: waits.others_us() + waits.keys_us(soa)),
    ],
    ids=["the other provider", "the TTL of its keys"],
)
def test_a_key_that_does_not_wait_for_the_other_provider_is_bogus(new_world, monkeypatch, wait, instead):
    monkeypatch.setattr(waits, wait, instead)
    with pytest.raises(Bogus, match="come from no DNSKEY"):
        SharedLife(new_world(1), IN_TIME_US).live(3 * YEAR_US)
