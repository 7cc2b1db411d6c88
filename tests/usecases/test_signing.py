"""Signed zones through their states, on an invented clock: what is served, and when it is signed again."""

import dns.dnssec
import dns.name
import dns.rdatatype
import pytest

from edgestead.dns.journal import serial_of
from edgestead.model import dnssec, names, served
from edgestead.model.refusals.setting import KeysSealed
from edgestead.usecases import restored
from edgestead.usecases.serving import signing as serving
from edgestead.usecases.serving.keys import Seal, in_memory
from edgestead.usecases.zone import signing
from tests.dns.signed import DAY_US, Signed, zone_text
from tests.rest.test_zone_files import form

ZONE = "example.com"
A, SOA = 1, 6
HOUR_US = DAY_US // 24


@pytest.fixture
def signed(tmp_path):
    made = Signed(tmp_path)
    made.zone(ZONE)
    made.add(ZONE, "www", "A", "192.0.2.1")
    yield made
    made.close()


@pytest.fixture
def large(signed, monkeypatch):
    """A zone that is signed in the background, some names at a time."""
    monkeypatch.setattr(signing, "AT_ONCE_RECORDS_MAX", 0)
    monkeypatch.setattr(signing, "SIGNED_AT_ONCE", 3)
    monkeypatch.setattr(signing, "LISTED_AT_ONCE", 4)
    for number in range(10):
        signed.add(ZONE, f"n{number}", "A", "192.0.2.1")
    return signed


def types(signed, name=ZONE, **options):
    reply = signed.asker()(name, "DNSKEY", **options)
    return reply.rcode().name, {dns.rdatatype.to_text(one.rdtype) for one in reply.answer}


def apex_types(signed):
    found = signed.api.store.write(
        lambda tx: tx.newest(signed.ids[ZONE], served.KIND_NAME, names.wire_from_text(ZONE).hex())
    )
    return {rrset.type for rrset in served.decode_name(found.result().value).rrsets}


def ds_of(signed):
    text = signed.shown(ZONE)["ds"].partition(" DS ")[2].split()
    return int(text[0]).to_bytes(2, "big") + bytes((int(text[1]), int(text[2]))) + bytes.fromhex(text[3])


def test_a_small_zone_is_signed_when_it_is_answered(signed):
    shown = signed.set(ZONE, "active").result

    assert shown["status"] == "pending"
    assert types(signed, want_dnssec=True) == ("NOERROR", {"DNSKEY", "RRSIG"})
    assert types(signed) == ("NOERROR", {"DNSKEY"})


def test_what_the_parent_needs_is_what_the_key_says(signed):
    shown = signed.set(ZONE, "active").result
    key = signed.asker()(ZONE, "DNSKEY").answer[0][0]
    ds = dns.dnssec.make_ds(dns.name.from_text(ZONE), key, "SHA256")

    assert shown["ds"] == f"{ZONE}. 3600 IN DS {ds.key_tag} 13 2 {ds.digest.hex().upper()}"
    assert (shown["key_tag"], shown["digest"]) == (dns.dnssec.key_id(key), ds.digest.hex().upper())
    assert (shown["flags"], shown["algorithm"], shown["key_type"]) == (257, "13", "ECDSAP256SHA256")
    assert (shown["digest_type"], shown["digest_algorithm"]) == ("2", "SHA256")
    assert key.to_text().replace(" ", "").endswith(shown["public_key"])


def test_a_large_zone_has_no_key_before_every_name_is_signed(large):
    assert large.set(ZONE, "active").result["ds"] is None
    seen = []
    while large.has_work():
        seen.append((large.state(ZONE), types(large, want_dnssec=True)[1], large.shown(ZONE)["ds"] is None))
        large.work_once()

    assert {state for state, *_ in seen} == {"listing", "signing"}
    assert {(frozenset(found), is_null) for _, found, is_null in seen} == {(frozenset(), True)}
    assert types(large, want_dnssec=True)[1] == {"DNSKEY", "RRSIG"}
    assert large.state(ZONE) == "signed"


def test_nobody_sees_a_signature_or_a_new_serial_while_names_are_signed(large):
    apex = names.wire_from_text(ZONE)
    large.set(ZONE, "active")
    seen = set()
    while large.has_work():
        zone = large.table.view.zones[apex]
        assert zone.settled
        assert " RRSIG " not in zone_text(large.table, ZONE + ".")
        if large.state(ZONE) == "signing":
            seen.add(serial_of(zone.soa_rdata))
        large.work_once()

    assert len(seen) == 1
    assert " RRSIG " in zone_text(large.table, ZONE + ".")
    newest = serial_of(large.table.view.zones[apex].soa_rdata)
    assert large.journal.since(apex, *seen, newest) is None, "a row leads there"


def test_a_small_zone_with_many_names_of_other_zones_is_served_signed_when_all_of_them_are(
    signed, monkeypatch, tmp_path
):
    monkeypatch.setattr(signing, "AT_ONCE_RECORDS_MAX", 2)
    for number in range(8):
        signed.zone(f"n{number}.{ZONE}")
    signed.set(ZONE, "active")

    assert (signed.state(ZONE), types(signed, want_dnssec=True)[1]) == ("signing", set())
    signed.work()
    assert signed.state(ZONE) == "signed"
    signed.verify(ZONE, tmp_path)


@pytest.mark.parametrize("rounds", range(9))
def test_a_change_in_the_middle_of_signing_is_signed_too(large, tmp_path, rounds):
    large.set(ZONE, "active")
    for _ in range(rounds):
        large.work_once()
    large.add(ZONE, "n3a", "A", "192.0.2.1")
    large.add(ZONE, "a", "NS", "ns.example.net")
    large.add(ZONE, "x.a", "A", "192.0.2.1")
    large.work()

    large.verify(ZONE, tmp_path)


def test_the_ds_is_offered_when_caches_have_signatures_and_seen_when_it_is_there(signed):
    signed.set(ZONE, "active")
    assert dnssec.CDS not in apex_types(signed)
    signed.later(DAY_US + 4 * HOUR_US)
    signed.work()
    assert signed.state(ZONE) == "signed"

    signed.later(HOUR_US)
    signed.work()
    assert signed.state(ZONE) == "offered"
    assert {dnssec.CDS, dnssec.CDNSKEY} <= apex_types(signed)
    assert signed.asker()(ZONE, "CDS").answer[0][0].to_wire() == ds_of(signed)

    signed.parent_says(ZONE, b"\0\1\x0d\2" + bytes(32))
    assert signed.shown(ZONE)["status"] == "pending"
    signed.parent_says(ZONE, ds_of(signed))
    assert signed.shown(ZONE)["status"] == "active"
    signed.parent_says(ZONE)
    assert signed.shown(ZONE)["status"] == "pending"


def test_it_ends_two_days_after_the_ds_was_last_there(signed, tmp_path):
    signed.set(ZONE, "active")
    signed.parent_says(ZONE, ds_of(signed))
    ds = ds_of(signed)
    assert signed.set(ZONE, "disabled").result["status"] == "pending-disabled"
    assert signed.asker()(ZONE, "CDS").answer[0][0].to_text() == "0 0 0 00"
    assert signed.asker()(ZONE, "CDNSKEY").answer[0][0].to_text() == "0 3 0 AA=="
    signed.verify(ZONE, tmp_path)

    signed.parent_says(ZONE)
    signed.later(2 * DAY_US - HOUR_US)
    signed.parent_says(ZONE, ds)  # it was a resolver that had not heard of it
    signed.later(2 * HOUR_US)
    signed.parent_says(ZONE)
    assert signed.state(ZONE) == "leaving"
    signed.later(2 * DAY_US)
    signed.parent_says(ZONE)
    signed.work()

    assert signed.state(ZONE) is None
    shown = signed.shown(ZONE)
    assert (shown["status"], shown["ds"], shown["key_tag"]) == ("disabled", None, None)
    assert types(signed, want_dnssec=True) == ("NOERROR", set())
    assert not apex_types(signed) & {dnssec.RRSIG, dnssec.NSEC, dnssec.DNSKEY, dnssec.CDS}
    assert dns.rdatatype.RRSIG not in {
        one.rdtype for one in signed.asker()("www." + ZONE, want_dnssec=True).answer
    }


def test_nothing_is_unsigned_while_nobody_can_say_what_the_parent_has(signed):
    signed.set(ZONE, "active")
    signed.set(ZONE, "disabled")
    signed.later(1000 * DAY_US)
    signed.work()

    assert signed.state(ZONE) == "leaving"


def test_it_ends_also_when_signatures_are_due_meanwhile(large):
    large.set(ZONE, "active")
    large.work()
    large.set(ZONE, "disabled")
    large.parent_says(ZONE)
    large.later(30 * DAY_US)
    large.parent_says(ZONE)
    large.work()

    assert large.state(ZONE) is None


@pytest.mark.parametrize("has_ds", [False, True])
def test_no_ds_is_offered_while_caches_have_answers_from_before_though_signing_was_to_end(signed, has_ds):
    signed.set(ZONE, "active")
    if has_ds:  # somebody was too fast
        signed.parent_says(ZONE, ds_of(signed))
        signed.parent_says(ZONE)
    signed.set(ZONE, "disabled")
    signed.parent_says(ZONE)
    signed.later(DAY_US)
    signed.set(ZONE, "active")
    signed.work()
    assert signed.state(ZONE) == "signed"
    assert dnssec.CDS not in apex_types(signed)

    signed.later(5 * HOUR_US)
    signed.work()
    assert signed.state(ZONE) == "offered"
    signed.set(ZONE, "disabled")
    signed.set(ZONE, "active")
    assert signed.state(ZONE) == "offered"


def test_ending_can_be_taken_back(signed, tmp_path):
    ds = signed.set(ZONE, "active").result["ds"]
    signed.set(ZONE, "disabled")
    shown = signed.set(ZONE, "active").result

    assert (shown["status"], shown["ds"]) == ("pending", ds)
    signed.verify(ZONE, tmp_path)


def test_signing_that_ends_can_begin_again(large, tmp_path):
    large.later(-3 * DAY_US)  # the verifiers' clock is the machine's
    large.set(ZONE, "active")
    large.work()
    large.set(ZONE, "disabled")
    large.parent_says(ZONE)
    large.later(2 * DAY_US)
    large.parent_says(ZONE)
    large.work_once()
    large.work_once()
    assert large.state(ZONE) == "unsigning"
    large.set(ZONE, "active")
    large.work()

    assert large.state(ZONE) == "signed"
    large.verify(ZONE, tmp_path)


def test_disabling_twice_is_refused(signed):
    assert signed.set(ZONE, "disabled").causes == [1001]
    signed.set(ZONE, "active")
    assert signed.set(ZONE, "active").status == 200
    assert signed.set(ZONE, "disabled").status == 200
    assert signed.set(ZONE, "disabled").json["errors"][0]["message"] == "DNSSEC is already disabled"


def test_deleting_ends_it_in_the_same_order(signed):
    signed.set(ZONE, "active")
    answer = signed.api.delete(f"/zones/{signed.ids[ZONE]}/dnssec")

    assert isinstance(answer.result, str)
    assert signed.shown(ZONE)["status"] == "pending-disabled"


def test_for_half_a_year_no_signature_ends_and_few_are_made_at_a_time(signed, tmp_path):
    for number in range(60):
        signed.add(ZONE, f"n{number}", "A", "192.0.2.1")
    signed.set(ZONE, "active")
    busy = 0
    for _ in range(180):
        signed.later(DAY_US)
        busy += signed.work() > 0
        ends = min(signed.signature_ends(ZONE))
        assert ends * 1_000_000 > signed.now_us + 14 * DAY_US
    assert 40 < busy < 120  # neither every day nor all on one


def test_signatures_that_are_due_within_an_hour_are_made_in_one_change(signed, monkeypatch):
    monkeypatch.setattr(serving, "JITTER_SECONDS", 1800)
    for number in range(20):
        signed.add(ZONE, f"n{number}", "A", "192.0.2.1")
    signed.set(ZONE, "active")
    signed.later(14 * DAY_US - 2 * HOUR_US)
    signed.work()
    before = signed.signatures(ZONE)
    busy = 0
    for _ in range(4 * 60):
        signed.later(HOUR_US // 60)
        busy += signed.work() > 0

    assert busy <= 2  # of which hour a signature is, its name says
    after = signed.signatures(ZONE)
    assert [key for key, made in before.items() if key[0] and after[key] == made] == []


def test_a_change_signs_only_what_it_changes(signed):
    for name in ("a", "c", "e"):
        signed.add(ZONE, name, "A", "192.0.2.1")
    signed.set(ZONE, "active")
    before = signed.signatures(ZONE)
    signed.later(HOUR_US)
    signed.add(ZONE, "d", "TXT", '"new"')
    after = signed.signatures(ZONE)

    changed = {key for key, made in after.items() if before.get(key) != made}
    assert changed == {("", SOA), ("c", dnssec.NSEC), ("d", 16), ("d", dnssec.NSEC)}


def test_another_ttl_of_denials_is_signed_at_every_name(signed, tmp_path):
    signed.set(ZONE, "active")
    path = f"/zones/{signed.ids[ZONE]}/dns_settings"
    assert signed.api.patch(path, {"soa": {"min_ttl": 60}}).status == 200
    signed.take()
    signed.work()

    reply = signed.asker()("nope." + ZONE, want_dnssec=True)
    assert {rrset.ttl for rrset in reply.authority} == {60}
    signed.verify(ZONE, tmp_path)


def test_keys_are_sealed_in_the_database_and_never_in_the_feed(signed):
    signed.set(ZONE, "active")
    row = signed.keys(ZONE)[0]
    key = signed.api.platform.seal.open(row.zone_id, row.flags, row.public, row.sealed)
    held = [cell.cell_contents for cell in key.sign.__closure__]
    private = next(one for one in held if hasattr(one, "private_numbers"))
    scalar = private.private_numbers().private_value.to_bytes(32, "big")

    assert scalar not in row.sealed
    assert all(scalar not in (change.doc or b"") for change in signed.api.changes)
    for path in signed.folder.glob("control.db*"):
        assert scalar not in path.read_bytes()
    assert "SigningKey" in repr(key)
    assert scalar.hex() not in repr(key)


def test_with_another_seal_nothing_is_changed_and_the_answer_says_why(signed):
    signed.set(ZONE, "active")
    object.__setattr__(signed.api.platform, "seal", in_memory())
    answer = signed.add(ZONE, "new", "A", "192.0.2.9")

    assert (answer.status, answer.causes) == (503, [1503])
    assert "seal.key" in answer.json["errors"][0]["message"]
    assert signed.asker()("new." + ZONE).rcode().name == "NXDOMAIN"


def test_a_zone_whose_keys_cannot_be_opened_keeps_no_other_one_waiting(signed, tmp_path):
    signed.later(-40 * DAY_US)  # the verifiers' clock is the machine's
    signed.set(ZONE, "active")
    object.__setattr__(signed.api.platform, "seal", in_memory())
    signed.zone("example.net")
    signed.set("example.net", "active")
    before = signed.signatures(ZONE)
    signed.api.store.write(lambda tx: restored.mark(tx, signed.now_us)).result()
    with pytest.raises(KeysSealed):
        signed.api.store.write(lambda tx: restored.go_on(signed.call, tx, signed.api.platform)).result()
    signed.api.store.write(lambda tx: restored.step_over(signed.call, tx, "sealed")).result()
    signed.take()
    for _ in range(40):
        signed.later(DAY_US)
        signed.work()

    assert signed.signatures(ZONE) == before
    signed.verify("example.net", tmp_path)


def test_a_signed_zone_is_exported_without_what_signing_adds_and_imported(signed, tmp_path):
    path = f"/zones/{signed.ids[ZONE]}/dns_records"
    before = signed.api.get(f"{path}/export").body
    signed.set(ZONE, "active")
    signed.parent_says(ZONE, ds_of(signed))
    after = signed.api.get(f"{path}/export").body
    assert without_times(after) == without_times(before)

    sent, headers = form(file=b"new.example.com. 300 IN A 192.0.2.7\n")
    answer = signed.api.post(f"{path}/import", sent, headers=headers)
    signed.take()
    assert (answer.status, answer.result["recs_added"]) == (200, 1)
    signed.verify(ZONE, tmp_path)


def without_times(text):
    return [line for line in text.splitlines() if b"exported on" not in line and b"\tSOA" not in line]


def test_a_key_of_one_zone_does_not_open_as_anothers():
    seal = Seal(lambda: bytes(32))
    new = seal.new_key("one")
    with pytest.raises(KeysSealed):
        seal.open("other", 257, new.public, new.sealed)


def test_a_deleted_zone_leaves_no_key_and_no_name(signed):
    signed.set(ZONE, "active")
    zone_id = signed.ids[ZONE]
    signed.api.delete(f"/zones/{zone_id}")

    assert signed.counts(zone_id) == (0, 0)
