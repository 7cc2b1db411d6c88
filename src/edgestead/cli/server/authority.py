"""A certificate authority for development, which this machine's own browsers can be told to trust.

Owns  the authority's key and certificate, issuing certificates for names.
Not   certificates for the world: those come from an ACME client.

Keys are ECDSA P-256, signatures SHA-256. Extensions are those of RFC 5280 §4.2.1 that clients check.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=3_650)
LIFETIME = timedelta(days=397)  # browsers refuse certificates that are valid for longer
_BACKDATED = timedelta(hours=1)  # clocks differ
_COMMON_NAME_CHARS_MAX = 64


class Issued(NamedTuple):
    """A certificate with its key, in one PEM text."""

    pem: bytes


class Authority:
    """Make one with `new`, or from what an earlier one kept with `load`."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def new(cls, now: datetime) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Edgestead development authority")
        builder = _builder(name, name, key, now, AUTHORITY_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(authority=True), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @classmethod
    def load(cls, key_pem: bytes, certificate_pem: bytes) -> "Authority":
        """Raises ValueError: these are not the key and certificate of one authority."""
        key = serialization.load_pem_private_key(key_pem, None)
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError("the key is not the certificate's")
        return cls(key, certificate)

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue(self, hosts: Sequence[str], now: datetime, lifetime: timedelta = LIFETIME) -> Issued:
        """A certificate for host names, wildcards or addresses. Raises ValueError: a host is none."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(hosts[0] if len(hosts[0]) <= _COMMON_NAME_CHARS_MAX else "development")
        builder = _builder(subject, self._certificate.subject, key, now, lifetime)
        alternatives = x509.SubjectAlternativeName([_general(host) for host in hosts])
        builder = builder.add_extension(alternatives, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        return Issued(certificate.public_bytes(serialization.Encoding.PEM) + _key_pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
