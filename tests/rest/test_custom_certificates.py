"""Certificates that are uploaded: what is taken, what is refused with which code, what nobody is shown."""

import json
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from edgestead.model.refusals.setting import KeysSealed
from edgestead.tables import certificates as rows
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving.keys import in_memory
from tests.rest.conftest import AT_NEWEST
from tests.support.pairs import CA, P256, START, damaged, issued

pytestmark = [AT_NEWEST, pytest.mark.inside("certificates of an invented time")]
OWN = issued("example.com", "*.example.com")


@pytest.fixture
def uploads(zone_id):
    return f"/zones/{zone_id}/custom_certificates"


def body(pair, **more):
    return {"certificate": pair.chain, "private_key": pair.key, **more}


def test_a_certificate_is_uploaded_shown_replaced_and_deleted(api, zone_id, uploads):
    made = api.post(uploads, body(OWN, bundle_method="force")).result

    assert made["hosts"] == ["example.com", "*.example.com"]
    assert (made["issuer"], made["signature"]) == ("Edgestead development authority", "ECDSAWithSHA256")
    assert (made["status"], made["bundle_method"], made["zone_id"]) == ("active", "force", zone_id)
    assert made["expires_on"] == "2026-04-02T03:04:05.000000Z"
    assert api.get(f"{uploads}/{made['id']}").result == made
    listed = api.get(uploads)
    assert (listed.result, listed.json["result_info"]["total_count"]) == ([made], 1)

    new = issued("www.example.com", days=30)
    changed = api.patch(f"{uploads}/{made['id']}", body(new)).result
    assert (changed["id"], changed["hosts"], changed["bundle_method"]) == (
        made["id"],
        ["www.example.com"],
        "force",
    )

    assert api.delete(f"{uploads}/{made['id']}").result == {"id": made["id"]}
    assert api.get(f"{uploads}/{made['id']}").codes == [1003]
    assert api.get(uploads).result == []


def test_no_answer_and_no_table_has_the_key(api, zone_id, uploads):
    answered = api.post(uploads, body(OWN)).body + api.get(uploads).body
    (row,) = api.store.read(lambda reader: rows.of_zone(reader, zone_id))

    inside = OWN.key.splitlines()[1]
    assert inside.encode() not in answered
    assert inside.encode() not in row.sealed
    assert api.platform.seal.unwrap(zone_id, row.sealed).decode().strip() == OWN.key.strip()
    with pytest.raises(KeysSealed):
        api.platform.seal.unwrap("0" * 32, row.sealed)


RSA_SHORT = (
    rsa.generate_private_key(65_537, 1_024)
    .private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    .decode()
)
OTHER = issued("example.com")
ENDED = issued("example.com", now=START - timedelta(days=2), days=1)
LEAF = OWN.chain[: OWN.chain.index("-----END CERTIFICATE-----") + 26]
CASES = {
    "no PEM": ({"certificate": "x", "private_key": OWN.key}, 1002, "/certificate"),
    "nothing": ({}, 1002, "/certificate"),
    "another version": (
        body(OWN, certificate=damaged(LEAF, (b"\x02\x01\x02", b"\x02\x01\x07"))), 1002, "/certificate",
    ),
    "another curve": (
        body(OWN, certificate=damaged(LEAF, (P256, P256[:-1] + b"\x09"))), 1002, "/certificate",
    ),
    "an extension twice": (
        body(OWN, certificate=damaged(LEAF, (b"\x55\x1d\x0e", b"\x55\x1d\x11"))), 1002, "/certificate",
    ),
    "no key": ({"certificate": OWN.chain}, 2106, "/private_key"),
    "no PEM key": ({"certificate": OWN.chain, "private_key": "x"}, 2106, "/private_key"),
    "a short key": ({"certificate": OWN.chain, "private_key": RSA_SHORT}, 2106, "/private_key"),
    "another's key": ({"certificate": OWN.chain, "private_key": OTHER.key}, 2200, "/private_key"),
    "an ended one": (body(ENDED), 1002, "/certificate"),
    "another zone's": (body(issued("example.net")), 2103, "/certificate"),
    "a name that only ends alike": (body(issued("notexample.com")), 2103, "/certificate"),
    "authorities alone": (
        {"certificate": CA.certificate_pem.decode() * 2, "private_key": OWN.key},
        2101,
        "/certificate",
    ),
    "two chains": ({"certificate": OWN.chain + OTHER.chain, "private_key": OWN.key}, 2100, "/certificate"),
    "too long": ({"certificate": OWN.chain * 100, "private_key": OWN.key}, 1002, "/certificate"),
    "a bundle method that is none": (body(OWN, bundle_method="tidy"), 1002, "/bundle_method"),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_cannot_be_served_is_refused_with_the_reason(api, uploads, what):
    sent, code, pointer = CASES[what]
    answer = api.post(uploads, sent)

    assert (answer.status, answer.codes) == (400, [code]), answer.json
    assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert api.get(uploads).result == []


def test_the_same_certificate_is_there_once_and_its_root_is_left_out(api, zone_id, uploads):
    chain = OWN.chain + CA.certificate_pem.decode()
    assert api.post(uploads, {"certificate": chain, "private_key": OWN.key}).status == 200
    assert api.post(uploads, body(OWN)).codes == [1220]
    (row,) = api.store.read(lambda reader: rows.of_zone(reader, zone_id))
    assert row.chain.count("BEGIN CERTIFICATE") == 1


def test_a_zone_speaks_for_its_own_names_alone(api, uploads):
    """Not for another's that its certificate has, nor for one that a zone below it answers for."""
    api.post("/zones", {"name": "other.test"})
    api.post("/zones", {"name": "below.example.com"})
    pair = issued("example.com", "other.test", "www.below.example.com", "*.below.example.com")
    assert api.post(uploads, body(pair)).status == 200

    (found,), closed = api.store.read(lambda reader: served.pairs(reader, api.platform.seal))
    assert (found.names, closed) == (("example.com",), 0)


def test_the_newest_of_two_is_served_and_a_foreign_seal_opens_none(api, uploads):
    api.post(uploads, body(issued("example.com", days=60)))
    newer = issued("example.com", "www.example.com", days=80)
    api.post(uploads, body(newer))

    found, _ = api.store.read(lambda reader: served.pairs(reader, api.platform.seal))
    assert {name for pair in found for name in pair.names} == {"example.com", "www.example.com"}
    assert len(found[0].names) in (1, 2)
    assert api.store.read(lambda reader: served.pairs(reader, in_memory())) == ([], 2)


def test_the_higher_priority_is_served_and_legacy_before_sni(api, uploads):
    """Clients send the list with a number each; those that are not in it keep theirs."""
    made = {api.post(uploads, body(issued("example.com", days=days))).result["id"] for days in (60, 80)}

    def first():
        (found,), _ = api.store.read(lambda reader: served.pairs(reader, api.platform.seal))
        shown = {one["id"]: one for one in api.get(uploads).result}
        leaf = x509.load_pem_x509_certificate(found.chain)
        end = f"{leaf.not_valid_after_utc:%Y-%m-%dT%H:%M:%S}"
        return next(id_ for id_, one in shown.items() if one["expires_on"].startswith(end))

    def prioritized(*places):
        return api.put(
            f"{uploads}/prioritize", {"certificates": [{"id": id_, "priority": n} for id_, n in places]}
        )

    one = first()
    (other,) = made - {one}
    answer = prioritized((other, 2), (one, 1))
    assert answer.result == api.get(uploads).result
    assert {shown["id"]: shown["priority"] for shown in answer.result} == {other: 2, one: 1}
    assert first() == other
    prioritized((one, 3))
    assert first() == one
    api.patch(f"{uploads}/{one}", {"type": "sni_custom"})
    assert first() == other


@pytest.mark.parametrize(
    ("sent", "status", "code", "pointer"),
    [
        ({}, 400, 1456, "/certificates"),
        ({"certificates": []}, 400, 1456, "/certificates"),
        ({"certificates": [{"id": "0" * 32, "priority": 1}]}, 404, 1003, "/certificates/0/id"),
        ({"certificates": [{"id": "OURS", "priority": -1}]}, 400, 1456, "/certificates/0/priority"),
        ({"certificates": [{"id": "OURS", "priority": 1}, {}]}, 404, 1003, "/certificates/1/id"),
    ],
)
def test_a_priority_that_cannot_be_given_changes_none(api, uploads, sent, status, code, pointer):
    made = api.post(uploads, body(OWN)).result["id"]
    answer = api.put(f"{uploads}/prioritize", json.loads(json.dumps(sent).replace("OURS", made)))

    assert (answer.status, answer.codes) == (status, [code]), answer.json
    assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert api.get(uploads).result[0]["priority"] == 0


def test_the_quota_counts_what_was_ordered(api, zone_id):
    packs = f"/zones/{zone_id}/ssl/certificate_packs"
    object.__setattr__(api.platform, "orders_certificates", True)
    assert api.get(f"{packs}/quota").result == {"advanced": {"allocated": 50, "used": 0}}
    api.post(f"{packs}/order", {"hosts": ["example.com"]})
    assert api.get(f"{packs}/quota").result == {"advanced": {"allocated": 50, "used": 1}}


def test_a_deleted_zones_certificates_go_with_it(api, zone_id, uploads):
    api.post(uploads, body(OWN))
    before = api.store.read(served.version)
    api.delete(f"/zones/{zone_id}")

    assert api.store.read(lambda reader: rows.of_zone(reader, zone_id)) == []
    assert api.store.read(served.version) == before + 1
