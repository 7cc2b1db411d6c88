"""Rolls of a signed zone's keys, step by step: what is served, what the operator is told, what holds them."""

import pytest

from edgestead.model import dnssec
from edgestead.tables import signing as rows
from edgestead.usecases.serving.keys import in_memory
from tests.dns.signed import DAY_US, Signed

ZONE = "example.com"
HOUR_US = DAY_US // 24
TAKES_OVER_US = 6 * HOUR_US  # with the SOA as it is by default
MINUTE_US = HOUR_US // 60


@pytest.fixture
def signed(tmp_path):
    made = Signed(tmp_path)
    made.later(-12 * DAY_US)  # the verifiers' clock is the machine's
    made.zone(ZONE)
    for name in ("www", "a", "x.y"):
        made.add(ZONE, name, "A", "192.0.2.1")
    yield made
    made.close()


def secure(signed, **settings):
    """Have the zone signed, and its DS at the parent."""
    answer = patch(signed, status="active", **settings)
    assert answer.status == 200, answer.json
    signed.later(2 * DAY_US)
    signed.work()
    signed.parent_says(ZONE, ds_of(signed))
    assert signed.shown(ZONE)["status"] == "active"


def patch(signed, **body):
    answer = signed.api.patch(f"/zones/{signed.ids[ZONE]}/dnssec", body)
    signed.take()
    return answer


def roll(signed, **body):
    answer = signed.api.post(f"/zones/{signed.ids[ZONE]}/dnssec/roll", body)
    signed.take()
    return answer


def pass_(signed, us):
    signed.later(us)
    signed.work()


def phases(signed):
    return [(key["role"], key["phase"]) for key in signed.shown(ZONE)["keys"]]


def tags(signed):
    return [key["key_tag"] for key in signed.shown(ZONE)["keys"]]


def ds_of(signed):
    tag, algorithm, kind, digest = signed.shown(ZONE)["ds"].partition(" DS ")[2].split()
    return int(tag).to_bytes(2, "big") + bytes((int(algorithm), int(kind))) + bytes.fromhex(digest)


def signers(signed, kind):
    return {
        dnssec.tag_of_rrsig(rdata)
        for (_, covered), rdata in signed.signatures(ZONE).items()
        if covered == kind
    }


def cds(signed):
    return {one.key_tag for one in signed.asker()(ZONE, "CDS").answer[0]}


def test_a_csk_is_replaced_when_the_parent_has_its_successor(signed, tmp_path):
    secure(signed)
    old_ds, (old,) = ds_of(signed), tags(signed)
    assert roll(signed).status == 200
    new = tags(signed)[1]
    assert phases(signed) == [("csk", "active"), ("csk", "published")]
    assert f"Key {new} is published and takes over on 20" in signed.shown(ZONE)["next"]
    assert (signed.shown(ZONE)["key_tag"], cds(signed)) == (old, {old})

    pass_(signed, TAKES_OVER_US)
    assert phases(signed) == [("csk", "retiring"), ("csk", "active")]
    assert f"Key {new} replaces key {old}: give its DS to the registrar" in signed.shown(ZONE)["next"]
    assert (signed.shown(ZONE)["key_tag"], cds(signed)) == (new, {new})
    assert signers(signed, 1) == {new}
    signed.verify(ZONE, tmp_path)

    signed.parent_says(ZONE, old_ds)
    assert phases(signed)[0] == ("csk", "retiring")
    signed.parent_says(ZONE, ds_of(signed))
    assert f"Have the registrar remove the DS of key {old}" in signed.shown(ZONE)["next"]
    pass_(signed, 2 * DAY_US)
    assert len(phases(signed)) == 2, "it goes only when the parent was asked"
    signed.parent_says(ZONE, ds_of(signed))

    assert (phases(signed), tags(signed)) == ([("csk", "active")], [new])
    assert signed.shown(ZONE)["next"] == "Nothing is to be done: the zone is secure."
    signed.verify(ZONE, tmp_path)


def test_a_backup_from_before_a_roll_is_told_to_be_bogus(signed):
    """What is brought back has the old key alone, and the parent only the DS of the new one."""
    secure(signed)
    ours, others = ds_of(signed), b"\0\1\x0d\2" + bytes(32)
    assert signed.shown(ZONE)["is_bogus"] is False
    for _ in range(2):
        signed.parent_says(ZONE, others)
        shown = signed.shown(ZONE)
        assert (shown["status"], shown["is_bogus"]) == ("pending", True)
        assert "for forged: the parent has had a DS since 20" in shown["next"]
    signed.parent_says(ZONE)
    assert signed.shown(ZONE)["is_bogus"] is False
    assert signed.shown(ZONE)["next"].startswith("Give the DS to the registrar")
    signed.parent_says(ZONE, others)
    assert signed.shown(ZONE)["is_bogus"] is True
    signed.parent_says(ZONE, others, ours)

    assert (signed.shown(ZONE)["status"], signed.shown(ZONE)["is_bogus"]) == ("active", False)


def test_an_old_key_stays_as_long_as_the_parent_wants_it(signed):
    secure(signed)
    old_ds = ds_of(signed)
    roll(signed)
    pass_(signed, TAKES_OVER_US)
    signed.parent_says(ZONE, ds_of(signed))
    assert phases(signed)[0] == ("csk", "retired")
    signed.parent_says(ZONE, old_ds)
    assert phases(signed)[0] == ("csk", "retiring")
    for _ in range(20):
        pass_(signed, 30 * DAY_US)
        signed.parent_says(ZONE, old_ds)

    assert phases(signed) == [("csk", "retiring"), ("csk", "active")]
    assert signed.shown(ZONE)["status"] == "active"


def test_a_zsk_is_replaced_by_time_and_without_the_parent(signed, tmp_path):
    secure(signed, key_layout="ksk-zsk", zsk_lifetime_days=3)
    ksk, zsk = tags(signed)
    assert signers(signed, dnssec.DNSKEY) == signers(signed, dnssec.CDS) == {ksk}
    assert signers(signed, 1) == {zsk}
    zone_keys = signed.api.get(f"/zones/{signed.ids[ZONE]}/dnssec/zsk").result
    assert [(key["key_tag"], key["flags"], key["ds"]) for key in zone_keys] == [(zsk, 256, None)]

    pass_(signed, DAY_US + MINUTE_US)
    assert phases(signed)[2] == ("zsk", "published")
    pass_(signed, TAKES_OVER_US)
    pass_(signed, MINUTE_US)
    assert phases(signed) == [("ksk", "active"), ("zsk", "retired"), ("zsk", "active")]
    assert "Nothing is to be done" in signed.shown(ZONE)["next"]
    assert zsk not in signers(signed, 1)
    signed.verify(ZONE, tmp_path)
    pass_(signed, 2 * DAY_US)

    assert phases(signed) == [("ksk", "active"), ("zsk", "active")]
    assert tags(signed)[0] == ksk
    signed.verify(ZONE, tmp_path)


def test_a_key_that_the_parent_knows_is_replaced_by_time_only_when_asked_for(signed):
    secure(signed)
    pass_(signed, 1_000 * DAY_US)
    assert phases(signed) == [("csk", "active")]
    patch(signed, ksk_lifetime_days=365)
    signed.work()

    assert phases(signed) == [("csk", "active"), ("csk", "published")]


def test_another_layout_replaces_every_key(signed, tmp_path):
    secure(signed)
    patch(signed, key_layout="ksk-zsk")
    signed.work()
    assert phases(signed) == [("csk", "active"), ("ksk", "published"), ("zsk", "published")]
    pass_(signed, TAKES_OVER_US)
    assert phases(signed) == [("csk", "retiring"), ("ksk", "active"), ("zsk", "active")]
    signed.verify(ZONE, tmp_path)
    signed.parent_says(ZONE, ds_of(signed))
    pass_(signed, 2 * DAY_US)
    signed.parent_says(ZONE, ds_of(signed))

    assert phases(signed) == [("ksk", "active"), ("zsk", "active")]
    signed.verify(ZONE, tmp_path)


@pytest.mark.parametrize("role", ["ksk", "zsk", None])
def test_a_roll_right_after_another_layout_replaces_every_key(signed, tmp_path, role):
    secure(signed)
    patch(signed, key_layout="ksk-zsk")
    assert roll(signed, **({"role": role} if role else {})).status == 200
    assert phases(signed) == [("csk", "active"), ("ksk", "published"), ("zsk", "published")]
    pass_(signed, TAKES_OVER_US)
    signed.parent_says(ZONE, ds_of(signed))
    pass_(signed, 2 * DAY_US)
    signed.parent_says(ZONE, ds_of(signed))

    assert phases(signed) == [("ksk", "active"), ("zsk", "active")]
    signed.verify(ZONE, tmp_path)


def test_one_key_of_a_layout_that_is_on_its_way_back_is_not_replaced_alone(signed):
    secure(signed, key_layout="ksk-zsk")
    patch(signed, key_layout="csk")
    signed.work()
    patch(signed, key_layout="ksk-zsk")
    for _ in range(3):
        pass_(signed, 2 * DAY_US)
    assert phases(signed) == [("ksk", "retiring"), ("csk", "active")]

    assert "already" in roll(signed, role="zsk").json["errors"][0]["message"]


def test_keys_that_would_leave_the_zone_without_one_do_not_take_over(signed, tmp_path):
    secure(signed)
    patch(signed, key_layout="ksk-zsk")
    signed.work()
    (ksk,) = (row for row in signed.keys(ZONE) if row.role == "ksk")
    signed.api.store.write(lambda tx: rows.remove_key(tx, ksk.id)).result()
    pass_(signed, TAKES_OVER_US)

    assert phases(signed) == [("csk", "active"), ("ksk", "published"), ("zsk", "published")]
    signed.verify(ZONE, tmp_path)


def test_keys_stay_while_signing_ends(signed):
    secure(signed)
    roll(signed)
    signed.set(ZONE, "disabled")
    pass_(signed, 30 * DAY_US)
    assert phases(signed) == [("csk", "active"), ("csk", "published")]
    signed.set(ZONE, "active")
    pass_(signed, HOUR_US)

    assert phases(signed) == [("csk", "retiring"), ("csk", "active")]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"key_layout": "zsk"}, "key_layout"),
        ({"ksk_lifetime_days": -1}, "ksk_lifetime_days"),
        ({"zsk_lifetime_days": 3_651}, "zsk_lifetime_days"),
    ],
)
def test_settings_of_keys_have_limits(signed, body, why):
    answer = patch(signed, **body)

    assert (answer.status, answer.causes) == (400, [1001])
    assert why in answer.json["errors"][0]["message"]


def test_a_roll_is_refused_while_one_goes_on_or_there_is_no_such_key(signed):
    assert roll(signed).causes == [1001]
    secure(signed)
    assert "no zsk" in roll(signed, role="zsk").json["errors"][0]["message"]
    assert roll(signed).status == 200
    assert "already" in roll(signed).json["errors"][0]["message"]


def test_no_key_is_made_under_another_secret_than_the_old_ones(signed):
    secure(signed, ksk_lifetime_days=1)
    object.__setattr__(signed.api.platform, "seal", in_memory())
    pass_(signed, 7 * DAY_US)

    assert phases(signed) == [("csk", "active")]
    assert roll(signed).status == 503
