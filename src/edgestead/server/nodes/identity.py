"""The identities of nodes: one authority for a cluster, and a certificate from it for each node.

Owns  keys, certificates, what they say (cluster, node, roles), and from when on they are due.
Not   connections (`port`), who may have one (`invites`, `registry`), renewing it (`renewing`).

A certificate names its node in one URI: `edgestead://CLUSTER/node/NAME?roles=control,edge`. A node is known
by its key, which stays when the certificate is renewed. `cryptography` is loaded by the first use.
"""

import re
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

FOLDER: Final = "cluster"  # of this node's identity, in its data folder
ROLES: Final = ("control", "objects", "edge")
NAME_CHARS_MAX: Final = 32  # of a node: a column of people's lists
CERTIFICATE_DAYS: Final = 90
RENEW_AFTER_DAYS: Final = 60
AUTHORITY_DAYS: Final = 3_650
CLOCKS_APART: Final = timedelta(hours=1)  # a certificate is good so long before it was made
_SUBJECT: Final = "edgestead cluster "  # and its id
_SCHEME: Final = "edgestead"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")


class NotANode(Exception):
    """A certificate or a name that is no node's of this cluster."""


class Peer(NamedTuple):
    """Who a certificate says that its holder is. `key` is the SHA-256 of the public key, in hex."""

    cluster: str
    name: str
    roles: frozenset[str]
    key: str

    def has(self, role: str) -> bool:
        return role in self.roles


class Member(NamedTuple):
    """This node's own identity, as files (PEM)."""

    peer: Peer
    key_file: Path
    certificate_file: Path
    authority_file: Path


def check_name(name: str) -> str:
    """Raises NotANode."""
    if not _NAME.fullmatch(name):
        raise NotANode(f"{name!r} cannot name a node: use 1 to {NAME_CHARS_MAX} of a-z, 0-9 and -")
    return name


def check_roles(roles: frozenset[str]) -> frozenset[str]:
    """Raises NotANode."""
    if not roles or not roles <= set(ROLES):
        raise NotANode(f"a node has one or several of the roles {', '.join(ROLES)}")
    return roles


def new_key() -> bytes:
    """A private key (PEM, not encrypted)."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def fingerprint(certificate_pem: bytes) -> bytes:
    """The SHA-256 of a certificate: an invitation carries that of the authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    return x509.load_pem_x509_certificate(certificate_pem).fingerprint(hashes.SHA256())


def public_key(private_key_pem: bytes) -> bytes:
    """The public half (DER), as a node sends it to get its certificate."""
    return _public_der(_private(private_key_pem).public_key())


class Authority:
    """A cluster's certificate authority. `now` has a time zone."""

    def __init__(self, cluster: str, key_pem: bytes, certificate_pem: bytes) -> None:
        from cryptography import x509

        self.cluster = cluster
        self.key_pem, self.certificate_pem = key_pem, certificate_pem
        self._key = _private(key_pem)
        self._certificate = x509.load_pem_x509_certificate(certificate_pem)

    @classmethod
    def new(cls, cluster: str, now: datetime) -> "Authority":
        from cryptography import x509

        key_pem = new_key()
        name = _name(_SUBJECT + cluster)
        builder = _builder(name, name, _private(key_pem).public_key(), now, AUTHORITY_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs=True), critical=True)
        return cls(cluster, key_pem, _signed(builder, key_pem))

    @classmethod
    def kept(cls, key_pem: bytes, certificate_pem: bytes) -> "Authority":
        """One that was made before: its certificate says of which cluster."""
        from cryptography import x509

        (subject,) = x509.load_pem_x509_certificate(certificate_pem).subject
        return cls(str(subject.value).removeprefix(_SUBJECT), key_pem, certificate_pem)

    def certify(self, public_der: bytes, name: str, roles: frozenset[str], now: datetime) -> bytes:
        """A node's certificate (PEM). Raises NotANode: not a key that we take, a bad name or roles."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _public(public_der)
        uri = node_uri(self.cluster, check_name(name), check_roles(roles))
        builder = _builder(self._certificate.subject, _name(name), key, now, CERTIFICATE_DAYS)
        for extension, critical in (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                False,
            ),
            (x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), False),
        ):
            builder = builder.add_extension(extension, critical=critical)
        return _signed(builder, self.key_pem)


def node_uri(cluster: str, name: str, roles: frozenset[str]) -> str:
    return f"{_SCHEME}://{cluster}/node/{name}?roles={','.join(sorted(roles))}"


def key_of(public_der: bytes) -> str:
    """What `Peer.key` and the registry call a key."""
    return sha256(public_der).hexdigest()


def peer_of(certificate_der: bytes) -> Peer:
    """Who it names. The chain is for others to verify. Raises NotANode."""
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(certificate_der)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, x509.ExtensionNotFound):
        raise NotANode("the certificate names no node") from None
    url = urlsplit(uri)
    kind, _, name = url.path.removeprefix("/").partition("/")
    roles = frozenset(",".join(parse_qs(url.query).get("roles", [])).split(","))
    if url.scheme != _SCHEME or kind != "node":
        raise NotANode("the certificate names no node")
    key = key_of(_public_der(certificate.public_key()))
    return Peer(url.netloc, check_name(name), check_roles(roles), key)


def is_issued_by(certificate_der: bytes, authority_pem: bytes, now: datetime) -> bool:
    """Whether the authority signed it and it is valid now: where TLS does not know the authority yet."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    certificate = x509.load_der_x509_certificate(certificate_der)
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority_pem))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def member_of(folder: Path) -> Member:
    """The identity in a folder. Raises OSError, NotANode."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    certificate_file = folder / "node.crt"
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
    except ValueError:
        raise NotANode(f"{certificate_file} is no certificate") from None
    peer = peer_of(certificate.public_bytes(serialization.Encoding.DER))
    return Member(peer, folder / "node.key", certificate_file, folder / "ca.crt")


def end_of(certificate_pem: bytes) -> datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate_pem).not_valid_after_utc


def renewal_of(certificate_pem: bytes) -> datetime:
    """When a node asks for its next certificate."""
    return end_of(certificate_pem) - timedelta(days=CERTIFICATE_DAYS - RENEW_AFTER_DAYS)


def _private(pem: bytes) -> "ec.EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise NotANode("not a key of the kind that nodes have")
    return key


def _public(der: bytes) -> "ec.EllipticCurvePublicKey":
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(der)
    except Exception:  # unsupported algorithms have classes of their own
        raise NotANode("not a public key") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise NotANode("a node's key is one of P-256")
    return key


def _public_der(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    der: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return der


def _name(text: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    issuer: "x509.Name", subject: "x509.Name", key: Any, now: datetime, days: int
) -> "x509.CertificateBuilder":
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: "x509.CertificateBuilder", key_pem: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization

    return builder.sign(_private(key_pem), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
