"""Certificates that the server signs for origins: for whom, for which names, until they are revoked."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from edgestead.tables import origin_certificates as rows
from edgestead.usecases.certificate import origin
from edgestead.usecases.certificate.signing import shown
from edgestead.usecases.serving import certificates as served
from edgestead.usecases.serving.keys import in_memory
from tests.rest.conftest import AT_NEWEST
from tests.rest.tokens import RESTRICTED, policy, put_token, zone
from tests.support.api import FIRST_US
from tests.support.pairs import P256, damaged

pytestmark = AT_NEWEST
EC, RSA = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65_537, 2_048)
HOSTS = ["example.com", "*.example.com"]
SSL = "SSL and Certificates {}"


def request_of(key=EC, names=("ignored.test",)):
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


CSR = request_of()
SHORT = request_of(rsa.generate_private_key(65_537, 1_024))


def body(**more):
    return {
        "csr": CSR,
        "hostnames": HOSTS,
        "request_type": "origin-ecc",
        "requested_validity": 90,
    } | more


@pytest.mark.parametrize(("key", "kind"), [(EC, "origin-ecc"), (RSA, "origin-rsa")], ids=["ecc", "rsa"])
@pytest.mark.inside("invented time")
def test_a_request_is_signed_shown_and_revoked(api, zone_id, key, kind):
    made = api.post("/certificates", body(csr=request_of(key), request_type=kind)).result

    assert (made["hostnames"], made["request_type"], made["requested_validity"]) == (HOSTS, kind, 90)
    assert made["expires_on"] == "2026-04-02T03:04:05.000000Z"
    signed = x509.load_pem_x509_certificate(made["certificate"].encode())
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == HOSTS, "what the request names counts for nothing"
    assert signed.public_key() == key.public_key()
    authority = x509.load_pem_x509_certificate(vouching(api).authority.encode())
    signed.verify_directly_issued_by(authority)
    assert not signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca

    assert api.get(f"/certificates/{made['id']}").result == made
    listed = api.get(f"/certificates?zone_id={zone_id}")
    assert (listed.result, listed.json["result_info"]["total_count"]) == ([made], 1)

    revoked = api.delete(f"/certificates/{made['id']}").result
    assert revoked == {"id": made["id"], "revoked_at": revoked["revoked_at"]}
    assert vouching(api).revoked == (shown(signed.serial_number),)
    assert api.get(f"/certificates/{made['id']}").codes == [1003]
    assert api.delete(f"/certificates/{made['id']}").codes == [1003]
    assert api.get(f"/certificates?zone_id={zone_id}").result == []


def vouching(api):
    return api.store.read(lambda reader: served.of_origins(reader, FIRST_US))


CASES = {
    "nothing": (dict.fromkeys(("csr", "hostnames")), "/csr"),
    "no PEM": ({"csr": "x"}, "/csr"),
    "another signature": ({"csr": CSR[:-60] + "AAAA" + CSR[-56:]}, "/csr"),
    "another version": ({"csr": damaged(CSR, (b"\x02\x01\0", b"\x02\x01\x01"))}, "/csr"),
    "another curve": ({"csr": damaged(CSR, (P256, P256[:-1] + b"\x09"))}, "/csr"),
    "a short key": ({"csr": SHORT, "request_type": "origin-rsa"}, "/csr"),
    "too long": ({"csr": "x" * 20_000}, "/csr"),
    "another kind of key": ({"request_type": "origin-rsa"}, "/request_type"),
    "keyless": ({"request_type": "keyless-certificate"}, "/request_type"),
    "other days": ({"requested_validity": 91}, "/requested_validity"),
    "no names": ({"hostnames": []}, "/hostnames"),
    "101 names": ({"hostnames": [f"n{n}.example.com" for n in range(101)]}, "/hostnames"),
    "no name": ({"hostnames": ["a..example.com"]}, "/hostnames"),
    "a wildcard below": ({"hostnames": ["a.*.example.com"]}, "/hostnames"),
    "a wildcard alone": ({"hostnames": ["*"]}, "/hostnames"),
    "another's name": ({"hostnames": ["www.elsewhere.test"]}, "/hostnames"),
    "one of another": ({"hostnames": ["example.com", "elsewhere.test"]}, "/hostnames"),
    "a top level": ({"hostnames": ["*.com"]}, "/hostnames"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_signed_is_refused_and_changes_nothing(api, zone_id, case):
    more, pointer = CASES[case]
    answer = api.post("/certificates", body(**more))

    assert (answer.status, answer.codes) == (400, [1455]), answer.json
    assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert api.get(f"/certificates?zone_id={zone_id}").result == []


def test_a_name_of_a_zone_below_belongs_to_that_zone(api, zone_id):
    below = api.post("/zones", {"name": "sub.example.com"}).result["id"]

    assert api.post("/certificates", body(hostnames=["*.sub.example.com"])).status == 200
    assert len(api.get(f"/certificates?zone_id={below}").result) == 1
    assert api.get(f"/certificates?zone_id={zone_id}").result == []
    mixed = api.post("/certificates", body(hostnames=["sub.example.com", "example.com"]))
    assert mixed.codes == [1455]


def test_a_token_of_one_zone_has_nothing_of_another(api, zone_id):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    theirs = api.post("/certificates", body(hostnames=["other.test"])).result["id"]
    put_token(api, policy(SSL.format("Write"), resources=zone(zone_id)))

    own = api.post("/certificates", body(), headers=RESTRICTED).result["id"]
    assert api.post("/certificates", body(hostnames=["other.test"]), headers=RESTRICTED).codes == [1455]
    assert api.get(f"/certificates/{theirs}", headers=RESTRICTED).codes == [1003]
    assert api.delete(f"/certificates/{theirs}", headers=RESTRICTED).codes == [1003]
    assert api.get(f"/certificates?zone_id={other}", headers=RESTRICTED).status == 404
    assert api.get(f"/certificates?zone_id={zone_id}", headers=RESTRICTED).result[0]["id"] == own
    assert api.get("/certificates", headers=RESTRICTED).codes == [1455]
    assert api.delete(f"/certificates/{own}", headers=RESTRICTED).status == 200


def test_a_token_that_reads_signs_and_revokes_nothing(api, zone_id):
    own = api.post("/certificates", body()).result["id"]
    put_token(api, policy(SSL.format("Read"), resources=zone(zone_id)))

    assert api.get(f"/certificates/{own}", headers=RESTRICTED).result["id"] == own
    assert api.delete(f"/certificates/{own}", headers=RESTRICTED).status == 403
    assert api.post("/certificates", body(), headers=RESTRICTED).status == 403


def test_a_deleted_zones_certificates_count_no_more(api, zone_id):
    made = api.post("/certificates", body()).result
    api.delete(f"/zones/{zone_id}")

    assert len(vouching(api).revoked) == 1
    assert api.get(f"/certificates/{made['id']}").codes == [1003]


def test_no_certificate_that_was_revoked_is_trusted_again_because_others_were(api, zone_id, monkeypatch):
    monkeypatch.setattr(origin, "ORIGIN_REVOKED_MAX", 2)
    for _ in range(2):
        made = api.post("/certificates", body()).result
        api.delete(f"/certificates/{made['id']}")
    refused = api.post("/certificates", body())
    assert (refused.status, refused.codes) == (400, [1455])
    assert "2 that were revoked" in refused.json["errors"][0]["message"]
    assert len(vouching(api).revoked) == 2

    monkeypatch.setattr(origin, "ORIGIN_REVOKED_MAX", 9)
    monkeypatch.setattr(served, "REVOKED_MAX", 3)
    assert api.post("/certificates", body()).status == 200
    refused = api.post("/certificates", body())
    assert (refused.status, refused.codes) == (400, [1455])
    assert "this server has signed 3" in refused.json["errors"][0]["message"]


def test_the_authoritys_key_is_sealed_and_one_for_all(api, zone_id):
    first = api.post("/certificates", body()).result["certificate"]
    second = api.post("/certificates", body()).result["certificate"]

    ((certificate, sealed),) = api.store.read(rows.authorities)
    assert b"PRIVATE KEY" not in sealed
    for made in (first, second):
        x509.load_pem_x509_certificate(made.encode()).verify_directly_issued_by(
            x509.load_pem_x509_certificate(certificate.encode())
        )


def test_after_a_restore_without_its_seal_another_authority_signs_and_both_are_trusted(api, zone_id):
    first = api.post("/certificates", body()).result
    object.__setattr__(api.platform, "seal", in_memory())
    second = api.post("/certificates", body()).result

    authorities = x509.load_pem_x509_certificates(vouching(api).authority.encode())
    assert len(authorities) == 2
    for made, authority in ((first, authorities[1]), (second, authorities[0])):
        x509.load_pem_x509_certificate(made["certificate"].encode()).verify_directly_issued_by(authority)
