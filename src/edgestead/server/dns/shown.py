"""The certificates that clients of DNS over TLS and HTTPS are shown.

Owns  which one a client gets; following the folder and those that control keeps.
Not   the certificates (`edge.http.certificates`); the handshake (`dns.arrivals`).

    1. that of the name that the client asks for: the operator's file, else the one that control keeps
    2. `default` of the folder
    3. that of the first of our name servers that has one
    4. over TLS, not HTTPS, one that we sign ourselves

A client that came by an address alone has no name to ask for, and most of those judge no certificate:
resolvers that try TLS with name servers they know nothing about (RFC 9539 §4.2). The fourth is for them:
without any certificate what they ask is still read by nobody on the way. Whoever judges certificates refuses
it, as they would refuse to go on without one.
"""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from edgestead.dns.arrivals import DOT
from edgestead.edge.http.certificates import Certificates, Kept, Take, Terms
from edgestead.server.rounds import Rounds

LOOK_SECONDS: Final = 2.0  # between two looks at the folder, and at what control keeps
OWN_NAME: Final = "dns.invalid"  # a name that no name server has (RFC 6761 §6.4)
OWN_DAYS: Final = 3_650  # it ends with the process


class Shown:
    """`folder` None: the operator brings none; `take` as of `Certificates`."""

    def __init__(self, folder: Path | None, nameservers: Sequence[str], take: Take) -> None:
        self._certificates, self._nameservers = Certificates(folder, take), tuple(nameservers)
        self._own: Certificates | None = None

    def context(self, host: str, protocols: Sequence[str]) -> ssl.SSLContext | None:
        terms = Terms(protocols=tuple(protocols))
        for name in (host, *self._nameservers):
            found = self._certificates.context(name, terms)
            if found is not None:
                return found
        if DOT not in protocols:
            return None
        if self._own is None:  # made for the first who asks: it takes a library that others do not need
            self._own = Certificates(None, lambda: [_self_signed()])
        return self._own.context(OWN_NAME, terms)

    async def follow(self) -> None:
        """Take up what changes."""
        await Rounds("a look at the certificates of DNS", LOOK_SECONDS, self._look).go_on()

    async def _look(self) -> None:
        self._certificates.look()


def _self_signed() -> Kept:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, OWN_NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=OWN_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(OWN_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, *form)
    return Kept((OWN_NAME,), made.public_bytes(serialization.Encoding.PEM), private)
