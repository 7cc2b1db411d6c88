"""Signing certificates for origins: requests read, an authority, what its certificates say.

Owns  X.509 and PKCS #10 of it.
Not   who may have which name (`usecases.certificate.origin`). Pure but for keys and serials, which are
      random; `cryptography` is loaded with the first one.

Extensions are those of RFC 5280 §4.2.1 that clients check.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from edgestead.model.refusals.certificate import OriginRequestRefused
from edgestead.usecases.certificate.reading import RSA_BITS_MIN, unreadable

if TYPE_CHECKING:
    from cryptography.x509 import Name

REQUEST_CHARACTERS_MAX: Final = 16 << 10  # of a request as PEM: with RSA of 8192 bits it has 3 KiB
RSA_BITS_MAX: Final = 8_192  # ours: a longer one takes a handshake a tenth of a second
AUTHORITY_DAYS: Final = 30 * 365  # twice the longest certificate
ORGANIZATION: Final = "Edgestead"
_BACKDATED = timedelta(hours=1)  # clocks differ
_SECOND_US: Final = 1_000_000


class Request(NamedTuple):
    """A request whose signature is that of its key. `type` is what the API calls such a key."""

    pem: str
    type: str
    key: Any


class Signed(NamedTuple):
    """`serial` as OpenSSL shows it: upper-case hexadecimal."""

    pem: str
    serial: str
    ends_us: int


def read_request(pem: str) -> Request:
    """Raises OriginRequestRefused."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import Encoding

    if not pem or len(pem) > REQUEST_CHARACTERS_MAX:
        raise _refused(f"it is PEM of at most {REQUEST_CHARACTERS_MAX} characters")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        key: Any = request.public_key()
        is_signed = request.is_signature_valid
    except unreadable():
        raise _refused("it cannot be read") from None
    if isinstance(key, rsa.RSAPublicKey) and RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
        type_ = "origin-rsa"
    elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(
        key.curve, (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
    ):
        type_ = "origin-ecc"
    else:
        raise _refused(f"its key is RSA of {RSA_BITS_MIN} to {RSA_BITS_MAX} bits, or P-256 to P-521")
    if not is_signed:
        raise _refused("it was not signed by its key")
    return Request(request.public_bytes(Encoding.PEM).decode(), type_, key)


class Authority:
    """Its certificate and key, both PEM."""

    def __init__(self, certificate: str, key_pem: bytes) -> None:
        self.certificate = certificate
        self.key_pem = key_pem

    def sign(self, request: Request, hosts: Sequence[str], now_us: int, days: int) -> Signed:
        """For these names, whatever the request says but its key."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        own = x509.load_pem_x509_certificate(self.certificate.encode())
        key: Any = serialization.load_pem_private_key(self.key_pem, None)
        now = datetime.fromtimestamp(now_us // _SECOND_US, UTC)
        serial = x509.random_serial_number()
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name("Edgestead origin certificate"))
            .issuer_name(own.subject)
            .public_key(request.key)
            .serial_number(serial)
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + timedelta(days=days))
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(request.key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
            )
        )
        signed = builder.sign(key, hashes.SHA256())
        ends_us = int(signed.not_valid_after_utc.timestamp()) * _SECOND_US
        return Signed(signed.public_bytes(serialization.Encoding.PEM).decode(), shown(serial), ends_us)


def new_authority(now_us: int) -> Authority:
    """P-256, which says nothing about its server but its own key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.fromtimestamp(now_us // _SECOND_US, UTC)
    name = _name("Edgestead origin authority")
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signed = builder.sign(key, hashes.SHA256())
    return Authority(signed.public_bytes(serialization.Encoding.PEM).decode(), pem)


def alpn_pair(host: str, value: str) -> tuple[str, bytes]:
    """A certificate (PEM) that shows an authority a proof in its handshake (RFC 8737 §3), and its key.

    `value` is the digest that the authority looks for, in base64url.
    """
    from base64 import urlsafe_b64decode

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    digest = urlsafe_b64decode(value + "=" * (-len(value) % 4))
    identifier = x509.UnrecognizedExtension(
        x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31"), bytes((4, len(digest))) + digest
    )
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(_name("proof"))
        .issuer_name(_name("proof"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(identifier, critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(serialization.Encoding.PEM).decode(), pem


def shown(serial: int) -> str:
    """As `ssl` names the serial of a peer's certificate: whole octets.

    >>> shown(2748)
    '0ABC'
    """
    text = f"{serial:X}"
    return text if len(text) % 2 == 0 else f"0{text}"


def _name(common: str) -> "Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


def _usage(*, authority: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _refused(reason: str) -> OriginRequestRefused:
    return OriginRequestRefused(reason=f"csr: {reason}", pointer="/csr")
