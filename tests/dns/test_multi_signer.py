"""Two providers sign one zone, each with a key of its own (RFC 8901, model 2): us, and BIND."""

import base64
import shutil

import dns.dnssec
import dns.name
import dns.rdata
import dns.rdatatype
import dns.zone
import pytest

from tests.dns.signed import Signed, plain, signed_by_bind, zone_text

ZONE = "example.com"
APEX = dns.name.from_text(ZONE)
WWW = dns.name.from_text("www." + ZONE)


@pytest.fixture
def providers(tmp_path):
    """Our zone, and BIND's signed copy of it; each has the other's key."""
    if not shutil.which("dnssec-signzone"):
        pytest.skip("BIND'S SIGNER IS NOT INSTALLED: nobody signs with us (apt-get install bind9-utils)")
    signed = Signed(tmp_path)
    signed.zone(ZONE)
    signed.add(ZONE, "www", "A", "192.0.2.1")
    path = f"/zones/{signed.ids[ZONE]}/dnssec"
    body = {"status": "active", "dnssec_multi_signer": True}
    assert signed.api.patch(path, body).status == 200
    signed.take()
    lines = plain(zone_text(signed.table, ZONE + "."))
    signed_by_bind(lines, ZONE + ".", tmp_path)  # makes its key
    (file,) = tmp_path.glob("K*.key")
    theirs = dns.rdata.from_text("IN", "DNSKEY", file.read_text().splitlines()[-1].partition("DNSKEY ")[2])
    data = {
        "flags": theirs.flags,
        "protocol": theirs.protocol,
        "algorithm": int(theirs.algorithm),
        "public_key": base64.b64encode(theirs.key).decode(),
    }
    assert signed.add(ZONE, "@", "DNSKEY", None, data=data).status == 200
    ours = next(key for key in signed.asker()(ZONE, "DNSKEY").answer[0] if key != theirs)
    copy = signed_by_bind([*lines, f"{ZONE}. 3600 IN DNSKEY {ours}\n"], ZONE + ".", tmp_path)
    yield signed, dns.zone.from_text(copy, ZONE, relativize=False), ours, theirs
    signed.close()


def test_answers_of_one_are_believed_with_the_keys_of_the_other(providers):
    signed, copy, *_ = providers
    our_keys = signed.asker()(ZONE, "DNSKEY", want_dnssec=True, payload=4096).answer
    our_answer = signed.asker()(WWW, "A", want_dnssec=True).answer
    their_keys = [copy.get_rrset(APEX, "DNSKEY"), copy.get_rrset(APEX, "RRSIG", covers="DNSKEY")]
    their_answer = [copy.get_rrset(WWW, "A"), copy.get_rrset(WWW, "RRSIG", covers="A")]

    for keys, signatures in (our_keys, their_keys):
        dns.dnssec.validate(keys, signatures, {APEX: keys})
        for answer, its_signatures in (our_answer, their_answer):
            dns.dnssec.validate(answer, its_signatures, {APEX: keys})


def test_the_parent_is_asked_for_the_ds_of_both(providers):
    signed, _, ours, theirs = providers
    assert {"DNSKEY"} == {dns.rdatatype.to_text(one.rdtype) for one in signed.asker()(ZONE, "DNSKEY").answer}
    signed.later(2 * 86_400_000_000)
    signed.work()
    cds = {(one.key_tag, one.digest) for one in signed.asker()(ZONE, "CDS").answer[0]}

    wanted = [dns.dnssec.make_ds(APEX, key, "SHA256") for key in (ours, theirs)]
    assert cds == {(one.key_tag, one.digest) for one in wanted}
    assert len(signed.asker()(ZONE, "CDNSKEY").answer[0]) == 2


def test_at_the_end_nothing_of_the_other_is_offered(providers):
    signed, *_ = providers
    signed.set(ZONE, "disabled")

    assert [one.to_text() for one in signed.asker()(ZONE, "CDS").answer[0]] == ["0 0 0 00"]


@pytest.mark.parametrize("field", [{"algorithm": 8}, {"protocol": 2}], ids=["algorithm", "protocol"])
def test_a_key_that_cannot_sign_with_ours_is_refused_and_not_served(tmp_path, field):
    signed = Signed(tmp_path)
    signed.zone(ZONE)
    public = base64.b64encode(bytes(64)).decode()
    key = {"flags": 257, "protocol": 3, "algorithm": 13, "public_key": public} | field
    path = f"/zones/{signed.ids[ZONE]}/dnssec"
    assert signed.api.patch(path, {"dnssec_multi_signer": True}).status == 200
    assert signed.add(ZONE, "@", "DNSKEY", None, data=key).status == 200  # it may be signed by others alone
    assert len(signed.asker()(ZONE, "DNSKEY").answer[0]) == 1
    signed.set(ZONE, "active")
    signed.later(2 * 86_400_000_000)
    signed.work()

    for kind in ("DNSKEY", "CDS", "CDNSKEY"):
        (ours,) = signed.asker()(ZONE, kind).answer[0]
        assert ours.algorithm == 13
    refused = signed.add(ZONE, "@", "DNSKEY", None, data=key | {"flags": 256})
    assert refused.causes == [9002]
    assert "with one algorithm" in str(refused.json)
    assert signed.add(ZONE, "@", "DNSKEY", None, data=key | {"protocol": 3, "algorithm": 13}).status == 200
    assert len(signed.asker()(ZONE, "DNSKEY").answer[0]) == len(signed.asker()(ZONE, "CDS").answer[0]) == 2
    signed.close()


def test_a_zone_stays_signed_while_the_parent_has_the_ds_of_another_signer(providers):
    signed, _, ours, theirs = providers
    their_ds, our_ds = (dns.dnssec.make_ds(APEX, key, "SHA256").to_wire() for key in (theirs, ours))
    signed.parent_says(ZONE, their_ds)
    assert signed.shown(ZONE)["is_bogus"]
    signed.parent_says(ZONE, our_ds, their_ds)
    assert (signed.state(ZONE), signed.shown(ZONE)["is_bogus"]) == ("active", False)

    signed.set(ZONE, "disabled")
    for _ in range(10):
        signed.later(86_400_000_000)
        signed.parent_says(ZONE, their_ds)
        signed.work()
    assert signed.state(ZONE) == "leaving"
    for _ in range(4):
        signed.later(86_400_000_000)
        signed.parent_says(ZONE)
        signed.work()
    assert signed.state(ZONE) is None


def test_a_signed_zone_of_ours_above_has_what_the_zone_asks_for(tmp_path):
    signed = Signed(tmp_path)
    signed.later(-3 * 86_400_000_000)  # the verifiers' clock is the machine's
    above, zone = "parent.test", "child.parent.test"
    for name in (above, zone):
        signed.zone(name)
        signed.set(name, "active")
    signed.later(2 * 86_400_000_000)
    signed.work()
    path = f"/zones/{signed.ids[zone]}"
    assert signed.api.patch(f"{path}/dnssec", {"dnssec_multi_signer": True}).status == 200
    key = {"flags": 257, "protocol": 3, "algorithm": 13, "public_key": base64.b64encode(bytes(64)).decode()}
    assert signed.add(zone, "@", "DNSKEY", None, data=key).status == 200
    assert signed.api.patch(f"{path}/dns_settings", {"ns_ttl": 600}).status == 200
    signed.take()

    copy = dns.zone.from_text(zone_text(signed.table, above + "."), above, relativize=False)
    cds = {one.to_text() for one in signed.asker()(zone, "CDS").answer[0]}
    assert len(cds) == 2
    assert {one.to_text() for one in copy.find_rdataset(zone + ".", "DS")} == cds
    assert copy.find_rdataset(zone + ".", "NS").ttl == 600
    signed.verify(above, tmp_path)
    signed.close()
