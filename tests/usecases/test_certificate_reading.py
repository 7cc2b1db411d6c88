"""Certificates and requests of all kinds of octets: read, or refused."""

from base64 import b64decode
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgestead.model.refusals import BadRequest
from edgestead.usecases.certificate.reading import checked
from edgestead.usecases.certificate.signing import read_request
from tests.support.api import FIRST_US
from tests.support.pairs import damaged, issued

OWN = issued("example.com")
CSR = (
    x509.CertificateSigningRequestBuilder()
    .subject_name(x509.Name([]))
    .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    .public_bytes(serialization.Encoding.PEM)
    .decode()
)
LEAF = OWN.chain[: OWN.chain.index("-----END CERTIFICATE-----") + 26]


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
def test_whatever_the_parser_stumbles_over_is_a_refusal():
    chance = Random(23)
    octets = {pem: b64decode("".join(pem.splitlines()[1:-1])) for pem in (LEAF, CSR)}
    read = {LEAF: lambda pem: checked(pem, OWN.key, FIRST_US), CSR: read_request}
    refused = dict.fromkeys(octets, 0)
    for _ in range(500):
        for pem, whole in octets.items():
            at, octet = chance.randrange(len(whole)), chance.choice((0, 1, 48, 255))
            changed = whole[:at] + bytes((octet,)) + whole[at + 1 :]
            try:
                read[pem](damaged(pem, (whole, changed)))
            except BadRequest:
                refused[pem] += 1
    assert min(refused.values()) > 100
