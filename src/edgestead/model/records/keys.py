"""Keys, digests and certificates: DS, DNSKEY, SSHFP, TLSA, SMIMEA, CERT, OPENPGPKEY, DHCID.

Owns  the eight types.
Not   cryptography: a key is octets here.
"""

from edgestead.model.names import InvalidValue
from edgestead.model.records.kinds import U8, U16, Base64Octets, HexText
from edgestead.model.records.table import Rdata, record_type

# Octets of each digest type (IANA "DS RR Type Digest Algorithms"); name servers refuse zones with others.
DIGEST_OCTETS = {1: 20, 2: 32, 3: 32, 4: 48}


@record_type(43, "RFC 4034 §5.1", form="data")
class DS(Rdata, frozen=True):
    """The digest of a key of the zone below. A digest of a known type must have its length."""

    key_tag: U16
    algorithm: U8
    digest_type: U8
    digest: HexText

    def check(self) -> None:
        expected = DIGEST_OCTETS.get(self.digest_type)
        if expected and len(self.digest) != 2 * expected:
            raise InvalidValue(f"a digest of type {self.digest_type} has {expected} octets")


@record_type(48, "RFC 4034 §2.1", form="data")
class DNSKEY(Rdata, frozen=True):
    """A public key of the zone. The protocol is not forced to be 3."""

    flags: U16
    protocol: U8
    algorithm: U8
    public_key: Base64Octets


@record_type(44, "RFC 4255 §3.1", form="data")
class SSHFP(Rdata, frozen=True):
    """The fingerprint of a host key for SSH."""

    algorithm: U8
    type: U8
    fingerprint: HexText


# No rule on the name of a TLSA record: clients post it below plain names, which a CNAME at `_port._proto`
# may then point to (RFC 7671 §7). `names.check_port_name` is there for a stricter caller.
@record_type(52, "RFC 6698 §2.1", form="data")
class TLSA(Rdata, frozen=True):
    """The certificate of a TLS server, as a whole or as a digest."""

    usage: U8
    selector: U8
    matching_type: U8
    certificate: HexText


@record_type(53, "RFC 8162 §2", form="data")
class SMIMEA(Rdata, frozen=True):
    """The certificate of a mail user, as a whole or as a digest."""

    usage: U8
    selector: U8
    matching_type: U8
    certificate: HexText


@record_type(37, "RFC 4398 §2", form="data")
class CERT(Rdata, frozen=True):
    """A certificate or a related list."""

    type: U16
    key_tag: U16
    algorithm: U8
    certificate: Base64Octets


@record_type(61, "RFC 7929 §2")
class OPENPGPKEY(Rdata, frozen=True):
    """The OpenPGP key of a mail user."""

    public_key: Base64Octets


@record_type(49, "RFC 4701 §3")
class DHCID(Rdata, frozen=True):
    """Whose a name is among DHCP clients: a digest, as the DHCP server makes it."""

    digest: Base64Octets
