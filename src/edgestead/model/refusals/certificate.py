"""Refusals of certificates.

Owns  code, status and wording of each.
Not   refusals of authorities: these are shown as what they are.

    BadRequest (400)
    ├── CertificateUnreadable 1002
    ├── TooManyCertificates   1212
    ├── CertificateExists     1220
    ├── ChainBroken           2100
    ├── NoLeaf                2101
    ├── HostsElsewhere        2103
    ├── KeyRefused            2106
    ├── KeyMismatch           2200
    ├── OrderRefused          1450
    ├── NoAuthority           1451
    ├── OriginRequestRefused  1455
    └── PriorityRefused       1456
    NotFound (404)
    ├── CertificateNotFound   1003
    └── PackNotFound          1454

Codes of uploads are those that the hosted service documents; the others are ours.
"""

from edgestead.model.refusals import BadRequest, NotFound


class CertificateUnreadable(BadRequest):
    code, wording = 1002, "Invalid certificate: {reason}."


class TooManyCertificates(BadRequest):
    code, wording = 1212, "This zone has the {certificates_max} certificates that it may have."


class CertificateExists(BadRequest):
    code, wording = 1220, "This certificate was uploaded already: {id}."


class ChainBroken(BadRequest):
    code, wording = 2100, "The chain does not lead from the certificate up: one of it vouches for no other."


class NoLeaf(BadRequest):
    code, wording = 2101, "The chain has no leaf: all of its certificates are authorities'."


class HostsElsewhere(BadRequest):
    code, wording = 2103, "The certificate names no host of {zone}."


class KeyRefused(BadRequest):
    """What cannot be read, is encrypted, or is too short."""

    code = 2106
    wording = (
        "The private key is invalid: PEM without a password, RSA of 2048 bits or more, or P-256 to P-521."
    )


class KeyMismatch(BadRequest):
    code, wording = 2200, "The private key is not the certificate's."


class OrderRefused(BadRequest):
    code, wording = 1450, "The order is invalid: {reason}"


class NoAuthority(BadRequest):
    """The server was started without one."""

    code, wording = 1451, "This server orders no certificates: it was started without --acme."


class OriginRequestRefused(BadRequest):
    """Of a certificate for an origin."""

    code, wording = 1455, "The request is invalid: {reason}."


class PriorityRefused(BadRequest):
    """Of uploaded certificates among each other."""

    code, wording = 1456, "The priority is invalid: {reason}."


class CertificateNotFound(NotFound):
    code, wording = 1003, "No such certificate: {id}"


class PackNotFound(NotFound):
    code, wording = 1454, "No such certificate pack: {id}"
