"""A certificate with its chain and its key, read and held to each other.

Owns  what makes a pair one that the edge can serve; the facts of a certificate that are shown.
Not   rows, zones; whether anybody trusts the authority. Pure; `cryptography` is loaded with the first one.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from edgestead.model.refusals.certificate import (
    CertificateUnreadable,
    ChainBroken,
    KeyMismatch,
    KeyRefused,
    NoLeaf,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CHAIN_CHARACTERS_MAX: Final = 64 << 10  # of a certificate and its chain as PEM: each takes about 2 KiB
CHAIN_MAX: Final = 10  # certificates in it
KEY_CHARACTERS_MAX: Final = 16 << 10  # of a key as PEM: RSA of 8192 bits has 6 KiB
HOSTS_MAX: Final = 100  # names in one certificate, which is what public authorities allow
RSA_BITS_MIN: Final = 2_048  # OpenSSL's security level 2 takes no shorter one
_SECOND_US: Final = 1_000_000


class Facts(NamedTuple):
    """What is shown of a certificate. `hosts` are lower case; times are Unix microseconds."""

    hosts: tuple[str, ...]
    issuer: str
    signature: str
    starts_us: int
    ends_us: int


class Checked(NamedTuple):
    """A pair that can be served: PEM, the leaf first, and nothing else in it."""

    chain: str
    key: bytes
    facts: Facts


def checked(chain: str, key: str, now_us: int) -> Checked:
    """Raises CertificateUnreadable, NoLeaf, ChainBroken, KeyRefused, KeyMismatch."""
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        found = certificates_in(chain)
        facts = facts_of(found[0])
        public = found[0].public_key()
    except unreadable():
        raise CertificateUnreadable(
            reason="it cannot be read, or its key is of a kind that is not known", pointer="/certificate"
        ) from None
    if facts.ends_us <= now_us:
        raise CertificateUnreadable(reason="it has ended", pointer="/certificate")
    if not facts.hosts:
        raise CertificateUnreadable(reason="it names no host", pointer="/certificate")
    pem = _key_of(key, public)
    return Checked("".join(one.public_bytes(Encoding.PEM).decode() for one in found), pem, facts)


def unreadable() -> tuple[type[Exception], ...]:
    """What `cryptography` raises for octets that are no X.509, or none that it knows."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    return (
        *(ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature),
        *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
    )


def certificates_in(chain: str) -> "list[Certificate]":
    """The leaf and what vouches for it, in order, without an authority that vouches for itself.

    Raises CertificateUnreadable, NoLeaf, ChainBroken, and what `unreadable` has.
    """
    from cryptography import x509

    if len(chain) > CHAIN_CHARACTERS_MAX:
        raise CertificateUnreadable(
            reason=f"it is longer than {CHAIN_CHARACTERS_MAX} characters", pointer="/certificate"
        )
    try:
        found = x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        raise CertificateUnreadable(reason="it is no PEM certificate", pointer="/certificate") from None
    if len(found) > CHAIN_MAX:
        raise ChainBroken(pointer="/certificate")
    leaves = [one for one in found if len(found) == 1 or not _is_authority(one)]
    if not leaves:
        raise NoLeaf(pointer="/certificate")
    return _ordered(leaves[0], [one for one in found if one is not leaves[0]])


def facts_of(leaf: "Certificate") -> Facts:
    """Raises CertificateUnreadable, and what `unreadable` has."""
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = tuple(dict.fromkeys(name.lower() for name in names.get_values_for_type(x509.DNSName)))
    except x509.ExtensionNotFound:
        hosts = ()
    if len(hosts) > HOSTS_MAX:
        raise CertificateUnreadable(reason=f"it has more than {HOSTS_MAX} names", pointer="/certificate")
    return Facts(
        hosts=hosts,
        issuer=_issuer(leaf),
        signature=_signature(leaf),
        starts_us=int(leaf.not_valid_before_utc.timestamp()) * _SECOND_US,
        ends_us=int(leaf.not_valid_after_utc.timestamp()) * _SECOND_US,
    )


def _issuer(leaf: "Certificate") -> str:
    from cryptography.x509.oid import NameOID

    for oid in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME):
        for attribute in leaf.issuer.get_attributes_for_oid(oid):
            return str(attribute.value)
    return leaf.issuer.rfc4514_string()


def _signature(leaf: "Certificate") -> str:
    """What it was signed with, as the API words it; the identifier of what it has no words for."""
    from cryptography.x509.oid import SignatureAlgorithmOID as Oid

    words = {
        Oid.RSA_WITH_SHA256: "SHA256WithRSA",
        Oid.RSA_WITH_SHA384: "SHA384WithRSA",
        Oid.RSA_WITH_SHA512: "SHA512WithRSA",
        Oid.ECDSA_WITH_SHA256: "ECDSAWithSHA256",
        Oid.ECDSA_WITH_SHA384: "ECDSAWithSHA384",
        Oid.ECDSA_WITH_SHA512: "ECDSAWithSHA512",
    }
    oid = leaf.signature_algorithm_oid
    return words.get(oid, oid.dotted_string)


def _is_authority(certificate: "Certificate") -> bool:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _ordered(leaf: "Certificate", others: "list[Certificate]") -> "list[Certificate]":
    """Each vouched for by the next (RFC 8446 §4.4.2); what vouches for itself every client has, or nobody.

    Raises ChainBroken: some belong to another chain.
    """
    chain = [leaf]
    while others:
        above = next((one for one in others if _vouches(one, chain[-1])), None)
        if above is None:
            raise ChainBroken(pointer="/certificate")
        others.remove(above)
        chain.append(above)
    return [leaf, *(one for one in chain[1:] if one.issuer != one.subject)]


def _vouches(authority: "Certificate", below: "Certificate") -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        below.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _key_of(text: str, public: Any) -> bytes:
    """The key as PKCS #8, whose other half is the certificate's. Raises KeyRefused, KeyMismatch."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if len(text) > KEY_CHARACTERS_MAX:
        raise KeyRefused(pointer="/private_key")
    try:
        key: Any = serialization.load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyRefused(pointer="/private_key") from None
    is_long = isinstance(key, rsa.RSAPrivateKey) and key.key_size >= RSA_BITS_MIN
    curves = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
    is_curve = isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, curves)
    if not (is_long or is_curve):
        raise KeyRefused(pointer="/private_key")
    if key.public_key() != public:
        raise KeyMismatch(pointer="/private_key")
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem
